/* grammar.c - lazy DFA and token masks of a grammar (grammar.h).
 *
 * A DFA state is a set of NFA states (those that consume something, and accept), closed over forks and
 * stored once. Its row of successors, one per byte class, is filled on demand. A mask is computed by one
 * walk over the token trie with a stack of states: dead subtrees are skipped, and inside a free string the
 * rows are soon complete, so that a walk costs a few nanoseconds per node.
 *
 *     expressions (grammar_expr.c) -> NFA (grammar_nfa.c) -> states here x trie (grammar_vocab.c) */
#include "grammar/grammar_impl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNKNOWN = -2,           /* successor not computed yet */
    MASK_SHARE = 4,         /* a quarter of the memory is for masks, which are discarded together */
    MASK_MEMORY = 64 << 20, /* and at most this much */
    NFA_STATE_BYTES = 40,   /* including its entries in `seen`, `stack` and `set`, and spare capacity */
    DEFAULT_BYTES = 512 << 20,
    ALL_BYTES = 1 << 30, /* memory limit of the grammars of all threads */
    MAX_NFA = 1 << 21,   /* states */
};

/* ---- limits --------------------------------------------------------------------------------------- */

static atomic_size_t all_bytes;

static void account(struct grammar *g, ptrdiff_t more)
{
    g->bytes += (size_t)more;
    atomic_fetch_add(&all_bytes, (size_t)more);
}

/* Reserves memory. Returns false beyond a limit; the grammar has then failed. */
static bool reserve(struct grammar *g, size_t bytes)
{
    if (g->failure.kind)
        return false;
    if (bytes > g->most - g->bytes) {
        err_set(&g->failure, ERR_USAGE,
                "the grammar of the reply needs more than %zu MiB of memory; use a simpler schema or pattern",
                g->most >> 20);
        return false;
    }
    if (atomic_load(&all_bytes) + bytes > ALL_BYTES) {
        err_set(&g->failure, ERR_ENV, "the grammars of all replies need more than %d MiB; try again later",
                ALL_BYTES >> 20);
        return false;
    }
    account(g, (ptrdiff_t)bytes);
    return true;
}

/* Counts steps of work. Returns whether the grammar has failed. */
static bool worked(struct grammar *g, unsigned steps)
{
    if (!g->failure.kind && effort_over(g->effort, steps))
        effort_error(g->effort, "the grammar of the reply", &g->failure);
    return g->failure.kind;
}

bool grammar_failed(const struct grammar *g, struct err *e)
{
    if (g->failure.kind)
        err_set(e, g->failure.kind, "%s", g->failure.text);
    return g->failure.kind;
}

size_t grammar_bytes(const struct grammar *g)
{
    return g->bytes;
}

void grammar_set_effort(struct grammar *g, struct effort *w)
{
    g->effort = w;
}

/* ---- sets of NFA states -------------------------------------------------------------------------- */

static void close_begin(struct grammar *g)
{
    g->nset = 0;
    if (++g->round == INT32_MAX) {
        memset(g->seen, 0, (size_t)g->nfa.nstates * sizeof *g->seen);
        g->round = 1;
    }
}

/* Adds a state and all states to which its forks lead. */
static void close_add(struct grammar *g, int32_t from)
{
    int32_t top = 0;
    if (g->seen[from] == g->round)
        return;
    g->seen[from] = g->round;
    g->stack[top++] = from;
    for (; top; worked(g, 1)) {
        int32_t at = g->stack[--top];
        const struct nfa_state *s = &g->nfa.states[at];
        if (s->kind != NFA_FORK) {
            g->set[g->nset++] = at;
            continue;
        }
        for (int way = 0; way < 2; way++) {
            int32_t to = way ? s->what : s->out;
            if (g->seen[to] == g->round)
                continue;
            g->seen[to] = g->round;
            g->stack[top++] = to;
        }
    }
}

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t hash_set(const int32_t *set, int32_t n)
{
    uint32_t h = 2166136261u;
    for (int32_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)set[i]) * 16777619u;
    return h ^ h >> 15;
}

static bool table_grow(struct grammar *g)
{
    uint32_t size = g->table_size ? g->table_size * 2 : 1024;
    if (!reserve(g, (size - g->table_size) * sizeof *g->table))
        return false;
    g->table_size = size;
    free(g->table);
    g->table = xcalloc(g->table_size, sizeof *g->table);
    for (int32_t i = 0; i < g->nstates; i++) {
        uint32_t at = hash_set(g->members + g->states[i].first, g->states[i].n) & (g->table_size - 1);
        while (g->table[at])
            at = (at + 1) & (g->table_size - 1);
        g->table[at] = i + 1;
    }
    return true;
}

/* Adds the closure as a DFA state. Returns GRAMMAR_DEAD beyond the limit. Reserves twice the stored size,
 * because the arrays have spare capacity. */
static int32_t add_state(struct grammar *g)
{
    if (!reserve(g, 2 * (sizeof *g->states + (size_t)g->nset * sizeof *g->members)))
        return GRAMMAR_DEAD;
    g->states = grammar_grow(g->states, g->nstates, &g->cap, 1, sizeof *g->states);
    g->members = grammar_grow(g->members, g->nmembers, &g->cap_members, g->nset, sizeof *g->members);
    struct state s = {.first = g->nmembers, .n = g->nset};
    for (int32_t i = 0; i < g->nset; i++) {
        g->members[g->nmembers++] = g->set[i];
        s.accepts = s.accepts || g->nfa.states[g->set[i]].kind == NFA_ACCEPT;
    }
    g->states[g->nstates] = s;
    return g->nstates++;
}

/* Returns the DFA state of the closure; GRAMMAR_DEAD if it is empty. */
static int32_t close_end(struct grammar *g)
{
    if (!g->nset || g->failure.kind)
        return GRAMMAR_DEAD;
    if (g->nset > 1)
        qsort(g->set, (size_t)g->nset, sizeof *g->set, compare_ids);
    if ((uint32_t)g->nstates * 2 >= g->table_size && !table_grow(g))
        return GRAMMAR_DEAD;
    uint32_t at = hash_set(g->set, g->nset) & (g->table_size - 1);
    for (; g->table[at]; at = (at + 1) & (g->table_size - 1)) {
        const struct state *s = &g->states[g->table[at] - 1];
        if (s->n == g->nset && !memcmp(g->members + s->first, g->set, (size_t)g->nset * sizeof *g->set))
            return g->table[at] - 1;
    }
    int32_t added = add_state(g);
    if (added != GRAMMAR_DEAD)
        g->table[at] = added + 1;
    return added;
}

/* ---- transitions --------------------------------------------------------------------------------------- */

/* Returns the successors of a state by byte class (UNKNOWN: not computed), valid as long as the grammar;
 * NULL beyond the limit. */
static int32_t *row_of(struct grammar *g, int32_t state)
{
    if (!g->states[state].row) {
        if (!reserve(g, (size_t)g->nfa.nclasses * sizeof(int32_t)))
            return NULL;
        int32_t *row = xmalloc((unsigned long)g->nfa.nclasses, sizeof *row);
        for (int c = 0; c < g->nfa.nclasses; c++)
            row[c] = UNKNOWN;
        g->states[state].row = row;
    }
    return g->states[state].row;
}

static int32_t next_by_class(struct grammar *g, int32_t state, int class)
{
    const struct state s = g->states[state];
    if (worked(g, (unsigned)s.n))
        return GRAMMAR_DEAD;
    close_begin(g);
    for (int32_t i = 0; i < s.n; i++) {
        const struct nfa_state *m = &g->nfa.states[g->members[s.first + i]];
        if (m->kind == NFA_SET && byte_set_has(&g->nfa.sets[m->what], g->nfa.sample[class]))
            close_add(g, m->out);
    }
    int32_t to = close_end(g), *row = row_of(g, state);
    if (!row || g->failure.kind)
        return GRAMMAR_DEAD;
    return row[class] = to;
}

int32_t grammar_next_by_byte(struct grammar *g, int32_t state, uint8_t byte)
{
    int class = g->nfa.class_of[byte];
    const int32_t *row = row_of(g, state);
    int32_t to = row ? row[class] : GRAMMAR_DEAD;
    return to == UNKNOWN ? next_by_class(g, state, class) : to;
}

int32_t grammar_next_by_token(struct grammar *g, int32_t state, int32_t id)
{
    const struct state s = g->states[state];
    close_begin(g);
    for (int32_t i = 0; i < s.n; i++) {
        const struct nfa_state *m = &g->nfa.states[g->members[s.first + i]];
        if (m->kind == NFA_TOKEN && m->what == id)
            close_add(g, m->out);
    }
    return close_end(g);
}

void grammar_check_state(const struct grammar *g, int state)
{
    if (state < 0 || state >= g->nstates)
        bug("grammar state %d of %d", state, (int)g->nstates);
}

int grammar_start(struct grammar *g)
{
    return 0;
}

int grammar_advance(struct grammar *g, int state, int32_t token)
{
    if (state == GRAMMAR_DEAD)
        return GRAMMAR_DEAD;
    grammar_check_state(g, state);
    if (token < 0 || token >= g->vocab->size || g->failure.kind)
        return GRAMMAR_DEAD;
    effort_begin(g->effort);
    if (tokenizer_is_special(g->vocab->tokenizer, token))
        return grammar_next_by_token(g, state, token);
    size_t n;
    const char *s = tokenizer_bytes(g->vocab->tokenizer, token, &n);
    int32_t at = n ? state : GRAMMAR_DEAD;
    for (size_t i = 0; i < n && at != GRAMMAR_DEAD; i++)
        at = grammar_next_by_byte(g, at, (uint8_t)s[i]);
    return at;
}

bool grammar_accepts(struct grammar *g, int state)
{
    return state != GRAMMAR_DEAD && (grammar_check_state(g, state), g->states[state].accepts);
}

bool grammar_finished(struct grammar *g, int state)
{
    return grammar_accepts(g, state) && g->states[state].n == 1;
}

/* ---- masks --------------------------------------------------------------------------------------- */

static void drop_masks(struct grammar *g)
{
    for (int32_t i = 0; i < g->nstates; i++) {
        free(g->states[i].mask);
        g->states[i].mask = NULL;
    }
    account(g, -(ptrdiff_t)g->mask_bytes);
    g->mask_bytes = 0;
}

/* Computes a mask in one pass over the trie; row[d] has the successors of the state at depth d of the
 * path. Leaves, which are most of the nodes, need only the row of their parent. */
static void walk_trie(struct grammar *g, int32_t state, uint64_t *mask)
{
    const struct vocab *v = g->vocab;
    const uint8_t *class_of = g->nfa.class_of;
    int32_t at_depth[256];
    const int32_t *row[256];
    at_depth[0] = state;
    if (!(row[0] = row_of(g, state)))
        return;
    for (int32_t i = 1; i < v->nnodes && !worked(g, 1);) {
        const struct vocab_node *node = &v->nodes[i];
        int32_t to = row[node->depth - 1][class_of[node->byte]];
        if (to == UNKNOWN)
            to = next_by_class(g, at_depth[node->depth - 1], class_of[node->byte]);
        if (to == GRAMMAR_DEAD) {
            i = node->end;
            continue;
        }
        for (int32_t k = node->first; k < node[1].first; k++)
            mask[v->order[k] >> 6] |= 1ull << (v->order[k] & 63);
        if (node->end > ++i) {
            at_depth[node->depth] = to;
            if (!(row[node->depth] = row_of(g, to)))
                return;
        }
    }
}

/* Returns the empty mask of a failed grammar. */
static const uint64_t *nothing_allowed(struct grammar *g)
{
    if (!g->none)
        g->none = xcalloc(g->mask_words, sizeof *g->none);
    return g->none;
}

const uint64_t *grammar_mask(struct grammar *g, int state)
{
    if (g->failure.kind)
        return nothing_allowed(g);
    grammar_check_state(g, state);
    if (g->states[state].mask)
        return g->states[state].mask;
    size_t bytes = g->mask_words * sizeof(uint64_t);
    size_t most = g->most / MASK_SHARE < MASK_MEMORY ? g->most / MASK_SHARE : MASK_MEMORY;
    if (g->mask_bytes && g->mask_bytes + bytes > most)
        drop_masks(g);
    effort_begin(g->effort);
    reserve(g, bytes);
    uint64_t *mask = xcalloc(g->mask_words, sizeof *mask);
    walk_trie(g, state, mask);
    if (g->failure.kind) {
        free(mask);
        return nothing_allowed(g);
    }
    for (int32_t i = 0; i < g->states[state].n; i++) {
        const struct nfa_state *m = &g->nfa.states[g->members[g->states[state].first + i]];
        if (m->kind == NFA_TOKEN)
            mask[m->what >> 6] |= 1ull << (m->what & 63);
    }
    g->states[state].mask = mask;
    g->mask_bytes += bytes;
    return mask;
}

/* ---- life ----------------------------------------------------------------------------- */

struct grammar *grammar_compile(struct gx *x, gx_node root, const struct tokenizer *t, struct err *e)
{
    return grammar_compile_within(x, root, t, &(struct grammar_limits){0}, e);
}

/* Builds the NFA, which may use at most half of the memory. Returns -1 with e. */
static int build_nfa(struct grammar *g, struct gx *x, gx_node root, struct err *e)
{
    size_t most = g->most / 2 / NFA_STATE_BYTES;
    effort_begin(g->effort);
    if (nfa_build(&g->nfa, x, root, g->vocab, most < MAX_NFA ? (int32_t)most : MAX_NFA, g->effort, e))
        return -1;
    return reserve(g, (size_t)g->nfa.nstates * NFA_STATE_BYTES) ? 0 : (grammar_failed(g, e), -1);
}

struct grammar *grammar_compile_within(struct gx *x, gx_node root, const struct tokenizer *t,
                                       const struct grammar_limits *l, struct err *e)
{
    struct grammar *g = xcalloc(1, sizeof *g);
    g->vocab = vocab_acquire(t);
    g->mask_words = ((size_t)g->vocab->size + 63) / 64;
    g->most = l->bytes ? l->bytes : DEFAULT_BYTES;
    g->effort = l->effort;
    if (build_nfa(g, x, root, e)) {
        grammar_free(g);
        return NULL;
    }
    unsigned long n = (unsigned long)g->nfa.nstates;
    g->seen = xcalloc(n, sizeof *g->seen);
    g->stack = xmalloc(n, sizeof *g->stack);
    g->set = xmalloc(n, sizeof *g->set);
    close_begin(g);
    close_add(g, g->nfa.start);
    if (close_end(g) != GRAMMAR_DEAD)
        return g;
    grammar_failed(g, e);
    grammar_free(g);
    return NULL;
}

void grammar_free(struct grammar *g)
{
    if (!g)
        return;
    for (int32_t i = 0; i < g->nstates; i++) {
        free(g->states[i].row);
        free(g->states[i].mask);
    }
    account(g, -(ptrdiff_t)g->bytes);
    nfa_free(&g->nfa);
    vocab_release(g->vocab);
    free(g->none);
    free(g->states);
    free(g->members);
    free(g->table);
    free(g->seen);
    free(g->stack);
    free(g->set);
    free(g);
}
