/* grammar_vocab.c - trie of a tokenizer's plain tokens, shared by all its grammars.
 *
 * Added tokens are not in it: a grammar names them individually, so that text can never spell them. Tokens
 * are sorted by their bytes, and one pass over neighbours builds the trie in depth-first order. */
#include "grammar/grammar_impl.h"

#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 255 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vocab *all;

static int compare_tokens(const void *pa, const void *pb, void *tokenizer)
{
    const int32_t *a = pa, *b = pb;
    size_t na, nb;
    const char *sa = tokenizer_bytes(tokenizer, *a, &na), *sb = tokenizer_bytes(tokenizer, *b, &nb);
    int c = memcmp(sa, sb, na < nb ? na : nb);
    if (c)
        return c;
    if (na != nb)
        return na < nb ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* Sorts the plain tokens. Returns the maximum number of trie nodes that they need. */
static int64_t sort_tokens(struct vocab *v)
{
    int64_t nodes = 0;
    v->order = xmalloc((unsigned long)v->size + 1, sizeof *v->order);
    for (int32_t id = 0; id < v->size; id++) {
        size_t n;
        tokenizer_bytes(v->tokenizer, id, &n);
        if (!n || n > MAX_DEPTH || tokenizer_is_special(v->tokenizer, id))
            continue;
        v->order[v->ntokens++] = id;
        nodes += (int64_t)n;
    }
    qsort_r(v->order, (size_t)v->ntokens, sizeof *v->order, compare_tokens, (void *)v->tokenizer);
    return nodes;
}

/* Builds the trie. An inner node without a token of its own has the same `first` as its first child. */
static void build_trie(struct vocab *v)
{
    int64_t most = sort_tokens(v) + 2;
    int32_t open[MAX_DEPTH + 1] = {0}; /* open[d]: the node of depth d on the current path */
    size_t depth = 0;
    const char *path = "";
    v->nodes = xcalloc((unsigned long)most, sizeof *v->nodes);
    v->nnodes = 1;
    for (int32_t i = 0; i < v->ntokens; i++) {
        size_t n, common = 0;
        const char *s = tokenizer_bytes(v->tokenizer, v->order[i], &n);
        while (common < depth && common < n && path[common] == s[common])
            common++;
        for (; depth > common; depth--)
            v->nodes[open[depth]].end = v->nnodes;
        for (; depth < n; depth++) {
            open[depth + 1] = v->nnodes;
            v->nodes[v->nnodes++] =
                (struct vocab_node){.first = i, .byte = (uint8_t)s[depth], .depth = (uint8_t)(depth + 1)};
        }
        path = s;
    }
    for (; depth > 0; depth--)
        v->nodes[open[depth]].end = v->nnodes;
    v->nodes[0].end = v->nnodes;
    v->nodes[v->nnodes].first = v->ntokens;
    v->nodes = xrealloc(v->nodes, (unsigned long)v->nnodes + 1, sizeof *v->nodes);
}

struct vocab *vocab_acquire(const struct tokenizer *t)
{
    LOCKED(&lock);
    struct vocab *v = all;
    while (v && v->tokenizer != t)
        v = v->next;
    if (!v) {
        v = xcalloc(1, sizeof *v);
        v->tokenizer = t;
        v->size = tokenizer_size(t);
        build_trie(v);
        v->next = all;
        all = v;
    }
    v->users++;
    return v;
}

void vocab_release(struct vocab *v)
{
    if (!v)
        return;
    LOCKED(&lock);
    if (--v->users == 0) {
        struct vocab **at = &all;
        while (*at != v)
            at = &(*at)->next;
        *at = v->next;
        free(v->nodes);
        free(v->order);
        free(v);
    }
}
