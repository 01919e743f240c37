/* fill_impl.h - the values that a task names, while they are found; private to fill.c and fill_fields.c. */
#pragma once

#include "planner/clauses.h"
#include "planner/form.h"

struct filling {
    const struct form *form;
    struct span s;
    const struct clauses *clauses;
    int *value;
    const char *doubt; /* why a user must confirm the values; NULL: nothing */
    uint64_t used;     /* bits of the words that are values of fields */
};

/* Splits a text into the words that name things, or its only word. */
void fill_words(const char *text, struct match_words *out);
/* Returns how well word i of the task is one of these; 0 if it is a value of a field. */
float fill_alike(const struct filling *g, int i, const struct match_words *w);

/* ---- fill_fields.c ---- */

/* Assigns the words after the name of a field, or a number before it. */
void fill_by_name(struct filling *g, int line);
/* Assigns the values that stand without the name of a field. */
void fill_unnamed(struct filling *g);
