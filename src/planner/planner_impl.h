/* planner_impl.h - shared by the files of this room. */
#pragma once

#include "planner/candidates.h"
#include "planner/clauses.h"
#include "planner/planner.h"

/* of a model's lines: least probability of one that differs, and in a proposal */
#define P_LEAST    0.50F
#define P_PROPOSED 0.20F
/* ... and by how much words that they do not have must raise the log-probability of the reply */
#define GAIN_LEAST 1.5

struct writer;

struct planner {
    struct clauses clauses;
    struct planner_at at;
    struct planner_model model;
    struct writer *writer; /* NULL: not opened */
    struct clause whole;   /* the task, for the model */
    struct buf done;       /* accepted steps, a line each */
};

struct frame { /* one clause in one window */
    struct planner *p;
    const struct candidates *all;
    const struct clause *k;
    struct plan *out;
    bool proposal; /* lower bounds */
};

enum framed {
    FRAME_NONE,   /* this frame does not fit the clause */
    FRAME_DONE,   /* its steps are in the plan */
    FRAME_OPENS,  /* its steps open a window in which it continues */
    FRAME_UNSURE, /* out->why has the reason */
};

struct pick {
    const struct candidate *best;
    float p;   /* probability; 1 by rules */
    bool twin; /* another one has the name too */
};

void plan_cut(struct plan *out, int n); /* removes the steps from n on */
/* Returns whether the last step may open a window: a menu item with "...", or a button that does not end a
 * dialog. */
bool plan_may_open(const struct plan *out);

/* ---- pick.c ---- */

/* Finds the candidate of some kinds (bits) whose name has the words of this one and the fewest others, which
 * must say nothing ("Save file").  Returns false if none has them. */
bool frame_find(const struct frame *f, const char *name, int kinds, struct pick *out);
enum framed frame_unsure(struct frame *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Like frame_unsure(), and appends the nearest readings of the query. */
enum framed frame_unknown(struct frame *f, const char *word, const struct match_words *q);

/* ---- emit.c ---- */

/* Appends a step.  Returns false if it is not parsed as the same step, or there are too many. */
bool frame_add(struct frame *f, const struct plain_step *s, const struct pick *k);
/* Appends the step that uses a candidate as the deed says, if its name finds that element. */
enum framed frame_use(struct frame *f, const struct pick *k);
/* Appends the step that enters a text into a field; `field` NULL: into the focused element. */
enum framed frame_enter(struct frame *f, const struct pick *field, const char *text);
/* Appends the clause as plain steps, if the plain grammar covers it and all its names are found. */
enum framed frame_plain(struct frame *f);
/* Writes the plain sentence for a candidate: press "Save". */
void frame_describe(const struct frame *f, const struct candidate *c, struct buf *out);

/* ---- ask.c ---- */

/* Appends the steps by which the window gets the state that the model writes for the whole task, or with
 * rules true the state that form_fill() finds.  FRAME_OPENS: words are left for the window after them. */
enum framed frame_ask(struct frame *f, bool rules);

/* ---- frames.c, values.c ---- */

enum framed frame_clause(struct frame *f);
enum framed frame_write(struct frame *f);
enum framed frame_calculate(struct frame *f);
