/* grammar.h - logit masks of a grammar: the tokens that may come next.
 *
 * A grammar is a regular language over 256 bytes plus the added tokens of a tokenizer. The output formats
 * are regular because their depth is bounded (flat JSON objects with strings, bounded numbers and lists).
 * The gx_ combinators build an expression, which is compiled into an NFA and made deterministic lazily.
 * The mask of a state is computed by one walk over the trie of the tokenizer's tokens and cached.
 *
 * Guarantee: a token that grammar_mask() allows can always be continued to an accepted text.
 *
 * A grammar belongs to one thread (it grows while it is used) and must be freed before its tokenizer.
 * Beyond a limit of memory or CPU time it fails: from then on states are GRAMMAR_DEAD, masks are empty,
 * and grammar_failed() returns the reason. */
#pragma once

#include "base/effort.h"
#include "text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- expressions ---------------------------------------------------------------------------- */

struct gx; /* builder; owns its nodes */
typedef int gx_node;

/* Repetitions are counted exactly up to this maximum. A larger maximum means unbounded, so that a note of
 * 2000 characters costs one state and not 2000; the token limit of the generation ends it. */
enum { GX_EXACT = 256 };

struct gx *gx_new(void);
struct gx *gx_new_within(struct effort *w);   /* w is borrowed; its CPU time limits the builder */
struct effort *gx_effort(const struct gx *x); /* NULL: none */
void gx_free(struct gx *x);
/* Returns whether a limit of size or CPU time was reached, with the reason; the nodes are then invalid,
 * and grammar_compile() rejects them. */
bool gx_failed(struct gx *x, struct err *e);
gx_node gx_lit(struct gx *x, const char *text);       /* exactly these bytes; "" is the empty text */
gx_node gx_set(struct gx *x, const char *ranges);     /* one byte of "a-zA-Z0-9 _"; \xHH, \\ and \- escape */
gx_node gx_token(struct gx *x, const char *spelling); /* one added token, e.g. "<SPECIAL_12>" */
gx_node gx_seq(struct gx *x, int n, const gx_node *parts);
gx_node gx_alt(struct gx *x, int n, const gx_node *parts);           /* n >= 1 */
gx_node gx_repeat(struct gx *x, gx_node part, int min, int max);     /* max -1: unbounded */
gx_node gx_int(struct gx *x, int lo, int hi);                        /* decimal, no leading zeros */
gx_node gx_utf8(struct gx *x, const char *except, int min, int max); /* printable scalars, see below */
gx_node gx_json_string(struct gx *x, int min, int max); /* with quotes; max counts scalars/escapes */

/* gx_utf8: valid UTF-8 without control characters (C0, DEL, C1) and the ASCII bytes in `except`.
 * gx_json_string: the same scalars without " and \, and the escapes \" \\ \n \t, as a canonical serializer
 * writes them: one spelling per text. */

/* GX_SEQ(x, a, b, c), GX_ALT(x, a, b). */
#define GX_LIST(...)                                                                                         \
    (int)(sizeof((gx_node[]){__VA_ARGS__}) / sizeof(gx_node)), (const gx_node[])                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define GX_SEQ(x, ...) gx_seq(x, GX_LIST(__VA_ARGS__))
#define GX_ALT(x, ...) gx_alt(x, GX_LIST(__VA_ARGS__))

/* ---- compiled ------------------------------------------------------------------------------ */

struct grammar;

/* Compiles an expression. Returns NULL with e if the tokenizer lacks an added token or the automaton is
 * too large. The builder may be freed afterwards. */
struct grammar *grammar_compile(struct gx *x, gx_node root, const struct tokenizer *t, struct err *e);
void grammar_free(struct grammar *g);

struct grammar_limits {
    size_t bytes;          /* memory of the automaton and its masks; 0: 512 MiB */
    struct effort *effort; /* CPU time of compiling and all later calls; may be NULL; borrowed */
};
/* Compiles within limits. Fails with ERR_USAGE beyond them, with ERR_ENV if the grammars of all threads
 * together would exceed 1 GiB. */
struct grammar *grammar_compile_within(struct gx *x, gx_node root, const struct tokenizer *t,
                                       const struct grammar_limits *l, struct err *e);
/* Sets the CPU time limit of the next user. */
void grammar_set_effort(struct grammar *g, struct effort *w);
/* Returns whether the grammar has failed, with the reason. */
bool grammar_failed(const struct grammar *g, struct err *e);
size_t grammar_bytes(const struct grammar *g); /* memory in use now */

enum { GRAMMAR_DEAD = -1 };

int grammar_start(struct grammar *g);
/* Returns the state after a token, or GRAMMAR_DEAD if it is not allowed. */
int grammar_advance(struct grammar *g, int state, int32_t token);
bool grammar_accepts(struct grammar *g, int state);  /* the text may end here */
bool grammar_finished(struct grammar *g, int state); /* accepts, and nothing may follow */
/* Returns the logit mask: token i is allowed if bit i % 64 of word i / 64 is set; (tokenizer_size + 63) /
 * 64 words. Borrowed until the next call of grammar_mask() for this grammar. */
const uint64_t *grammar_mask(struct grammar *g, int state);
/* Computes forced tokens: appends to out the tokens that must come next, in the tokenizer's own
 * tokenization, possibly including an end-of-turn token, and sets *after to the state after them. Returns
 * the number of tokens; 0 if there is a choice or the text may end here.
 *
 * A token is held back if a longer one could cover the end of the forced text and the beginning of the
 * freely chosen part, so that the model keeps the tokenization of its training. */
int grammar_forced(struct grammar *g, int state, struct tokens *out, int *after);
