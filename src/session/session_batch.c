/* session_batch.c - decoding a batch: one token of each of many sessions, then its logits or a sampled token.
 *
 * Their rows go through the model together, so that a weight is read once for all of them, in groups of up
 * to LANGUAGE_SESSIONS sessions that fit in the state pool at once.  Each session gets the bits that it would
 * get alone.  The batch is what one caller asks for or, in a shared engine, what all waiting threads ask
 * for.
 *
 * A session with several pending tokens, as a grammar forces them, is read by a prefill of its own, which
 * costs a pass over the weights.  In company on a GPU it goes along with the others' batches instead, a
 * token in each, until only the last is pending: these passes happen anyway.
 */
#include "ops/sampling.h"
#include "session/session_impl.h"

#include "base/clock.h"

#include <stdlib.h>

struct batch_request;

struct batch_item {
    struct session *session;
    const struct sampler *how; /* NULL: logits */
    struct sampled *out;
    struct batch_request *request;
    bool done;
};

struct batch_request { /* of one caller: items of one kind, of sessions of one engine */
    struct scheduler_request request;
    struct batch_item *items;
    int n;
    struct err *e;
    int rc;
};

enum {
    COMPANY = 4,    /* sessions of a batch from which on pending tokens go along with it */
    GOES_ALONG = 16 /* so many at most */
};

/* ---- groups ---------------------------------------------------------------------------------- */

static struct engine *engine_of(const struct batch_item *s)
{
    return s->session->engine;
}

/* Sessions that a pass computes the next pending token of. */
struct group {
    int n;
    struct lm_state *states[LANGUAGE_SESSIONS];
    struct session *of[LANGUAGE_SESSIONS];
    int32_t ids[LANGUAGE_SESSIONS];
};

/* Those of n <= LANGUAGE_SESSIONS sessions that have a pending token. */
static void gather_pending(struct group *g, struct batch_item *const *s, int n)
{
    g->n = 0;
    for (int i = 0; i < n; i++) {
        if (session_pending(s[i]->session) == 0)
            continue;
        g->of[g->n] = s[i]->session;
        g->states[g->n] = &s[i]->session->state;
        g->ids[g->n++] = s[i]->session->tokens[s[i]->session->state.length];
    }
}

static void count_decoded(const struct group *g, int64_t start)
{
    double ms = clock_ms_since(start) / g->n;
    for (int i = 0; i < g->n; i++) {
        g->of[i]->stats.decoded++;
        g->of[i]->stats.decode_ms += ms;
    }
}

/* Computes the next pending token of each of n <= LANGUAGE_SESSIONS sessions that have one. */
static void decode_group(struct batch_item *const *s, int n)
{
    struct group g;
    int64_t start = clock_ns();
    gather_pending(&g, s, n);
    if (g.n == 0)
        return;
    language_decode_batch(&g.of[0]->engine->language, g.states, g.n, g.ids);
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

/* The same for n sessions that all have a pending token, and the token after it of the first k. */
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

enum item_kind { ITEM_LOGITS, ITEM_SAMPLE, ITEM_GOES_ALONG };

static enum item_kind kind_of(const struct batch_item *s)
{
    return session_pending(s->session) > 1 ? ITEM_GOES_ALONG : s->how ? ITEM_SAMPLE : ITEM_LOGITS;
}

/* What the first of n <= LANGUAGE_SESSIONS items, all of one kind, are computed for; their number. */
static int finish_some(struct batch_item *const *s, int n, const enum item_kind *kinds)
{
    int k = 1;
    while (k < n && kinds[k] == kinds[0])
        k++;
    if (kinds[0] == ITEM_GOES_ALONG)
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

/* How many of n items are sampled after a pass in which all others go along; 0: it is something else. */
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

/* Pins as many of the first items as there is room for; 0: not even the first, whose request fails. */
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

/* One pass over items, those of one kind together, a group at a time. */
static void compute_items(struct batch_item *const *s, int n)
{
    for (int first = 0, k; first < n; first += k ? k : 1) {
        k = pin_group(s + first, n - first);
        if (k)
            compute_group(s + first, k);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Appends a request's unfinished items of one kind to n others. */
static int collect(const struct batch_request *b, enum item_kind kind, struct batch_item **out, int n)
{
    for (int i = 0; i < b->n; i++)
        if (!b->items[i].done && kind_of(&b->items[i]) == kind)
            out[n++] = &b->items[i];
    return n;
}

static void compute_requests(struct scheduler_request *requests, struct batch_item **room)
{
    int n = 0;
    for (enum item_kind kind = ITEM_LOGITS; kind <= ITEM_GOES_ALONG; kind++)
        for (struct scheduler_request *w = requests; w; w = w->next)
            n = collect((const struct batch_request *)w, kind, room, n);
    compute_items(room, n);
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

static bool goes_along(struct session *s, int company)
{
    return company >= COMPANY && session_backend(s)->ops->host_alloc && s->state.length > 0 &&
           session_pending(s) <= GOES_ALONG && !s->n_images && !s->interrupted;
}

/* Each caller does its own prefill, so that a batch takes one token of each session. */
static int prefill_items(struct batch_item *items, int n, struct err *e)
{
    struct engine *g = engine_of(items);
    int company = g->scheduler ? scheduler_batch_size(g->scheduler) : n;
    for (int i = 0; i < n; i++) {
        struct session *s = items[i].session;
        if (s->engine != g)
            bug("a batch of sessions of two engines");
        if ((session_pending(s) > 1 || s->n_images || s->interrupted) && !goes_along(s, company) &&
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

/* The request is on the heap: the items point to it, and compilers cannot see that they no longer do at the
 * end. */
static int submit(struct batch_item *items, int n, struct err *e)
{
    if (n == 0)
        return 0;
    if (prefill_items(items, n, e))
        return -1;
    struct scheduler *t = engine_of(items)->scheduler;
    struct batch_request *b = xcalloc(1, sizeof *b);
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
    int rc = stopped ? session_err_stopped(e) : b->rc;
    free(b);
    return rc;
}

int session_try_decode_batch(struct session *const *s, int n, struct err *e)
{
    struct batch_item *items = xcalloc((unsigned long)n + 1, sizeof *items);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s[i]->logits_at != s[i]->n)
            items[k++].session = s[i];
    int rc = submit(items, k, e);
    free(items);
    return rc;
}

void session_decode_batch(struct session *const *s, int n)
{
    struct err e = ERR_INIT;
    session_check(session_try_decode_batch(s, n, &e), &e);
}

/* The backend samples: the logits stay where they are. */
static int sample_there(struct session *const *s, int n, const struct sampler *how, struct sampled *out,
                        struct err *e)
{
    struct batch_item *items = xcalloc((unsigned long)n + 1, sizeof *items);
    for (int i = 0; i < n; i++)
        items[i] = (struct batch_item){.session = s[i], .how = &how[i], .out = &out[i]};
    int rc = submit(items, n, e);
    free(items);
    return rc;
}

int session_sample_batch(struct session *const *s, int n, const struct sampler *how, struct sampled *out,
                         struct err *e)
{
    for (int i = 0; i < n; i++)
        if (s[i]->n == 0)
            bug("a token sampled from an empty session");
    if (n > 0 && session_backend(s[0])->ops->sample)
        return sample_there(s, n, how, out, e);
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
