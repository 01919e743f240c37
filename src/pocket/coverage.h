/* coverage.h - declarations shared by coverage.c, repeated_texts.c and writes.c. Private to pocket/. */
#pragma once

#include "llm/assist.h"
#include "pocket/task_names.h"

struct write {
    char name[TASK_NAME], text[TASK_NAME];
};

struct writes {        /* texts written by the earlier replies to the current task, oldest first */
    struct write *all; /* owned */
    int n;
};

struct review { /* a review of the current reply */
    struct assist_step *s;
    char *before; /* owned: the earlier replies to this task without tags, one line each */
    struct writes writes;
    const struct seen *seen; /* on the newest screenshot */
};

/* ---- texts in fields (writes.c) ---- */

/* Collects the writes of the earlier replies; the caller frees `all`. Names and texts of TASK_NAME bytes and
 * more are omitted. */
struct writes writes_before(const struct assist_step *s);
/* Returns the number of fields into which a text, or one that contains it, was written and not
 * overwritten. */
int times_standing(const struct writes *w, const char *text);

/* ---- the current reply (coverage.c) ---- */

/* Returns the last action of the current reply, or NULL. */
const struct action *last_action(const struct review *v);
/* Returns whether an earlier reply contains the words of this one: a repeated action has not helped. */
bool is_repeated(const struct review *v);
/* Finds the element that the last action names, as a click would. */
bool named_element(const struct review *v, const char *name, struct thing *out);

/* ---- corrections; each may replace the current reply; -1 with e ---- */

/* Replaces a text that was typed before by the likeliest unused phrase of the task (repeated_texts.c). */
int fix_repeated_text(const struct review *v, struct err *e);
