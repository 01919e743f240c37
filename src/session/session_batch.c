/* session_batch.c - continuous batching: decodes one token of many sessions, then computes their logits or
 * samples.
 *
 * The rows go through the model together, so that a weight is read once for all of them, in groups of up
 * to LANGUAGE_SESSIONS sessions that fit in the state pool. Results are bit-identical to decoding each
 * session alone. A batch consists of the sessions of one caller or, in a shared engine, those of all
 * waiting threads.
 *
 * A session with several pending tokens, such as tokens forced by a grammar, normally gets its own
 * prefill, which costs a pass over the weights. If a GPU decodes a batch of MIXED_MIN_BATCH or more, its
 * pending tokens are added to the following batches instead, one token in each, until only the last is
 * pending: these passes are computed anyway. */
#include "ops/sampling.h"
#include "session/session_impl.h"

#include "base/clock.h"

#include <stdlib.h>

struct batch_request;

struct batch_item {
    struct session *session;
    const struct sampler *how; /* NULL: compute logits */
    struct sampled *out;
    struct batch_request *request;
    bool done;
};

struct batch_request { /* one caller's items, all logits or all sampling, of one engine */
    struct scheduler_request request;
    struct batch_item *items;
    int n;
    struct err *e;
    int rc;
};

enum {
    MIXED_MIN_BATCH = 4,   /* minimum batch size for mixing prefill into decoding */
    MIXED_MAX_PENDING = 16 /* maximum pending tokens of a session that is mixed in */
};

/* ---- groups ---------------------------------------------------------------------------------- */

static struct engine *engine_of(const struct batch_item *s)
{
    return s->session->engine;
}

/* Sessions whose next pending token is computed in one pass. */
struct group {
    int n;
    struct lm_state *states[LANGUAGE_SESSIONS];
    struct session *sessions[LANGUAGE_SESSIONS];
    int32_t ids[LANGUAGE_SESSIONS];
};

/* Collects those of n <= LANGUAGE_SESSIONS sessions that have a pending token. */
static void gather_pending(struct group *g, struct batch_item *const *s, int n)
{
    g->n = 0;
    for (int i = 0; i < n; i++) {
        if (session_pending(s[i]->session) == 0)
            continue;
        g->sessions[g->n] = s[i]->session;
        g->states[g->n] = &s[i]->session->state;
        g->ids[g->n++] = s[i]->session->tokens[s[i]->session->state.length];
    }
}

static void count_decoded(const struct group *g, int64_t start)
{
    double ms = clock_ms_since(start) / g->n;
    for (int i = 0; i < g->n; i++) {
        g->sessions[i]->stats.decoded++;
        g->sessions[i]->stats.decode_ms += ms;
    }
}

/* Computes the next pending token of n <= LANGUAGE_SESSIONS sessions; those without one are skipped. */
static void decode_group(struct batch_item *const *s, int n)
{
    struct group g;
    int64_t start = clock_ns();
    gather_pending(&g, s, n);
    if (g.n == 0)
        return;
    language_decode_batch(&g.sessions[0]->engine->language, g.states, g.n, g.ids);
    count_decoded(&g, start);
}

static void logits_group(struct batch_item *const *s, int n)
{
    struct lm_state *states[LANGUAGE_SESSIONS] = {NULL};
    float *logits[LANGUAGE_SESSIONS] = {NULL};
    for (int i = 0; i < n; i++) {
        states[i] = &s[i]->session->state;
        logits[i] = s[i]->session->logits;
    }
    language_logits_batch(&engine_of(s[0])->language, states, n, logits);
    for (int i = 0; i < n; i++)
        s[i]->session->logits_at = s[i]->session->n;
}

static void sample_group(struct batch_item *const *s, int n)
{
    struct lm_state *states[LANGUAGE_SESSIONS];
    struct sampler how[LANGUAGE_SESSIONS];
    struct sampled out[LANGUAGE_SESSIONS];
    for (int i = 0; i < n; i++) {
        states[i] = &s[i]->session->state;
        how[i] = *s[i]->how;
    }
    language_sample_batch(&engine_of(s[0])->language, states, n, tokenizer_size(engine_of(s[0])->tokenizer),
                          how, out);
    for (int i = 0; i < n; i++)
        *s[i]->out = out[i];
}

/* Computes the next pending token of n sessions that all have one, and samples the token after it for the
 * first k. */
static void decode_sample_group(struct batch_item *const *s, int n, int k)
{
    struct group g;
    struct sampler how[LANGUAGE_SESSIONS];
    struct sampled out[LANGUAGE_SESSIONS];
    int64_t start = clock_ns();
    gather_pending(&g, s, n);
    for (int i = 0; i < k; i++)
        how[i] = *s[i]->how;
    language_decode_sample_batch(&engine_of(s[0])->language, g.states, n, g.ids, k,
                                 tokenizer_size(engine_of(s[0])->tokenizer), how, out);
    count_decoded(&g, start);
    for (int i = 0; i < k; i++) {
        *s[i]->out = out[i];
        s[i]->done = true;
    }
}

enum item_kind { ITEM_LOGITS, ITEM_SAMPLE, ITEM_PREFILL };

static enum item_kind kind_of(const struct batch_item *s)
{
    return session_pending(s->session) > 1 ? ITEM_PREFILL : s->how ? ITEM_SAMPLE : ITEM_LOGITS;
}

/* Computes logits or samples for the leading items that have the same kind as the first (n <=
 * LANGUAGE_SESSIONS); returns their number. */
static int finish_some(struct batch_item *const *s, int n, const enum item_kind *kinds)
{
    int k = 1;
    while (k < n && kinds[k] == kinds[0])
        k++;
    if (kinds[0] == ITEM_PREFILL)
        return k;
    int64_t start = clock_ns();
    (kinds[0] == ITEM_SAMPLE ? sample_group : logits_group)(s, k);
    double ms = clock_ms_since(start) / k;
    for (int i = 0; i < k; i++) {
        s[i]->session->stats.decode_ms += ms;
        s[i]->done = true;
    }
    return k;
}

/* Returns the number of sampled items if every other item is mixed prefill, so that one fused pass
 * suffices; else 0. */
static int sampled_first(struct batch_item *const *s, int n, const enum item_kind *kinds)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (session_pending(s[i]->session) == 0 || kinds[i] == ITEM_LOGITS)
            return 0;
        k += kinds[i] == ITEM_SAMPLE;
    }
    return k;
}

static void compute_group(struct batch_item *const *s, int n)
{
    enum item_kind kinds[LANGUAGE_SESSIONS];
    for (int i = 0; i < n; i++)
        kinds[i] = kind_of(s[i]);
    int k = sampled_first(s, n, kinds);
    if (k) {
        decode_sample_group(s, n, k);
    } else {
        decode_group(s, n);
        for (int i = 0; i < n;)
            i += finish_some(s + i, n - i, kinds + i);
    }
    for (int i = 0; i < n; i++)
        session_unpin(s[i]->session);
}

/* Pins as many of the first items as fit in memory. Returns 0 if not even the first fits; its request then
 * fails. */
static int pin_group(struct batch_item *const *s, int n)
{
    int k = 1;
    if (session_pin(s[0]->session, 0, s[0]->request->e)) {
        s[0]->request->rc = -1;
        s[0]->done = true;
        return 0;
    }
    while (k < LANGUAGE_SESSIONS && k < n && session_pin(s[k]->session, 0, NULL) == 0)
        k++;
    return k;
}

/* Computes one pass over items sorted by kind, one group at a time. */
static void compute_items(struct batch_item *const *s, int n)
{
    for (int first = 0, k; first < n; first += k ? k : 1) {
        k = pin_group(s + first, n - first);
        if (k)
            compute_group(s + first, k);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Appends the unfinished items of one kind of a request to out[n...]; returns the new number. */
static int collect(const struct batch_request *b, enum item_kind kind, struct batch_item **out, int n)
{
    for (int i = 0; i < b->n; i++)
        if (!b->items[i].done && kind_of(&b->items[i]) == kind)
            out[n++] = &b->items[i];
    return n;
}

static void compute_requests(struct scheduler_request *requests, struct batch_item **items)
{
    int n = 0;
    for (enum item_kind kind = ITEM_LOGITS; kind <= ITEM_PREFILL; kind++)
        for (struct scheduler_request *w = requests; w; w = w->next)
            n = collect((const struct batch_request *)w, kind, items, n);
    compute_items(items, n);
}

void session_serve(void *arg, struct scheduler_request *requests)
{
    struct engine *g = arg;
    unsigned long most = 1;
    for (struct scheduler_request *w = requests; w; w = w->next)
        most += (unsigned long)((const struct batch_request *)w)->n;
    struct batch_item **items = xmalloc(most, sizeof(struct batch_item *));
    engine_enter(g, NULL);
    compute_requests(requests, items);
    engine_leave(g);
    free(items);
}

static bool can_mix_prefill(struct session *s, int batch_size)
{
    return batch_size >= MIXED_MIN_BATCH && session_backend(s)->ops->host_alloc && s->state.length > 0 &&
           session_pending(s) <= MIXED_MAX_PENDING && !s->n_images && !s->interrupted;
}

/* Prefills all but the last pending token, or all of a session that cannot be mixed, so that a batch takes
 * one token of each session. */
static int prefill_items(struct batch_item *items, int n, struct err *e)
{
    struct engine *g = engine_of(items);
    int batch_size = g->scheduler ? scheduler_batch_size(g->scheduler) : n;
    for (int i = 0; i < n; i++) {
        struct session *s = items[i].session;
        if (s->engine != g)
            bug("a batch of sessions of two engines");
        if ((session_pending(s) > 1 || s->n_images || s->interrupted) && !can_mix_prefill(s, batch_size) &&
            session_prefill(s, e))
            return -1;
    }
    return 0;
}

static int unfinished(const struct batch_request *b)
{
    int n = 0;
    for (int i = 0; i < b->n; i++)
        n += !b->items[i].done;
    return n;
}

/* Computes the items, waiting for other threads of a shared engine. The request is on the heap because the
 * items point to it and compilers cannot see that they no longer do at the end. */
static int submit(struct batch_item *items, int n, struct err *e)
{
    if (n == 0)
        return 0;
    if (prefill_items(items, n, e))
        return -1;
    struct scheduler *t = engine_of(items)->scheduler;
    autofree struct batch_request *b = xcalloc(1, sizeof *b);
    *b = (struct batch_request){.items = items, .n = n, .e = e};
    int stopped = 0;
    for (int i = 0; i < n; i++)
        items[i].request = b;
    while (b->rc == 0 && !stopped && (b->request.rows = unfinished(b)) > 0) {
        if (t)
            stopped = scheduler_submit(t, &items[0].session->client, &b->request);
        else
            session_serve(engine_of(items), &b->request);
    }
    for (int i = 0; i < n; i++)
        items[i].request = NULL;
    return stopped ? session_err_stopped(e) : b->rc;
}

int session_try_decode_batch(struct session *const *s, int n, struct err *e)
{
    autofree struct batch_item *items = xcalloc((unsigned long)n + 1, sizeof *items);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s[i]->logits_at != s[i]->n)
            items[k++].session = s[i];
    return submit(items, k, e);
}

void session_decode_batch(struct session *const *s, int n)
{
    struct err e = ERR_INIT;
    session_check(session_try_decode_batch(s, n, &e), &e);
}

/* Samples on the device, so that the logits stay there. */
static int sample_on_device(struct session *const *s, int n, const struct sampler *how, struct sampled *out,
                            struct err *e)
{
    autofree struct batch_item *items = xcalloc((unsigned long)n + 1, sizeof *items);
    for (int i = 0; i < n; i++)
        items[i] = (struct batch_item){.session = s[i], .how = &how[i], .out = &out[i]};
    return submit(items, n, e);
}

int session_sample_batch(struct session *const *s, int n, const struct sampler *how, struct sampled *out,
                         struct err *e)
{
    for (int i = 0; i < n; i++)
        if (s[i]->n == 0)
            bug("a token sampled from an empty session");
    if (n > 0 && session_backend(s[0])->ops->sample)
        return sample_on_device(s, n, how, out, e);
    if (session_try_decode_batch(s, n, e))
        return -1;
    for (int i = 0; i < n; i++)
        out[i] = sample_token(s[i]->logits, tokenizer_size(s[i]->engine->tokenizer), &how[i]);
    return 0;
}

int session_sample(struct session *s, const struct sampler *how, struct sampled *out, struct err *e)
{
    return session_sample_batch(&s, 1, how, out, e);
}
