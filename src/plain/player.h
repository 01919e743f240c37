/* player.h - plain steps in place of a model.
 *
 * The player receives each screenshot as a model does, reads the elements of the active window, and replies
 * with the next action in the dialect PLAYER_DIALECT, so that rules, the record and the debugger work as with
 * a model.  After each action it reads the elements again: a tick, a choice and a text are verified by the
 * element's state, anything else by what changed.  A name that is missing or ambiguous for some seconds ends
 * the run (exit code 1) with the nearest names; nothing is guessed. */
#ifndef HOLORUN_PLAIN_PLAYER_H
#define HOLORUN_PLAIN_PLAYER_H

#include "atspi/elements.h"
#include "llm/llm.h"
#include "plain/plain.h"
#include "screen/screen.h"

#define PLAYER_DIALECT "plain"

/* Waits at most ms until the element of the first step is on the screen.  Returns false if it does not
 * appear, or is ambiguous. */
bool player_can_begin(const struct plain_steps *steps, struct elements *elements, double ms);

/* Opens steps as a model.  Takes the steps; borrows screen and elements.  Never NULL. */
struct llm *player_open(struct plain_steps steps, struct screen *screen, struct elements *elements);

#endif
