/* playback.h - plays a recording instead of a model: `holorun run --fake FILE` with a file of `holorun
 * record`.
 *
 * The player receives each screenshot as a model does, finds the recorded target in it (target.h), and
 * replies with the action in the dialect PLAYBACK_DIALECT; the thought is the way in which the target was
 * found. Rules, secrets, the record and the debugger therefore work as with a model. While a target, or the
 * window that had the keyboard, is missing, the player waits 15 to 120 s, depending on the recorded user's
 * pause; then it replies that the task cannot be done (exit code 1) and names the failed step and the
 * reason. An action that was refused ends the run in the same way.
 */
#pragma once

#include "base/secret.h"
#include "llm/llm.h"
#include "screen/screen.h"

#define PLAYBACK_DIALECT "recording"
enum { PLAYBACK_STEPS = 100000 }; /* default step limit of a run: waiting also takes steps */

/* Returns whether the file is a recording; false also if the file cannot be read. */
bool playback_is(const char *path);

/* Opens a recording as a model. screen and secrets are borrowed; secrets may be NULL. Returns NULL with e if
 * the file is invalid or types a secret that is not in `secrets`. */
struct llm *playback_open(const char *path, struct screen *screen, const struct secrets *secrets,
                          struct err *e);

/* Returns whether a screenshot shows the next target's window as it was recorded before the action there, or
 * the end of the recording. Then the player need not wait until the screen settles. A function for
 * settle.known; arg: the result of playback_open(). */
bool playback_known(void *arg, struct image *frame);
