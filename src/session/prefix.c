/* prefix.c - prefix cache of a shared engine (prefix.h). The calling thread has acquired the engine. */
#include "session/prefix.h"

#include "session/session_impl.h"

/* ---- lengths --------------------------------------------------------------------------------- */

/* Returns the multiple to which the length of an entry of n tokens is rounded down (see language_chunk). */
static int64_t granularity(const struct engine *g, int64_t n)
{
    int64_t chunk = config_chunk(&g->config.lm), rows = g->language.rows;
    bool prefill_chunks = g->backend->ops->host_alloc || g->types.ssm == DT_F16 || LANGUAGE_ROWS % chunk != 0;
    return !prefill_chunks ? chunk : n < rows && LANGUAGE_ROWS < rows ? LANGUAGE_ROWS : rows;
}

static int64_t round_down(const struct engine *g, int64_t n)
{
    return n > 0 ? n / granularity(g, n) * granularity(g, n) : 0;
}

static int64_t common_prefix(const struct session *a, const struct session *b, int64_t most)
{
    int64_t n = 0;
    while (n < most && n < a->n && n < b->n && a->tokens[n] == b->tokens[n])
        n++;
    return n;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Returns the index of the longest entry that is a prefix of the first `most` tokens of s, or -1. */
static int find(const struct prefix_cache *p, const struct session *s, int64_t most)
{
    int best = -1;
    for (int i = 0; i < p->n; i++)
        if (p->entries[i]->n <= most && common_prefix(p->entries[i], s, most) == p->entries[i]->n &&
            (best < 0 || p->entries[i]->n > p->entries[best]->n))
            best = i;
    return best;
}

/* Returns the longest prefix that the first `most` tokens of s share with any entry, rounded to a valid
 * entry length. */
static int64_t shared_length(const struct prefix_cache *p, const struct session *s, int64_t most)
{
    int64_t best = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t n = round_down(s->engine, common_prefix(p->entries[i], s, most));
        best = n > best ? n : best;
    }
    return best;
}

static void add_entry(struct prefix_cache *p, struct session *s)
{
    int at = p->n;
    if (p->n < PREFIX_MAX) {
        p->n++;
    } else {
        at = 0;
        for (int i = 1; i < p->n; i++)
            if (p->used[i] < p->used[at])
                at = i;
        session_free(p->entries[at]);
    }
    p->entries[at] = s;
    p->used[at] = ++p->clock;
}

/* Copies the state of an entry into a session that begins with its tokens. */
static int copy_entry(struct session *s, struct session *entry, struct err *e)
{
    if (session_pin(entry, 0, e))
        return -1;
    int rc = session_pin(s, 0, e);
    if (rc == 0) {
        state_copy(&s->state, &entry->state, &s->engine->config.lm, s->engine->backend);
        s->stats.reused = entry->n;
        session_unpin(s);
    }
    session_unpin(entry);
    return rc;
}

/* Creates an entry from the first n tokens of s. Its prefill continues the longest entry that is a prefix
 * of it. */
static int make_entry(struct prefix_cache *p, const struct session *s, int64_t n, struct err *e)
{
    struct session *entry = session_new(s->engine, 0);
    int from = find(p, s, n), rc = 0;
    session_set_cancel(entry, s->client.stop);
    for (int64_t i = 0; i < n; i++)
        session_push(entry, s->tokens[i]);
    if (from >= 0)
        rc = copy_entry(entry, p->entries[from], e);
    while (rc == 0 && session_pending(entry))
        rc = session_prefill_chunk(entry, e);
    session_set_cancel(entry, NULL);
    if (rc)
        session_free(entry);
    else
        add_entry(p, entry);
    return rc;
}

int prefix_reuse(struct prefix_cache *p, struct session *s, struct err *e)
{
    const struct engine *g = s->engine;
    int64_t all = round_down(g, s->n - 2), common = shared_length(p, s, all);
    struct err why = ERR_INIT;
    int rc = 0, at = find(p, s, all);
    if (s->state.length || s->n_images || all == 0 || (g->state_pool.bound && !g->backend->ops->host_alloc))
        return 0; /* entries that cannot be spilled would take memory from sessions */
    if (common && (at < 0 || p->entries[at]->n < common))
        rc = make_entry(p, s, common, &why);
    if (rc == 0 && common < all)
        rc = make_entry(p, s, all, &why);
    if (rc == 0) {
        at = find(p, s, all);
        p->used[at] = ++p->clock;
        rc = copy_entry(s, p->entries[at], &why);
    }
    if (rc && why.kind == ERR_STOPPED)
        return err_set(e, why.kind, "%s", why.text);
    return 0;
}

void prefix_cache_free(struct prefix_cache *p)
{
    while (p->n)
        session_free(p->entries[--p->n]);
}
