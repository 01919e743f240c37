/* deeds.h - the actions of a run, each with its result. The last line of a run lists them, and they decide
 * whether its answer is confirmed.
 *
 * An action is open until a later screenshot shows whether the screen changed. Actions that only look (wait,
 * zoom, plan) are not listed.
 */
#pragma once

#include "actions/action.h"

enum deed_end {
    DEED_OPEN,        /* performed, and no screenshot taken since */
    DEED_CHANGED,     /* performed, and the screen changed */
    DEED_UNCHANGED,   /* performed, and the screen did not change although it should */
    DEED_DONE,        /* performed; need not change the screen */
    DEED_REFUSED,     /* refused by the user or the rules */
    DEED_FAILED,      /* not performed, or only in part */
    DEED_INTERRUPTED, /* a user or another program interfered */
};

struct deed {
    int step;
    enum action_kind kind;
    enum deed_end end;
    bool opens;       /* TYPE: also clicks or presses Enter, so another window may open */
    char *what, *did; /* "press 'Save'", "pressed 'Save'" */
    char *why;        /* reason for not performing it, for users; NULL: performed */
};

struct deeds { /* in the order of the run; all zeros is empty */
    struct deed *list;
    int n, cap;
};

/* Adds an action and returns it, valid until the next call; texts are copied. why: NULL unless it was not
 * performed. */
struct deed *deeds_add(struct deeds *d, int step, enum action_kind kind, enum deed_end end, const char *what,
                       const char *did, const char *why);

/* Records whether the screen changed after the actions of a step. A change after a step without actions,
 * or whose action was not performed because of the change, is attributed to the last action, if that had no
 * effect until then. */
void deeds_judge(struct deeds *d, int step, bool changed);

/* Returns whether an action of this step is open. */
bool deeds_open(const struct deeds *d, int step);

/* Returns the action by which the run is judged: the last that failed, unless one that changes the screen
 * was performed afterwards; else the last that should change the screen; else the last. NULL: no actions. */
const struct deed *deeds_decisive(const struct deeds *d);

/* Returns the last click that should change the screen and did not, NULL: none. A click before typed text may
 * find the keyboard focus where it is needed, and is left out. */
const struct deed *deeds_without_effect(const struct deeds *d);

/* Returns whether any action changed the screen. */
bool deeds_had_effect(const struct deeds *d);

/* Returns the number of actions that were performed and did not fail to change the screen. Moves of the
 * pointer and scrolling do not count. */
int deeds_performed(const struct deeds *d);

/* Returns one line with the last three actions, unconfirmed results, and counts: "pressed 'Save'; the window
 * did not change". The caller frees it. */
char *deeds_line(const struct deeds *d);

/* Returns all actions as a JSON list of {"step", "what", "end", "why"}. The caller frees it. */
char *deeds_json(const struct deeds *d);

void deeds_free(struct deeds *d);
