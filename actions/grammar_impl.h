/* grammar_impl.h - declarations shared by the files that build grammars.  Private to actions/. */
#pragma once

#include "actions/tools.h"

struct grammar_builder {
    struct gx *x;
    const struct dialect *d;
    const struct tokenizer *t;
    int w, h; /* pixels of the image that coordinates refer to; 0: unknown */
};

gx_node grammar_words(struct gx *x, const char *values,
                      const char *format);                         /* one of "a|b|c", as in format */
gx_node grammar_chord(struct gx *x, const char *between, int max); /* modifiers and a key, at most max */

enum { MANY = GX_EXACT + 1 };

/* Matches `format` with its %s replaced by name. */
gx_node grammar_lit(struct gx *x, const char *format, const char *name);
/* Matches a value in JSON. */
gx_node grammar_json_value(const struct grammar_builder *l, const struct tool *t, const struct tool_arg *a);
/* returns the first offered argument from i on; nargs: none */
int grammar_offered(const struct tool *t, int i);
int grammar_chord_length(const struct tool *t); /* maximum number of keys at once */

/* Calls and the steps around them, members of the rows in syntax.c; the XML ones are in grammar_xml.c. */
gx_node grammar_json_call(const struct grammar_builder *l, const struct tool *t); /* {"tag": "NAME", ...} */
gx_node grammar_text_call(const struct grammar_builder *l, const struct tool *t); /* NAME(arg='value') */
gx_node grammar_function_call(const struct grammar_builder *l, const struct tool *t);
gx_node grammar_xml_call(const struct grammar_builder *l, const struct tool *t);
gx_node grammar_holo_step(const struct grammar_builder *l, gx_node call);
gx_node grammar_uitars_step(const struct grammar_builder *l, gx_node call);
gx_node grammar_qwen_step(const struct grammar_builder *l, gx_node call);
gx_node grammar_pyautogui_step(const struct grammar_builder *l, gx_node call);
gx_node grammar_xml_step(const struct grammar_builder *l, gx_node call);

/* localizer's answers other than {"x": x, "y": y} */
gx_node grammar_holo1_ground(const struct grammar_builder *l);
gx_node grammar_uitars_ground(const struct grammar_builder *l);

/* Append the slot {schema} of a prompt (schema.c). */
void schema_step(const struct dialect *d, struct buf *out);
void schema_step_python(const struct dialect *d, struct buf *out);
void schema_functions(const struct dialect *d, struct buf *out);
void schema_functions_utf8(const struct dialect *d, struct buf *out);
void schema_computer_use(const struct dialect *d, struct buf *out);
