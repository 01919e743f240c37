/* player.h - plain steps in place of a model.
 *
 * The player receives each screenshot as a model does, reads the elements of the active window, and replies
 * with the next action in the dialect PLAYER_DIALECT, so that rules, the record and the debugger work as with
 * a model.  After each action it reads the elements again: a tick, a choice in a closed list and a text of
 * at most PLAYER_VERIFIED_MAX bytes are verified where the program reports them; for anything else the answer
 * says what changed.  Entries of lists and items of menus without a reliable place are reached with the arrow
 * keys, and a file in an icon view that is not described by typing its name (player_keys.c).  A name that is
 * missing for some seconds, or ambiguous, ends the run (exit code 1) with the nearest names; nothing is
 * guessed. */
#pragma once

#include "atspi/elements.h"
#include "llm/llm.h"
#include "plain/plain.h"
#include "screen/screen.h"

#define PLAYER_DIALECT "plain"
enum { PLAYER_STEPS = 100000 };     /* default step limit of a run: waiting also takes steps */
enum { PLAYER_VERIFIED_MAX = 150 }; /* bytes: longer texts may be cut in the snapshot, and are not compared */

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

/* Returns whether the steps can begin: the element of the first one is on the screen.  without: also if the
 * active window names other elements, has no web page and is not the user's terminal, so that this one is
 * missing.  Waits some seconds for the element, and longer for a program that describes nothing yet. */
bool player_can_begin(const struct plain_steps *steps, struct elements *elements, bool without);

/* Opens steps as a model.  Takes the steps; borrows screen, elements and source.  source: supplies the steps
 * after these, and each of them must have a visible effect; NULL: there are none.  Never NULL. */
struct llm *player_open(struct plain_steps steps, struct screen *screen, struct elements *elements,
                        struct player_source *source);

/* Returns whether a press of the steps so far changed no element, and no check or wait came after it; belongs
 * to m, a result of player_open(). */
const bool *player_idle(const struct llm *m);

enum player_end {
    PLAYER_NOT_RUN, /* not reached, or not finished when the run ended */
    PLAYER_DONE,
    PLAYER_NOT_FOUND, /* no element, or several, of the name */
    PLAYER_NOT_DONE,  /* the element could not be used, or did not get the expected state */
    PLAYER_UNREAD,    /* the program's elements could not be read */
};
struct player_outcome {
    enum player_end end;
    char text[480]; /* the action and its effect, or the reason why it failed; "": not run */
    double seconds;
};
/* Returns the outcomes of *n steps; they belong to m, a result of player_open(). */
const struct player_outcome *player_outcomes(const struct llm *m, int *n);
/* ---- one step on a known element (player_ref.c) -------------------------------------------------------- */

enum player_deed {
    PLAYER_DO_PRESS,
    PLAYER_DO_DOUBLE_PRESS,
    PLAYER_DO_RIGHT_PRESS,
    PLAYER_DO_FILL,   /* value: the text */
    PLAYER_DO_CHOOSE, /* value: name of the option */
    PLAYER_DO_TICK,
    PLAYER_DO_UNTICK,
    PLAYER_DO_FOCUS,
    PLAYER_DO_SCROLL,
    PLAYER_DEEDS
};

enum player_answer {
    PLAYER_REPLIES, /* the reply has an action, to be performed before the next call */
    PLAYER_WAITS,   /* nothing to do yet: call again with a later snapshot */
    PLAYER_IS_DONE, /* done, and verified where the program reports the result */
    PLAYER_GIVES_UP /* why has the reason */
};

struct player_ref;

/* Begins a deed on the element of s with this ref, which the caller has checked.  Returns NULL with e if the
 * deed does not suit the element.  screen is borrowed; value is NULL unless the deed needs one. */
struct player_ref *player_ref_open(enum player_deed deed, const struct element *on, const char *value,
                                   struct screen *screen, struct err *e);
void player_ref_free(struct player_ref *r); /* NULL is allowed */

/* Looks at a new snapshot and appends a reply in PLAYER_DIALECT to b, or waits, or ends. */
enum player_answer player_ref_next(struct player_ref *r, const struct snapshot *now, struct buf *b, char *why,
                                   size_t size);
/* Takes the last reply back: its action was not performed, because the screen had changed. */
void player_ref_again(struct player_ref *r);
