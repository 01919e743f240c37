/* grammar.h - what may come next.
 *
 * A grammar is a regular language over an alphabet of 256 bytes plus the added tokens of a
 * tokenizer: every output format of ours is regular once its depth is bounded (flat JSON objects with
 * strings, bounded numbers and lists).  It is built with the gx_ combinators into an NFA, made
 * deterministic lazily, and applied to whole tokens by walking the tokenizer's token trie, so that
 * one mask per automaton state is computed once and kept.
 *
 * Guarantee: a token allowed by grammar_mask can always be continued to an accepted text.
 */
#ifndef HOLORUN_MODEL_GRAMMAR_H
#define HOLORUN_MODEL_GRAMMAR_H

#include "base/err.h"
#include "model/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- expressions: nodes owned by a builder, freed with it ----------------------------------- */

struct gx; /* builder */
typedef int gx_node;

struct gx *gx_new(void);
void gx_free(struct gx *x);
gx_node gx_lit(struct gx *x, const char *text);                      /* exactly these bytes */
gx_node gx_set(struct gx *x, const char *ranges);                    /* one byte of "a-zA-Z0-9 _", \\xHH escapes */
gx_node gx_token(struct gx *x, const char *spelling);                /* one added token, e.g. "<SPECIAL_12>" */
gx_node gx_seq(struct gx *x, int n, const gx_node *parts);
gx_node gx_alt(struct gx *x, int n, const gx_node *parts);
gx_node gx_repeat(struct gx *x, gx_node part, int min, int max);     /* max -1: unbounded */
gx_node gx_int(struct gx *x, int lo, int hi);                        /* decimal, no leading zeros */
gx_node gx_utf8(struct gx *x, const char *except, int min, int max); /* valid UTF-8 scalars >= U+0020 but not ASCII bytes in except */
gx_node gx_json_string(struct gx *x, int min, int max);              /* with quotes; max counts scalars/escapes */

/* ---- compiled ------------------------------------------------------------------------------ */

struct grammar;

struct grammar *grammar_compile(const struct gx *x, gx_node root, const struct tokenizer *t, struct err *e);
void grammar_free(struct grammar *g);

enum { GRAMMAR_DEAD = -1 };

int grammar_start(struct grammar *g);
/* State after a token, GRAMMAR_DEAD when it is not allowed. */
int grammar_advance(struct grammar *g, int state, int32_t token);
bool grammar_accepts(struct grammar *g, int state);   /* the text may end here */
bool grammar_finished(struct grammar *g, int state);  /* accepts and nothing may follow */
/* Bit i % 64 of word i / 64 set: token i allowed. Borrowed, valid until grammar_free. */
const uint64_t *grammar_mask(struct grammar *g, int state);
/* The bytes that must come next, whatever is chosen: appended to out as tokens (tokenised the way
 * the tokenizer would), and the state after them.  Returns the number of tokens, 0 when the next
 * symbol is a real choice or the text may end here. */
int grammar_forced(struct grammar *g, int state, struct tokens *out, int *after);

#endif
