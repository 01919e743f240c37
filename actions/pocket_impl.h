/* pocket_impl.h - the parts of the syntax "pocket", which its row (syntax_pocket.c) combines. */
#pragma once

#include "actions/syntax.h"

extern const struct syntax syntax_pocket;

enum action_fault parse_pocket(struct parse *p, const char *text, size_t len);
int pocket_read_place(const struct dialect *d, const char *text, size_t len, struct place *out,
                      struct err *e);
char *pocket_step_begin(const struct dialect *d, int kind, const char *element);

gx_node pocket_call(const struct grammar_builder *l, const struct tool *t);
gx_node pocket_step(const struct grammar_builder *l, gx_node call);
gx_node pocket_ground(const struct grammar_builder *l);

int pocket_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max);
ptrdiff_t pocket_slot_end(enum slot_kind kind, const char *text, size_t len);
bool pocket_point(const char *text, size_t len, double v[2]);
bool pocket_word_slot(enum slot_kind kind, const char *text, size_t len, struct slot *out);
