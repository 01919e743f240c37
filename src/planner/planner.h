/* planner.h - proposes plain steps for a freely worded task by rules, and where they do not decide by the
 * reply of a text-only model.
 *
 *     sentence -> clauses -> for each clause a frame (verb and values) -> candidates of the window -> steps
 *
 * The planner sends no input: its output are steps of plain.h, printed and parsed again, which the player
 * performs.  It plans for one window; clauses whose elements are in a window that opens later are planned
 * when that window is there.  A name on the screen is only compared, never read as a task. */
#pragma once

#include "atspi/elements.h"
#include "plain/plain.h"

enum { PLANNER_NEAREST = 3, PLANNER_STEPS = 60, PLANNER_TEXT = 8192 };

enum plan_end {
    PLAN_MORE,   /* clauses remain for the window after these steps */
    PLAN_DONE,   /* all clauses are covered by these steps, or were before */
    PLAN_UNSURE, /* nothing may be pressed: why */
};

struct planner_at { /* progress */
    int clause;
    bool later;       /* the clause has opened a window for its values */
    bool filled;      /* a form has new values, and its last button was not pressed */
    bool pressed;     /* the last step may open or close a window */
    bool any;         /* a step was planned */
    bool asked;       /* by the model, which plans the rest too */
    bool form;        /* the last steps are values and a button of a form */
    uint64_t covered; /* bits of the task's words that its steps cover */
    char typed[160];  /* start of a text typed into the focused element, to be seen there; "": none */
};

struct plan {
    struct plain_steps steps;
    float p[PLAIN_STEPS_MAX]; /* probability; 1 by rules */
    enum plan_end end;
    bool sure;            /* within the bounds for acting without a user */
    char why[ERR_TEXT];   /* PLAN_UNSURE: the reason, and the nearest readings */
    char later[256];      /* clauses that are planned in the window that opens; "": none */
    struct planner_at at; /* progress after the steps */
};

struct planner;
struct engine;
struct form;
struct written;

struct planner_model { /* a text-only model that writes the state of a window */
    struct engine *(*open)(void *arg,
                           struct err *e); /* called once, when it is needed; the engine is borrowed */
    /* Writes the lines in place of that model, for tests; NULL: the model does. */
    int (*write)(void *arg, const char *window, const char *request, const struct form *form,
                 struct written *out, struct err *e);
    void *arg;
    const volatile int *cancel;
};

enum plan_effort {
    PLAN_RULES,    /* by rules alone */
    PLAN_MODEL,    /* the model is asked where they do not decide */
    PLAN_PROPOSAL, /* ... for a user who confirms the steps, so with lower bounds; plan.sure says whether the
                    * steps are within the bounds */
};

/* Reads a task.  m: used where the rules do not decide; NULL: none.  Returns NULL with ERR_UNCLEAR for a
 * sentence that steps do not express. */
struct planner *planner_open(const char *task, const struct planner_model *m, struct err *e);
void planner_free(struct planner *p); /* accepts NULL */

/* Proposes the steps for this snapshot. */
void planner_next(struct planner *p, const struct snapshot *now, enum plan_effort effort, struct plan *out);
/* Accepts a plan: the next one continues after its steps. */
void planner_accept(struct planner *p, const struct plan *plan);
void plan_free(struct plan *plan);

/* Appends the steps as "1. choose "Large" in "Size"  2. press "Order"". */
void plan_print(const struct plan *plan, struct buf *out);
/* Appends the steps with their probability, a line each. */
void plan_explain(const struct plan *plan, struct buf *out);
/* Appends a JSON object. */
void plan_json(const struct plan *plan, struct buf *out);
