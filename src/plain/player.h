/* player.h - plain steps in place of a model.
 *
 * The player receives each screenshot as a model does, reads the elements of the active window, and replies
 * with the next action in the dialect PLAYER_DIALECT, so that rules, the record and the debugger work as with
 * a model.  After each action it reads the elements again: a tick, a choice in a closed list and a text of
 * at most 150 bytes are verified where the program reports them; for anything else the answer says what
 * changed.  A name that is missing for some seconds, or ambiguous, ends the run (exit code 1) with the
 * nearest names; nothing is guessed. */
#ifndef HOLORUN_PLAIN_PLAYER_H
#define HOLORUN_PLAIN_PLAYER_H

#include "atspi/elements.h"
#include "llm/llm.h"
#include "plain/plain.h"
#include "screen/screen.h"

#define PLAYER_DIALECT "plain"
enum { PLAYER_STEPS = 100000 }; /* default step limit of a run: waiting also takes steps */

/* Supplies the steps of a task that is planned one window at a time. */
struct player_source {
    void *arg;
    /* Plans for the current elements; n 0: none can be read.  last: it is not asked again.  Returns 1 with
     * further steps, 0 if the task is done, -1 with the reason if nothing is planned yet, -2 if nothing ever
     * will. */
    int (*next)(void *arg, const struct snapshot *now, bool last, struct plain_steps *more, char *why,
                size_t size);
    bool unclear; /* set when the run ends because no further steps were planned */
};

/* Waits at most ms until the element of the first step is on the screen.  Returns false if it does not
 * appear, or is ambiguous. */
bool player_can_begin(const struct plain_steps *steps, struct elements *elements, double ms);

/* Opens steps as a model.  Takes the steps; borrows screen, elements and source.  source: supplies the steps
 * after these, and each of them must have a visible effect; NULL: there are none.  Never NULL. */
struct llm *player_open(struct plain_steps steps, struct screen *screen, struct elements *elements,
                        struct player_source *source);

#endif
