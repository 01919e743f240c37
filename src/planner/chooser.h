/* chooser.h - a text-only model chooses one line of a list for some words.
 *
 * A constrained search returns the most probable line with its probability among the lines. */
#ifndef HOLORUN_PLANNER_CHOOSER_H
#define HOLORUN_PLANNER_CHOOSER_H

#include "session/session.h"

enum { CHOOSER_LINES = 24, CHOOSER_LINE = 160 }; /* most lines; bytes of one */
struct chooser;

/* Begins a conversation with the model.  Returns NULL with e. */
struct chooser *chooser_open(struct engine *g, const volatile int *cancel, struct err *e);
void chooser_free(struct chooser *c); /* accepts NULL */

/* Shows these lines, which are borrowed until the next call, as the window.  Returns -1 with e. */
int chooser_ask(struct chooser *c, const char *window, const char *const *lines, int n, struct err *e);
/* Chooses a line for these words; skip: bits of lines that are not allowed, not all.  Returns its index and
 * sets *p, or returns -1 with e. */
int chooser_choose(struct chooser *c, const char *words, uint32_t skip, double *p, struct err *e);
/* Computes how much more probable the words make a line than fewer words do: the logarithm of the ratio.
 * Returns -1 with e. */
int chooser_gain(struct chooser *c, int line, const char *words, const char *fewer, double *gain,
                 struct err *e);

#endif
