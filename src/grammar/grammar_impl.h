/* grammar_impl.h - data structures of a grammar; private to src/grammar. */
#pragma once

#include "grammar/grammar.h"

/* ---- expressions (grammar_expr.c) ------------------------------------------------------------ */

/* Returns the array, reallocated if needed, with capacity for `more` rows after the first n. */
void *grammar_grow(void *rows, int64_t n, int *cap, int more, unsigned long size);

struct byte_set {
    uint64_t bits[4];
};
static inline bool byte_set_has(const struct byte_set *s, unsigned b)
{
    return s->bits[b >> 6] >> (b & 63) & 1;
}
static inline void byte_set_add(struct byte_set *s, unsigned b)
{
    s->bits[b >> 6] |= 1ull << (b & 63);
}

enum gx_op { GX_OP_SET, GX_OP_TOKEN, GX_OP_SEQ, GX_OP_ALT, GX_OP_REPEAT };

struct gx_expr {
    enum gx_op op;
    int first, n; /* TOKEN: text at chars + first. SEQ, ALT: slice of kids. SET: sets[first] */
    int min, max; /* REPEAT of expression `first`; max -1: unbounded */
};

struct gx {
    struct gx_expr *exprs;
    int nexprs, cap_exprs;
    struct byte_set *sets; /* distinct */
    int nsets, cap_sets;
    char *chars;
    int nchars, cap_chars;
    gx_node *kids;
    int nkids, cap_kids;
    bool full;             /* beyond a limit: every new node is node 0, and the grammar is rejected */
    struct effort *effort; /* may be NULL */
};

/* ---- vocabulary (grammar_vocab.c) ------------------------------------------------------------ */

/* A node of the trie of plain tokens, in depth-first order: the children of node i start at i + 1, and its
 * subtree ends before node end[i]. A walk is a loop, and skipping a subtree a jump. */
struct vocab_node {
    int32_t end;   /* first node after this subtree */
    int32_t first; /* its tokens are order[first .. next node's first) */
    uint8_t byte;
    uint8_t depth; /* 1 for the children of the root; tokens longer than 255 bytes are omitted */
};

struct vocab {
    const struct tokenizer *tokenizer;
    struct vocab_node *nodes; /* [nnodes + 1], node 0 is the root, the last one a sentinel */
    int32_t nnodes;
    int32_t *order; /* plain tokens sorted by their bytes */
    int32_t ntokens;
    int size; /* highest id + 1 */
    int users;
    struct vocab *next;
};

struct vocab *vocab_acquire(const struct tokenizer *t); /* shared by all grammars of a tokenizer */
void vocab_release(struct vocab *v);

/* ---- automaton (grammar_nfa.c) --------------------------------------------------------------- */

enum nfa_kind { NFA_SET, NFA_TOKEN, NFA_FORK, NFA_ACCEPT };

struct nfa_state {
    enum nfa_kind kind;
    int32_t what; /* SET: index of sets. TOKEN: id. FORK: the other successor */
    int32_t out;
};

struct nfa {
    struct nfa_state *states;
    int32_t nstates, cap;
    int32_t start;
    struct byte_set *sets; /* byte sets of the expressions */
    int nsets;
    uint8_t class_of[256]; /* bytes that no set distinguishes share a class */
    uint8_t sample[256];   /* one byte of each class */
    int nclasses;
};

/* Builds the NFA. Fails with ERR_USAGE beyond `most` states, or when the CPU time of w (may be NULL) is
 * used up. */
int nfa_build(struct nfa *n, struct gx *x, gx_node root, const struct vocab *v, int32_t most,
              struct effort *w, struct err *e);
void nfa_free(struct nfa *n);

/* ---- the lazy DFA (grammar.c) ------------------------------------------------------------------------ */

struct state {
    int32_t first, n; /* its NFA states: members[first .. first + n) */
    bool accepts;
    int32_t *row;   /* [nclasses] successors, or NULL */
    uint64_t *mask; /* cached, or NULL */
};

struct grammar {
    struct vocab *vocab;
    struct nfa nfa;
    struct state *states;
    int32_t nstates, cap;
    int32_t *members;
    int32_t nmembers, cap_members;
    int32_t *table; /* open addressing: state + 1, 0 free */
    uint32_t table_size;
    int32_t *seen; /* [nfa.nstates], last round whose closure contains the state */
    int32_t round;
    int32_t *stack, *set; /* [nfa.nstates] each: stack and result of the closure being computed */
    int32_t nset;
    size_t mask_words, mask_bytes;
    size_t bytes, most; /* used, allowed */
    struct effort *effort;
    struct err failure; /* kind ERR_NONE: none */
    uint64_t *none;     /* the empty mask after a failure */
};

/* Return the successor of a state, or GRAMMAR_DEAD if there is none or the grammar has failed. */
int32_t grammar_next_by_byte(struct grammar *g, int32_t state, uint8_t byte);
int32_t grammar_next_by_token(struct grammar *g, int32_t state, int32_t id);
void grammar_check_state(const struct grammar *g, int state); /* bug() for a state of another grammar */
