/* deeds.h - the actions of a run, each with its result.  The last line of a run lists them, and they decide
 * whether its answer is confirmed.
 *
 * An action is open until a later screenshot shows whether the screen changed.  Actions that only look (wait,
 * zoom, plan) are not listed.
 */
#ifndef HOLORUN_AGENT_DEEDS_H
#define HOLORUN_AGENT_DEEDS_H

#include "actions/action.h"

enum deed_end {
    DEED_OPEN,        /* performed, and not looked at since */
    DEED_CHANGED,     /* performed, and the screen changed */
    DEED_UNCHANGED,   /* performed, and the screen did not change although it should */
    DEED_DONE,        /* performed; it need not change the screen */
    DEED_REFUSED,     /* by a person or the rules */
    DEED_FAILED,      /* it could not be performed, or only in part */
    DEED_INTERRUPTED, /* a person or another program got between */
};

struct deed {
    int step;
    enum action_kind kind;
    enum deed_end end;
    bool opens;       /* TYPE: it clicks or presses Enter as well, so that another window may come */
    char *what, *did; /* "press 'Save'", "pressed 'Save'" */
    char *why;        /* why it was not done, for people; NULL: it was */
};

struct deeds { /* in the order of the run; all zeros is empty */
    struct deed *list;
    int n, cap;
};

/* Adds an action and returns it; texts are copied.  why: NULL unless it was not done. */
struct deed *deeds_add(struct deeds *d, int step, enum action_kind kind, enum deed_end end, const char *what,
                       const char *did, const char *why);

/* Says whether the screen changed after the actions of a step.  A change after a step without actions belongs
 * to the last action, if it had no effect until then. */
void deeds_judge(struct deeds *d, int step, bool changed);

/* Returns whether an action of this step is open. */
bool deeds_open(const struct deeds *d, int step);

/* Returns the action by which the run is judged: the last that failed, unless one that changes the screen was
 * done afterwards, else the last that should change the screen, else the last.  NULL: there was none. */
const struct deed *deeds_decisive(const struct deeds *d);

/* Returns whether any action changed the screen. */
bool deeds_had_effect(const struct deeds *d);

/* Returns the last three actions, those that are not confirmed, and counts in one line: "pressed 'Save'; the
 * window did not change".  The caller frees it. */
char *deeds_line(const struct deeds *d);

/* Returns all of them as a JSON list of {"step", "what", "end", "why"}.  The caller frees it. */
char *deeds_json(const struct deeds *d);

void deeds_free(struct deeds *d);

#endif
