/* grammar_pocket.h - what the files that build grammars share.  Private to actions/. */
#ifndef HOLORUN_ACTIONS_GRAMMAR_POCKET_H
#define HOLORUN_ACTIONS_GRAMMAR_POCKET_H

#include "actions/tools.h"

struct grammar_builder {
    struct gx *x;
    const struct dialect *d;
    const struct tokenizer *t;
    int w, h; /* pixels of the picture that places are about, 0: unknown */
};

gx_node grammar_words(struct gx *x, const char *values,
                      const char *format);                         /* one of "a|b|c", as in format */
gx_node grammar_chord(struct gx *x, const char *between, int max); /* modifiers and a key, at most max */

enum { MANY = GX_EXACT + 1 };

/* format with its %s replaced by name. */
gx_node grammar_lit(struct gx *x, const char *format, const char *name);
/* A value in JSON. */
gx_node grammar_json_value(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a);
int grammar_offered(const struct tool *t, int i); /* the first offered argument from i on; nargs: none */
int grammar_chord_length(const struct tool *t);   /* keys at once */

/* A call in XML, and the step around it (grammar_xml.c). */
gx_node grammar_xml_call(const struct grammar_builder *l, const struct tool *t);
gx_node grammar_xml_step(const struct grammar_builder *l, gx_node call);

/* A call of this tool; a step around a call; the localizer's answer: a place alone, or a whole click. */
gx_node pocket_call(const struct grammar_builder *l, const struct tool *t);
gx_node pocket_step(const struct grammar_builder *l, gx_node call);
gx_node pocket_ground(const struct grammar_builder *l);

#endif
