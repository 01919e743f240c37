/* grammar_nfa.c - compiles a grammar expression into an NFA.
 *
 * build(node, next) creates the states that match the node and continue with `next`, and returns the first
 * one. Because the automaton is built from its end, no state needs patching, and alternatives share their
 * tails.
 *
 * Dead ends are impossible: every expression matches some text, and every byte is a token (tokenizers
 * without that are rejected when they are opened), so any prefix can be completed, if necessary one byte
 * at a time. */
#include "grammar/grammar_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 2000, MAX_VISITS = 1 << 24 };

struct builder {
    struct nfa *nfa;
    const struct gx *x;
    const struct vocab *vocab;
    int32_t most; /* maximum number of states */
    int visits;   /* visited nodes: repetitions of the empty text take time but add no states */
    struct effort *effort;
    struct err *e;
    bool failed;
};

static int32_t refuse(struct builder *b, const char *why)
{
    if (!b->failed)
        err_set(b->e, ERR_USAGE, "the grammar is too large: %s", why);
    b->failed = true;
    return 0;
}

static int32_t add_state(struct builder *b, enum nfa_kind kind, int32_t what, int32_t out)
{
    struct nfa *n = b->nfa;
    if (n->nstates == b->most) {
        char why[64];
        snprintf(why, sizeof why, "more than %d states", (int)b->most);
        return refuse(b, why);
    }
    n->states = grammar_grow(n->states, n->nstates, &n->cap, 1, sizeof *n->states);
    n->states[n->nstates] = (struct nfa_state){.kind = kind, .what = what, .out = out};
    return n->nstates++;
}

static int32_t build_token(struct builder *b, const char *spelling, int32_t next)
{
    int32_t id = tokenizer_find(b->vocab->tokenizer, spelling);
    if (id < 0 || id >= b->vocab->size || !tokenizer_is_special(b->vocab->tokenizer, id)) {
        if (!b->failed)
            err_set(b->e, ERR_MODEL, "the tokenizer has no added token '%s', which this dialect needs",
                    spelling);
        b->failed = true;
        return 0;
    }
    return add_state(b, NFA_TOKEN, id, next);
}

static int32_t build(struct builder *b, gx_node node, int32_t next, int depth);

static int32_t build_repeat(struct builder *b, const struct gx_expr *expr, int32_t next, int depth)
{
    int32_t at = next;
    if (expr->max < 0) {
        at = add_state(b, NFA_FORK, next, next);
        int32_t body = build(b, expr->first, at, depth);
        b->nfa->states[at].out = body;
    } else {
        for (int i = expr->min; i < expr->max && !b->failed; i++)
            at = add_state(b, NFA_FORK, next, build(b, expr->first, at, depth));
    }
    for (int i = 0; i < expr->min && !b->failed; i++)
        at = build(b, expr->first, at, depth);
    return at;
}

static int32_t build(struct builder *b, gx_node node, int32_t next, int depth)
{
    const struct gx_expr *expr = &b->x->exprs[node];
    const gx_node *kids = b->x->kids + expr->first;
    int32_t at = next;
    if (b->failed)
        return 0;
    if (depth > MAX_DEPTH)
        return refuse(b, "nested too deep");
    if (++b->visits > MAX_VISITS)
        return refuse(b, "too many repetitions");
    if (effort_over(b->effort, 1)) {
        b->failed = true;
        return effort_error(b->effort, "compiling the grammar", b->e);
    }
    switch (expr->op) {
    case GX_OP_SET:
        return add_state(b, NFA_SET, expr->first, next);
    case GX_OP_TOKEN:
        return build_token(b, b->x->chars + expr->first, next);
    case GX_OP_SEQ:
        for (int i = expr->n - 1; i >= 0 && !b->failed; i--)
            at = build(b, kids[i], at, depth + 1);
        return at;
    case GX_OP_ALT:
        at = build(b, kids[expr->n - 1], next, depth + 1);
        for (int i = expr->n - 2; i >= 0 && !b->failed; i--)
            at = add_state(b, NFA_FORK, at, build(b, kids[i], next, depth + 1));
        return at;
    case GX_OP_REPEAT:
        return build_repeat(b, expr, next, depth + 1);
    }
    bug("an unknown grammar expression");
}

/* Splits the 256 bytes into classes, refining them by each set. */
static void make_classes(struct nfa *n)
{
    memset(n->class_of, 0, sizeof n->class_of);
    n->nclasses = 1;
    for (int i = 0; i < n->nsets; i++) {
        int inside[256], count = n->nclasses;
        bool has_outside[256] = {false};
        memset(inside, -1, sizeof inside);
        for (unsigned b = 0; b < 256; b++)
            if (!byte_set_has(&n->sets[i], b))
                has_outside[n->class_of[b]] = true;
        for (unsigned b = 0; b < 256; b++) {
            int c = n->class_of[b];
            if (!byte_set_has(&n->sets[i], b) || !has_outside[c])
                continue;
            if (inside[c] < 0)
                inside[c] = count++;
            n->class_of[b] = (uint8_t)inside[c];
        }
        n->nclasses = count;
    }
    for (int b = 255; b >= 0; b--)
        n->sample[n->class_of[b]] = (uint8_t)b;
}

int nfa_build(struct nfa *n, struct gx *x, gx_node root, const struct vocab *v, int32_t most,
              struct effort *w, struct err *e)
{
    *n = (struct nfa){.nsets = x->nsets};
    n->sets = xcalloc((unsigned long)x->nsets + 1, sizeof *n->sets);
    if (x->nsets)
        memcpy(n->sets, x->sets, (size_t)x->nsets * sizeof *n->sets);
    struct builder b = {.nfa = n, .x = x, .vocab = v, .most = most, .effort = w, .e = e};
    b.failed = gx_failed(x, e);
    n->start = build(&b, root, add_state(&b, NFA_ACCEPT, 0, 0), 0);
    if (b.failed) {
        nfa_free(n);
        return -1;
    }
    make_classes(n);
    return 0;
}

void nfa_free(struct nfa *n)
{
    free(n->states);
    free(n->sets);
    *n = (struct nfa){0};
}
