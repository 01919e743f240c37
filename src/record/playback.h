/* playback.h - a recording in place of a model: `holorun run --fake FILE` with a file of `holorun record`.
 *
 * It sees each screenshot as a model does, finds the recorded target in it (target.h), and replies with the
 * action in the dialect PLAYBACK_DIALECT, and how the target was found as its thought.  So rules, secrets,
 * the record and the debugger work as they do with a model.  While a target, or the window that had the
 * keyboard, is not there it waits, for longer where the person did; then it answers that the task cannot be
 * done (exit code 1) and says which step failed and why.  It also ends so when an action was refused.
 */
#ifndef HOLORUN_RECORD_PLAYBACK_H
#define HOLORUN_RECORD_PLAYBACK_H

#include "base/secret.h"
#include "llm/llm.h"
#include "screen/screen.h"

#define PLAYBACK_DIALECT "recording"
enum { PLAYBACK_STEPS = 100000 }; /* of a run, unless it is told: waiting takes steps, too */

/* Whether the file is a recording; false also when it cannot be read. */
bool playback_is(const char *path);

/* screen, secrets: borrowed; secrets NULL: none.  NULL with e: the file is refused, or types a secret that
 * there is not. */
struct llm *playback_open(const char *path, struct screen *screen, const struct secrets *secrets,
                          struct err *e);

#endif
