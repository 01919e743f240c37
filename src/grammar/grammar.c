/* grammar.c - the lazy DFA, and masks of whole tokens.
 *
 * A DFA state is a set of NFA states (those that consume something, and accept), closed over forks and stored
 * once.  Its row of successors, one for each byte class, is filled on demand.  A mask is one walk over the
 * token trie with a stack of states: a dead subtree is skipped, and inside a free string the rows are soon
 * complete, so that a walk costs a few nanoseconds a node.
 *
 *   expressions (grammar_expr.c) -> NFA (grammar_nfa.c) -> states here x trie (grammar_vocab.c)
 */
#include "grammar/grammar_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNKNOWN = -2,           /* a successor not computed yet */
    MAX_STATES = 1 << 19,   /* far above any dialect: guards against a runaway */
    MASK_MEMORY = 64 << 20, /* bytes of cached masks */
    MAX_FORCED = 4096,      /* bytes */
};

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
    int32_t *seen; /* [nfa.nstates] the last round whose closure has it */
    int32_t round;
    int32_t *stack, *set; /* of the closure being computed: [nfa.nstates] each */
    int32_t nset;
    size_t mask_words, mask_bytes;
};

/* ---- sets of NFA states -------------------------------------------------------------------------- */

static void close_begin(struct grammar *g)
{
    g->nset = 0;
    g->round++;
}

/* Adds a state and all states that its forks lead to. */
static void close_add(struct grammar *g, int32_t from)
{
    int32_t top = 0;
    if (g->seen[from] == g->round)
        return;
    g->seen[from] = g->round;
    g->stack[top++] = from;
    while (top) {
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

static void table_grow(struct grammar *g)
{
    g->table_size = g->table_size ? g->table_size * 2 : 1024;
    free(g->table);
    g->table = xcalloc(g->table_size, sizeof *g->table);
    for (int32_t i = 0; i < g->nstates; i++) {
        uint32_t at = hash_set(g->members + g->states[i].first, g->states[i].n) & (g->table_size - 1);
        while (g->table[at])
            at = (at + 1) & (g->table_size - 1);
        g->table[at] = i + 1;
    }
}

static int32_t add_state(struct grammar *g)
{
    if (g->nstates == MAX_STATES)
        die(ERR_FAILED, "the grammar needs more than %d states", MAX_STATES);
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

/* The DFA state of the closure; GRAMMAR_DEAD when it is empty. */
static int32_t close_end(struct grammar *g)
{
    if (!g->nset)
        return GRAMMAR_DEAD;
    if (g->nset > 1)
        qsort(g->set, (size_t)g->nset, sizeof *g->set, compare_ids);
    if ((uint32_t)g->nstates * 2 >= g->table_size)
        table_grow(g);
    uint32_t at = hash_set(g->set, g->nset) & (g->table_size - 1);
    for (; g->table[at]; at = (at + 1) & (g->table_size - 1)) {
        const struct state *s = &g->states[g->table[at] - 1];
        if (s->n == g->nset && !memcmp(g->members + s->first, g->set, (size_t)g->nset * sizeof *g->set))
            return g->table[at] - 1;
    }
    int32_t added = add_state(g);
    g->table[at] = added + 1;
    return added;
}

/* ---- transitions --------------------------------------------------------------------------------------- */

/* The successors of a state by byte class, UNKNOWN where not computed; valid as long as the grammar. */
static int32_t *row_of(struct grammar *g, int32_t state)
{
    if (!g->states[state].row) {
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
    close_begin(g);
    for (int32_t i = 0; i < s.n; i++) {
        const struct nfa_state *m = &g->nfa.states[g->members[s.first + i]];
        if (m->kind == NFA_SET && byte_set_has(&g->nfa.sets[m->what], g->nfa.sample[class]))
            close_add(g, m->out);
    }
    return row_of(g, state)[class] = close_end(g);
}

static int32_t next_by_byte(struct grammar *g, int32_t state, uint8_t byte)
{
    int class = g->nfa.class_of[byte];
    int32_t to = row_of(g, state)[class];
    return to == UNKNOWN ? next_by_class(g, state, class) : to;
}

static int32_t next_by_token(struct grammar *g, int32_t state, int32_t id)
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

static void check_state(const struct grammar *g, int state)
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
    check_state(g, state);
    if (token < 0 || token >= g->vocab->size)
        return GRAMMAR_DEAD;
    if (tokenizer_is_special(g->vocab->tokenizer, token))
        return next_by_token(g, state, token);
    size_t n;
    const char *s = tokenizer_bytes(g->vocab->tokenizer, token, &n);
    int32_t at = n ? state : GRAMMAR_DEAD;
    for (size_t i = 0; i < n && at != GRAMMAR_DEAD; i++)
        at = next_by_byte(g, at, (uint8_t)s[i]);
    return at;
}

bool grammar_accepts(struct grammar *g, int state)
{
    return state != GRAMMAR_DEAD && (check_state(g, state), g->states[state].accepts);
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
    g->mask_bytes = 0;
}

/* One pass over the trie; row[d] has the successors of the state at depth d of the path.  Leaves, which most
 * nodes are, need only the row of their parent. */
static void walk_trie(struct grammar *g, int32_t state, uint64_t *mask)
{
    const struct vocab *v = g->vocab;
    const uint8_t *class_of = g->nfa.class_of;
    int32_t at_depth[256];
    const int32_t *row[256];
    at_depth[0] = state;
    row[0] = row_of(g, state);
    for (int32_t i = 1; i < v->nnodes;) {
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
            row[node->depth] = row_of(g, to);
        }
    }
}

const uint64_t *grammar_mask(struct grammar *g, int state)
{
    check_state(g, state);
    if (g->states[state].mask)
        return g->states[state].mask;
    size_t bytes = g->mask_words * sizeof(uint64_t);
    if (g->mask_bytes + bytes > MASK_MEMORY)
        drop_masks(g);
    uint64_t *mask = xcalloc(g->mask_words, sizeof *mask);
    walk_trie(g, state, mask);
    for (int32_t i = 0; i < g->states[state].n; i++) {
        const struct nfa_state *m = &g->nfa.states[g->members[g->states[state].first + i]];
        if (m->kind == NFA_TOKEN)
            mask[m->what >> 6] |= 1ull << (m->what & 63);
    }
    g->states[state].mask = mask;
    g->mask_bytes += bytes;
    return mask;
}

/* ---- forced tokens ------------------------------------------------------------------------------ */

/* The only symbol that may follow: a byte, or 256 + the id of an added token; -1 when there is a choice. */
static int32_t only_symbol(const struct grammar *g, int32_t state)
{
    const struct state *s = &g->states[state];
    struct byte_set bytes = {0};
    int32_t token = -1;
    if (s->accepts)
        return -1;
    for (int32_t i = 0; i < s->n; i++) {
        const struct nfa_state *m = &g->nfa.states[g->members[s->first + i]];
        if (m->kind == NFA_TOKEN) {
            if (token >= 0 && token != m->what)
                return -1;
            token = m->what;
        } else if (m->kind == NFA_SET) {
            for (int w = 0; w < 4; w++)
                bytes.bits[w] |= g->nfa.sets[m->what].bits[w];
        }
    }
    int count = 0, byte = 0;
    for (int w = 0; w < 4; w++) {
        count += __builtin_popcountll(bytes.bits[w]);
        if (bytes.bits[w])
            byte = w * 64 + __builtin_ctzll(bytes.bits[w]);
    }
    if (token >= 0)
        return count ? -1 : 256 + token;
    return count == 1 ? byte : -1;
}

/* Whether text[0..n), after which the state is `state`, is a proper prefix of a token that is allowed to go
 * on from there. */
static bool longer_token_allowed(struct grammar *g, const char *text, size_t n, int32_t state)
{
    const struct vocab *v = g->vocab;
    int32_t at = 0;
    for (size_t k = 0; k < n; k++) {
        int32_t child = at + 1, end = v->nodes[at].end;
        while (child < end && v->nodes[child].byte != (uint8_t)text[k])
            child = v->nodes[child].end;
        if (child >= end)
            return false;
        at = child;
    }
    for (int32_t child = at + 1; child < v->nodes[at].end; child = v->nodes[child].end)
        if (next_by_byte(g, state, v->nodes[child].byte) != GRAMMAR_DEAD)
            return true;
    return false;
}

/* Appends the forced text up to the first token for which a longer one could cover the end; returns the state
 * after what was appended. */
static int32_t put_forced_text(struct grammar *g, int32_t from, const char *text, size_t n, bool open,
                               int32_t end, struct tokens *out)
{
    struct tokens ids = {0};
    size_t at = 0;
    tokenizer_encode(g->vocab->tokenizer, text, n, false, &ids);
    for (int64_t i = 0; i < ids.n; i++) {
        size_t len;
        tokenizer_bytes(g->vocab->tokenizer, ids.ids[i], &len);
        int32_t to = grammar_advance(g, from, ids.ids[i]);
        if (to == GRAMMAR_DEAD || (open && longer_token_allowed(g, text + at, n - at, end)))
            break;
        tokens_push(out, ids.ids[i]);
        from = to;
        at += len;
    }
    tokens_free(&ids);
    return from;
}

int grammar_forced(struct grammar *g, int state, struct tokens *out, int *after)
{
    int64_t before = out->n;
    char text[MAX_FORCED];
    check_state(g, state);
    int32_t at = state;
    for (bool more = true; more;) {
        int32_t end = at, symbol;
        size_t n = 0;
        while ((symbol = only_symbol(g, end)) >= 0 && symbol < 256 && n < sizeof text) {
            text[n++] = (char)symbol;
            end = next_by_byte(g, end, (uint8_t)symbol);
        }
        if (n)
            at = put_forced_text(g, at, text, n, symbol < 256, end, out);
        more = symbol >= 256 && at == end;
        if (more) {
            tokens_push(out, symbol - 256);
            at = next_by_token(g, at, symbol - 256);
        }
    }
    *after = at;
    return (int)(out->n - before);
}

/* ---- life ----------------------------------------------------------------------------- */

struct grammar *grammar_compile(const struct gx *x, gx_node root, const struct tokenizer *t, struct err *e)
{
    struct grammar *g = xcalloc(1, sizeof *g);
    g->vocab = vocab_acquire(t);
    g->mask_words = ((size_t)g->vocab->size + 63) / 64;
    if (nfa_build(&g->nfa, x, root, g->vocab, e)) {
        grammar_free(g);
        return NULL;
    }
    unsigned long n = (unsigned long)g->nfa.nstates;
    g->seen = xcalloc(n, sizeof *g->seen);
    g->stack = xmalloc(n, sizeof *g->stack);
    g->set = xmalloc(n, sizeof *g->set);
    close_begin(g);
    close_add(g, g->nfa.start);
    close_end(g);
    return g;
}

void grammar_free(struct grammar *g)
{
    if (!g)
        return;
    for (int32_t i = 0; i < g->nstates; i++) {
        free(g->states[i].row);
        free(g->states[i].mask);
    }
    nfa_free(&g->nfa);
    vocab_release(g->vocab);
    free(g->states);
    free(g->members);
    free(g->table);
    free(g->seen);
    free(g->stack);
    free(g->set);
    free(g);
}
