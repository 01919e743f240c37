/* flaky.h - why a test failed and then passed: the application or the model?
 *
 * The two runs are compared step by step up to their first divergence:
 *
 *   different screens after the same actions       the application
 *   different actions on the same screen           the model
 *   an action that succeeded in only one run       the application
 *   no difference, but the checks differ           the application, in what the screen does not show
 *   a run that cannot be read that far             unknown
 *
 * Thoughts may differ; only actions count.
 */
#ifndef HOLORUN_QA_RUN_FLAKY_H
#define HOLORUN_QA_RUN_FLAKY_H

#include "qa/report/result.h"

/* Of two run directories, or NULL.  *where: "step 3: ...", owned by the caller, or NULL.  Never FLAKY_NOT. */
enum flaky flaky_cause(const char *failed, const char *passed, char **where);

#endif
