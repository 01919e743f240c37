/* prefix.c - see prefix.h.  The calling thread has the engine to itself. */
#include "session/prefix.h"

#include "session/session_impl.h"

/* ---- lengths -------------------------------------------------------------------------------------------------- */

/* Where a text may be cut: after multiples of this. */
static int64_t step_of(const struct engine *g)
{
    int64_t chunk = g->config.lm.ssm.chunk;
    bool by_pieces = g->backend->ops->host_alloc || g->types.ssm == DT_F16 || LANGUAGE_ROWS % chunk != 0;
    return by_pieces ? LANGUAGE_ROWS : chunk;
}

static int64_t whole_steps(const struct engine *g, int64_t n)
{
    return n > 0 ? n / step_of(g) * step_of(g) : 0;
}

static int64_t in_common(const struct session *a, const struct session *b, int64_t most)
{
    int64_t n = 0;
    while (n < most && n < a->n && n < b->n && a->tokens[n] == b->tokens[n])
        n++;
    return n;
}

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

/* The longest text that is all at the beginning of s, in its first `most` tokens; -1: none. */
static int find(const struct prefixes *p, const struct session *s, int64_t most)
{
    int best = -1;
    for (int i = 0; i < p->n; i++)
        if (p->kept[i]->n <= most && in_common(p->kept[i], s, most) == p->kept[i]->n &&
            (best < 0 || p->kept[i]->n > p->kept[best]->n))
            best = i;
    return best;
}

/* How much of its first `most` tokens s has in common with any text. */
static int64_t shared_length(const struct prefixes *p, const struct session *s, int64_t most)
{
    int64_t best = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t n = whole_steps(s->engine, in_common(p->kept[i], s, most));
        best = n > best ? n : best;
    }
    return best;
}

static void put(struct prefixes *p, struct session *s)
{
    int at = p->n;
    if (p->n < PREFIX_KEPT) {
        p->n++;
    } else {
        at = 0;
        for (int i = 1; i < p->n; i++)
            if (p->used[i] < p->used[at])
                at = i;
        session_free(p->kept[at]);
    }
    p->kept[at] = s;
    p->used[at] = ++p->clock;
}

/* The state of a kept text becomes that of a session whose tokens begin with it. */
static int adopt(struct session *s, struct session *kept, struct err *e)
{
    if (session_pin(kept, 0, e))
        return -1;
    int rc = session_pin(s, 0, e);
    if (rc == 0) {
        state_copy(&s->state, &kept->state, &s->engine->config.lm, s->engine->backend);
        s->stats.reused = kept->n;
        session_unpin(s);
    }
    session_unpin(kept);
    return rc;
}

/* The first n tokens of s, read behind what is kept of them, are kept. */
static int keep(struct prefixes *p, const struct session *s, int64_t n, struct err *e)
{
    struct session *made = session_new(s->engine, 0);
    int from = find(p, s, n), rc = 0;
    session_set_cancel(made, s->client.stop);
    for (int64_t i = 0; i < n; i++)
        session_push(made, s->tokens[i]);
    if (from >= 0)
        rc = adopt(made, p->kept[from], e);
    while (rc == 0 && session_pending(made))
        rc = session_prefill_chunk(made, e);
    session_set_cancel(made, NULL);
    if (rc)
        session_free(made);
    else
        put(p, made);
    return rc;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

int prefix_take(struct prefixes *p, struct session *s, struct err *e)
{
    const struct engine *g = s->engine;
    int64_t all = whole_steps(g, s->n - 2), common = shared_length(p, s, all);
    struct err why = ERR_INIT;
    int rc = 0, at = find(p, s, all);
    if (s->state.length || s->n_images || all == 0 || (g->state_pool.bound && !g->backend->ops->host_alloc))
        return 0; /* what cannot be sent away would keep others from their room */
    if (common && (at < 0 || p->kept[at]->n < common))
        rc = keep(p, s, common, &why);
    if (rc == 0 && common < all)
        rc = keep(p, s, all, &why);
    if (rc == 0) {
        at = find(p, s, all);
        p->used[at] = ++p->clock;
        rc = adopt(s, p->kept[at], &why);
    }
    if (rc && why.kind == ERR_STOPPED)
        return err_set(e, why.kind, "%s", why.text);
    return 0;
}

void prefixes_free(struct prefixes *p)
{
    while (p->n)
        session_free(p->kept[--p->n]);
}
