/* coverage.h - declarations shared by coverage.c, lost_texts.c, other_words.c and writes.c. Private to
 * pocket/. */
#ifndef HOLORUN_POCKET_COVERAGE_H
#define HOLORUN_POCKET_COVERAGE_H

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
/* Returns whether something was written into the field of this name, which may be misread, or whether the
 * name is itself a written text. */
bool is_filled(const struct writes *w, const char *name);
/* Returns whether a later write went into the same field as write i. */
bool is_written_over(const struct writes *w, int i);
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

/* Restores overwritten texts before the end of a page (lost_texts.c). */
int fix_overwritten(const struct review *v, struct err *e);
/* Replaces names and texts that are wrong (other_words.c). */
int fix_words(const struct review *v, struct err *e);
/* Replaces the text to type by the likeliest of n texts (other_words.c). */
int type_one_of(const struct review *v, char (*text)[TASK_NAME], int n, struct err *e);

#endif
