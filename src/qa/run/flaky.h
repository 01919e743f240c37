/* flaky.h - a test that failed and then passed: was it the application or the model?
 *
 * The two runs are compared step by step up to where they part:
 *
 *   the screens differ, after the same actions      the application
 *   other actions on the same screen                the model
 *   an action that could be done only once          the application
 *   nothing differs, and the checks saw another end the application, in what is not to be seen
 *   one of the runs cannot be read so far           not known
 *
 * Thoughts may differ: what they lead to is what counts.
 */
#ifndef HOLORUN_QA_RUN_FLAKY_H
#define HOLORUN_QA_RUN_FLAKY_H

#include "qa/report/result.h"

/* Of two run directories, NULL: there is none.  *where is the caller's: "step 3: ...", or NULL when there is nothing to say.
 * Never FLAKY_NOT. */
enum flaky flaky_why(const char *failed, const char *passed, char **where);

#endif
