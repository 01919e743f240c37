/* grammar.h - what may come next.
 *
 * A grammar is a regular language over an alphabet of 256 bytes plus the added tokens of a
 * tokenizer: every output format of ours is regular once its depth is bounded (flat JSON objects with
 * strings, bounded numbers and lists).  It is built with the gx_ combinators into an NFA, made
 * deterministic lazily, and applied to whole tokens by walking the tokenizer's token trie, so that
 * one mask per automaton state is computed once and kept.
 *
 * Guarantee: a token allowed by grammar_mask can always be continued to an accepted text.
 *
 * A grammar belongs to one thread (it grows while it is used) and must be freed before its tokenizer.
 */
#ifndef HOLORUN_GRAMMAR_GRAMMAR_H
#define HOLORUN_GRAMMAR_GRAMMAR_H

#include "base/err.h"
#include "text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- expressions: nodes owned by a builder, freed with it ----------------------------------- */

struct gx; /* builder */
typedef int gx_node;

/* Up to this many repetitions are counted exactly; a larger maximum means "unbounded", so that a
 * note of 2000 characters costs one state and not 2000.  The generation's own token limit ends it. */
enum { GX_EXACT = 256 };

struct gx *gx_new(void);
void gx_free(struct gx *x);
gx_node gx_lit(struct gx *x, const char *text);       /* exactly these bytes; "" is the empty text */
gx_node gx_set(struct gx *x, const char *ranges);     /* one byte of "a-zA-Z0-9 _"; \xHH, \\ and \- escape */
gx_node gx_token(struct gx *x, const char *spelling); /* one added token, e.g. "<SPECIAL_12>" */
gx_node gx_seq(struct gx *x, int n, const gx_node *parts);
gx_node gx_alt(struct gx *x, int n, const gx_node *parts);           /* n >= 1 */
gx_node gx_repeat(struct gx *x, gx_node part, int min, int max);     /* max -1: unbounded */
gx_node gx_int(struct gx *x, int lo, int hi);                        /* decimal, no leading zeros */
gx_node gx_utf8(struct gx *x, const char *except, int min, int max); /* printable scalars, see below */
gx_node gx_json_string(struct gx *x, int min, int max); /* with quotes; max counts scalars/escapes */

/* gx_utf8: valid UTF-8, no control characters (C0, DEL, C1), none of the ASCII bytes in `except`.
 * gx_json_string: the same scalars without " and \, and the escapes \" \\ \n \t: the form a text has
 * after canonical serialisation, so that there is one spelling for each text. */

/* Several nodes in a row: GX_SEQ(x, a, b, c), GX_ALT(x, a, b). */
#define GX_LIST(...)                                                                                         \
    (int)(sizeof((gx_node[]){__VA_ARGS__}) / sizeof(gx_node)), (const gx_node[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define GX_SEQ(x, ...) gx_seq(x, GX_LIST(__VA_ARGS__))
#define GX_ALT(x, ...) gx_alt(x, GX_LIST(__VA_ARGS__))

/* ---- compiled ------------------------------------------------------------------------------ */

struct grammar;

/* NULL when an added token is missing from the tokenizer, or the automaton is too large.  The builder may be freed afterwards. */
struct grammar *grammar_compile(const struct gx *x, gx_node root, const struct tokenizer *t, struct err *e);
void grammar_free(struct grammar *g);

enum { GRAMMAR_DEAD = -1 };

int grammar_start(struct grammar *g);
/* State after a token, GRAMMAR_DEAD when it is not allowed. */
int grammar_advance(struct grammar *g, int state, int32_t token);
bool grammar_accepts(struct grammar *g, int state);  /* the text may end here */
bool grammar_finished(struct grammar *g, int state); /* accepts and nothing may follow */
/* Bit i % 64 of word i / 64 set: token i allowed; (tokenizer_size + 63) / 64 words.
 * Borrowed, valid until the next call of grammar_mask for this grammar. */
const uint64_t *grammar_mask(struct grammar *g, int state);
/* What must come next, whatever is chosen: appended to out as tokens (tokenised the way the tokenizer
 * would; an end-of-turn token may be among them), and the state after them.  Returns the number of
 * tokens, 0 when the next symbol is a real choice or the text may end here.
 *
 * A forced text is cut before its last tokens when a longer token of the vocabulary could cover its end and
 * the beginning of what is freely chosen: the model keeps the tokenisation it was trained on. */
int grammar_forced(struct grammar *g, int state, struct tokens *out, int *after);

#endif
