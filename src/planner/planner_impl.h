/* planner_impl.h - shared by the files of this room. */
#pragma once

#include "planner/candidates.h"
#include "planner/clauses.h"
#include "planner/planner.h"

/* of a model's lines: least probability of one that differs, and in a proposal */
#define P_LEAST    0.50F
#define P_PROPOSED 0.20F
/* ... and least probability that its reply carries out the whole task */
#define WHOLE_LEAST  0.60F
#define BIT(i)       (1ULL << (i))
#define HAS(bits, i) ((bits) >> (i)&1)

enum { SUM_KEYS = 128, EDITOR_HEIGHT = 60 /* px; fields of one line are lower */ };

struct writer;

struct planner {
    struct clauses clauses;
    char sum[SUM_KEYS]; /* the task is this sum; "": it is not one */
    struct planner_at at;
    struct planner_model model;
    struct writer *writer; /* NULL: not opened */
    char *task;
    struct buf done; /* accepted steps, a line each */
};

struct frame { /* plans for one window */
    struct planner *p;
    const struct candidates *all;
    struct plan *out;
    bool proposal; /* lower bounds */
};

enum framed {
    FRAME_NONE,   /* does not fit the clause */
    FRAME_DONE,   /* its steps are in the plan */
    FRAME_OPENS,  /* its steps open a window in which the task continues */
    FRAME_UNSURE, /* out->why has the reason */
};

enum use { USE_PRESS, USE_ON, USE_OFF };

enum framed frame_unsure(struct frame *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- emit.c ---- */

/* Appends a step.  Returns FRAME_UNSURE if it is not parsed as the same step, or there are too many. */
enum framed frame_add(struct frame *f, const struct plain_step *s, float p);
enum framed frame_key(struct frame *f, const char *keys);
/* Appends the step that uses a candidate, if its name finds that element.  USE_ON, USE_OFF: sets the state of
 * a tick. */
enum framed frame_use(struct frame *f, const struct candidate *c, enum use use, float p);
/* Appends the step that enters a text into a field; NULL: into the focused element. */
enum framed frame_enter(struct frame *f, const struct candidate *field, const char *text, float p);
/* Appends the clause as plain steps, if the plain grammar covers it and all its names are found. */
enum framed frame_plain(struct frame *f, const struct clause *k);
/* Writes the plain sentence for a candidate: press "Save". */
void frame_describe(const struct candidate *c, struct buf *out);

/* ---- ask.c ---- */

/* Appends the steps by which the window gets the state that the model writes for n clauses from `from` on, or
 * with rules true the state that rules find.  FRAME_OPENS: words are left for the window after them. */
enum framed frame_ask(struct frame *f, int from, int n, bool rules);

/* Returns whether words say nothing of a window: "I am finished". */
bool asked_is_empty(struct span s);

/* ---- fill.c ---- */

/* Returns whether a button of this name leaves a form without its values: Cancel, Reset, Help. */
bool fill_leaves(const char *name);

/* ---- frames.c, edit.c ---- */

/* Writes the keys of a sum, "12*7=".  Returns false for other sentences. */
bool sum_read(struct span s, char keys[SUM_KEYS]);
/* Presses the keys of the sum that the task is. */
enum framed frame_sum(struct frame *f);
/* Returns the name of the folder that the next clauses make, and their number; n 0: they make none. */
struct span folder_name(const struct planner *p, int *clauses);
/* Opens the dialog for a new folder. */
enum framed frame_folder(struct frame *f);
/* Closes the window. */
enum framed frame_close(struct frame *f, const struct clause *k);
/* Writes or changes the text of an editor. */
enum framed frame_edit(struct frame *f, const struct clause *k);
/* Returns the index of the word that is the name of a file to save: "save it as letter.txt"; -1: none. */
int file_word(const struct planner *p);
/* Returns the menu item that opens the dialog for that name; NULL: none. */
const struct candidate *find_save_as(const struct frame *f);
/* Enters the name of the file into the dialog that "Save As" has opened. */
enum framed frame_save(struct frame *f);
