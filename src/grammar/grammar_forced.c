/* grammar_forced.c - finds the tokens for which a grammar leaves no choice (grammar.h). */
#include "grammar/grammar_impl.h"

#include <string.h>

enum { MAX_FORCED = 4096 }; /* bytes */

/* Returns the only symbol that may follow: a byte, or 256 + the id of an added token; -1 if there is a
 * choice. */
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

/* Returns whether text[0..n), which leads to `state`, is a proper prefix of a token that is allowed from
 * there. */
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
        if (grammar_next_by_byte(g, state, v->nodes[child].byte) != GRAMMAR_DEAD)
            return true;
    return false;
}

/* Appends the forced text up to the first token for which a longer one could cover the end. Returns the
 * state after the last appended token. */
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
    *after = state;
    if (g->failure.kind)
        return 0;
    grammar_check_state(g, state);
    effort_begin(g->effort);
    int32_t at = state;
    for (bool more = true; more && !g->failure.kind;) {
        int32_t end = at, symbol;
        size_t n = 0;
        while ((symbol = only_symbol(g, end)) >= 0 && symbol < 256 && n < sizeof text) {
            int32_t to = grammar_next_by_byte(g, end, (uint8_t)symbol);
            if (to == GRAMMAR_DEAD)
                break; /* the grammar has failed */
            text[n++] = (char)symbol;
            end = to;
        }
        if (n)
            at = put_forced_text(g, at, text, n, symbol < 256, end, out);
        more = symbol >= 256 && at == end;
        if (more) {
            tokens_push(out, symbol - 256);
            at = grammar_next_by_token(g, at, symbol - 256);
        }
    }
    *after = at;
    return (int)(out->n - before);
}
