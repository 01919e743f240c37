/* coverage.h - what coverage.c, lost_texts.c, other_words.c and writes.c share.  Private to agent/. */
#ifndef HOLORUN_AGENT_COVERAGE_H
#define HOLORUN_AGENT_COVERAGE_H

#include "agent/private.h"
#include "agent/task_names.h"

struct write {
    char name[TASK_NAME], text[TASK_NAME];
};

struct writes {        /* of the earlier replies to the task at hand, oldest first */
    struct write *all; /* owned */
    int n;
};

struct review { /* of the reply at hand */
    struct agent *a;
    char *before; /* owned: the earlier replies to this task, without marks, a line each */
    struct writes writes;
    struct seen seen;
};

/* ---- what was written (writes.c) ---- */

/* The caller frees all of it.  Names and texts of TASK_NAME bytes and more are left out. */
struct writes writes_before(const struct agent *a);
/* Whether something was written into the field of this name, which may be read nearly, or it is itself what
 * was written. */
bool is_filled(const struct writes *w, const char *name);
/* Whether a later one wrote into the same field as write i. */
bool is_written_over(const struct writes *w, int i);
/* In how many fields a text, or one that has it, was written and not written over. */
int times_standing(const struct writes *w, const char *text);

/* ---- other replies (coverage.c) ---- */

/* The last action of the reply at hand; NULL: none. */
const struct action *reviewed_action(const struct agent *a);
/* Whether an earlier reply said the same: what is repeated has not helped. */
bool is_repeated(const struct review *v);
/* The logarithm of the probability of a reply's first bytes. */
double logprob_of(const struct generated *g, size_t bytes);
/* The reply at hand becomes one that begins with this, if the logarithm of the beginning's probability is
 * more than *least, which it then is.  -1 with e. */
int try_instead(struct agent *a, const char *begins, double *least, struct err *e);

/* ---- what is done to the reply at hand; -1 with e ---- */

/* Before the end of a page: texts that were written over (lost_texts.c). */
int see_to_lost_texts(const struct review *v, struct err *e);
/* Other words in the place of a name or a text that is wrong (other_words.c). */
int see_to_words(const struct review *v, struct err *e);
/* The likeliest of n texts in the place of the one that is typed (other_words.c). */
int type_one_of(const struct review *v, char (*text)[TASK_NAME], int n, struct err *e);

#endif
