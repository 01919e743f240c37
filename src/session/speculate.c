/* speculate.c - n-gram speculation: proposes and verifies draft tokens (speculate.h). */
#include "session/speculate.h"

#include "base/clock.h"
#include "ops/sampling.h"
#include "session/session_impl.h"

#include <string.h>

enum { LONGEST = 3, SHORTEST = 2 /* tokens that are looked up */ };

int speculate_propose(const int32_t *tokens, int64_t n, int32_t *out, int most)
{
    for (int k = LONGEST; k >= SHORTEST; k--)
        for (int64_t at = n - k - 1; at >= 0; at--) {
            if (memcmp(tokens + at, tokens + n - k, (size_t)k * sizeof *tokens) != 0)
                continue;
            int64_t left = n - at - k;
            int found = left < most ? (int)left : most;
            memcpy(out, tokens + at + k, (size_t)found * sizeof *out);
            return found;
        }
    return 0;
}

bool speculate_ready(const struct session *s)
{
    struct scheduler *t = s->engine->scheduler;
    return session_pending(s) == 1 && s->state.length > 0 && !s->n_images && !s->interrupted &&
           !(t && scheduler_batch_size(t) > 1);
}

/* Copies the recurrent states of a pinned session. Returns 1 if memory is short. */
static int save(struct session *s, struct tensor *saved)
{
    if (!saved->data) {
        *saved = s->state.now.block;
        saved->data = NULL;
        if (state_pool_alloc(&s->engine->state_pool, saved, NULL))
            return 1;
    }
    language_flush(&s->engine->language, &s->state);
    session_backend(s)->ops->copy(session_backend(s), *saved, s->state.now.block);
    return 0;
}

static void sample(struct session *s, struct speculation *p)
{
    struct language *m = &s->engine->language;
    int ids = tokenizer_size(s->engine->tokenizer), rows = p->n + 1;
    bool on_device = session_backend(s)->ops->sample != NULL;
    if (!on_device && !p->logits)
        bug("draft tokens are verified on the host without a buffer for logits");
    if (p->logits)
        language_verify_logits(m, 0, rows, p->logits);
    if (on_device)
        language_verify_sample(m, rows, ids, p->how, p->out);
    for (int i = 0; i < rows && !on_device; i++)
        p->out[i] = sample_token(p->logits[i], ids, &p->how[i]);
    p->sampled = 1;
    while (p->sampled <= p->n && p->out[p->sampled - 1].id == p->draft[p->sampled - 1])
        p->sampled++;
}

/* Computes the pass for a pinned session. After a rejection the state is restored and continued by the
 * accepted tokens. */
static void compute(struct session *s, struct speculation *p)
{
    struct language *m = &s->engine->language;
    int32_t ids[LANGUAGE_MAX_VERIFY];
    int64_t length = s->state.length, position = s->state.position;
    ids[0] = s->tokens[length];
    for (int i = 0; i < p->n; i++)
        ids[1 + i] = p->draft[i];
    language_verify_drafts(m, &s->state, ids, p->n + 1);
    sample(s, p);
    if (p->sampled > p->n)
        return;
    session_backend(s)->ops->copy(session_backend(s), s->state.now.block, *p->saved);
    s->state.length = length;
    s->state.position = position;
    language_verify_drafts(m, &s->state, ids, p->sampled);
}

static int run_round(struct session *s, struct speculation *p, struct err *e)
{
    int64_t start = clock_ns();
    if (session_pin(s, p->n, e))
        return -1;
    int rc = save(s, p->saved);
    if (rc == 0) {
        compute(s, p);
        for (int i = 0; i < p->sampled && p->out[i].id >= 0; i++)
            session_push(s, p->out[i].id);
        s->stats.decoded += p->sampled;
        s->stats.proposed += p->n;
        s->stats.accepted += p->sampled - 1;
        s->engine->drafts.proposed += p->n;
        s->engine->drafts.accepted += p->sampled - 1;
        s->stats.decode_ms += clock_ms_since(start);
    }
    session_unpin(s);
    return rc;
}

int speculate_round(struct session *s, struct speculation *p, struct err *e)
{
    if (p->n >= LANGUAGE_MAX_VERIFY)
        bug("%d draft tokens at once", p->n);
    if (engine_try_enter(s->engine, &s->client, e))
        return -1;
    int rc = run_round(s, p, e);
    engine_leave(s->engine);
    return rc;
}

void speculate_end(struct session *s, struct tensor *saved)
{
    if (!saved->data)
        return;
    engine_enter(s->engine, &s->client);
    state_pool_free(&s->engine->state_pool, saved);
    engine_leave(s->engine);
}
