/* writer.h - a text-only model writes the state of a window after a request.
 *
 * The grammar allows the lines of the form and their values only.  The probability of a line's value is that
 * among its values. */
#pragma once

#include "planner/form.h"
#include "session/session.h"

struct writer;

/* Begins a conversation with the model.  Returns NULL with e. */
struct writer *writer_open(struct engine *g, const volatile int *cancel, struct err *e);
void writer_free(struct writer *w); /* accepts NULL */

struct written {
    int value[FORM_LINES]; /* index of the value of each line */
    float p[FORM_LINES];
    char *cannot; /* what the window cannot carry out, in the model's words */
    float whole;  /* probability that this is nothing; 0: the model names something */
};

/* Writes the lines of a form.  window: its printed text, and the steps before.  Returns -1 with e. */
int writer_write(struct writer *w, const char *window, const char *request, const struct form *form,
                 struct written *out, struct err *e);
void written_free(struct written *p);
