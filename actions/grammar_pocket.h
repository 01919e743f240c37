/* grammar_pocket.h - what the two files that build grammars share.  Private to actions/. */
#ifndef HOLORUN_ACTIONS_GRAMMAR_POCKET_H
#define HOLORUN_ACTIONS_GRAMMAR_POCKET_H

#include "actions/tools.h"

struct grammar_builder {
    struct gx *x;
    const struct dialect *d;
};

gx_node grammar_words(struct gx *x, const char *values,
                      const char *format);                         /* one of "a|b|c", as in format */
gx_node grammar_chord(struct gx *x, const char *between, int max); /* modifiers and a key, at most max */

/* A call of this tool; a step around a call; the localizer's answer: a place alone, or a whole click. */
gx_node pocket_call(const struct grammar_builder *l, const struct tool *t);
gx_node pocket_step(const struct grammar_builder *l, gx_node call);
gx_node pocket_ground(const struct grammar_builder *l);

#endif
