/* crowd.c - see crowd.h. */
#include "crowd.h"

#include "check.h"

#include "base/buf.h"
#include "session/generate.h"
#include "session/session_impl.h"

struct engine *crowd_engine(const struct tiny *t, const char *device, size_t bound)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = t->dir, .device = device, .threads = 1, .state_memory = bound};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* From 1 token to c->longest. */
void crowd_prompt(const struct crowd *c, int i, struct session *s)
{
    struct err e = ERR_INIT;
    uint64_t rng = c->seed * 77 + (uint64_t)i * 1001 + 1;
    int n = i == 0 ? 1 : 1 + (int)(check_random(&rng) * c->longest);
    for (int t = 0; t < n; t++) {
        int32_t id = 16 + (int32_t)(check_random(&rng) * 256);
        if (session_append(s, &id, 1, &e))
            fail_msg("%s", e.text);
    }
}

static int64_t limit_of(const struct crowd *c, int i)
{
    return 1 + (i * 7 + 3) % c->tokens;
}

void crowd_alone(struct crowd *c, struct engine *g)
{
    uint64_t *known = generate_known(g);
    struct choosing how = {.known = known, .top_p = 1};
    for (int i = 0; i < c->n; i++) {
        struct session *s = session_new(g, 1);
        crowd_prompt(c, i, s);
        struct choice got = {.id = -1};
        for (c->alone_n[i] = 0;
             c->alone_n[i] < limit_of(c, i) && (got.id < 0 || !engine_is_stop(g, got.id));) {
            session_choose(&s, 1, &how, &got);
            assert_true(got.id >= 0);
            c->alone[i][c->alone_n[i]++] = got.id;
            assert_int_equal(session_append(s, &got.id, 1, NULL), 0);
        }
        session_free(s);
    }
    free(known);
}

static void wrote(struct batch_job *j, int32_t id)
{
    struct crowd *c = j->arg;
    c->got[j - c->jobs][j->generated - 1] = id;
}

static void ended(struct batch_job *j)
{
    struct crowd *c = j->arg;
    if (c->keep)
        return;
    session_free(j->session);
    c->sessions[j - c->jobs] = NULL;
}

void crowd_run(struct crowd *c, struct engine *g, const int *order, int64_t prefill)
{
    struct batch *b = batch_new(g, prefill);
    for (int k = 0; k < c->n; k++) {
        int i = order ? order[k] : k;
        c->sessions[i] = session_new(g, 1);
        crowd_prompt(c, i, c->sessions[i]);
        c->jobs[i] = (struct batch_job){
            .session = c->sessions[i], .limit = limit_of(c, i), .wrote = wrote, .ended = ended, .arg = c};
        batch_add(b, &c->jobs[i]);
    }
    batch_run(b);
    batch_free(b);
    for (int i = 0; i < c->n; i++) {
        if (c->jobs[i].err.kind)
            fail_msg("session %d: %s", i, c->jobs[i].err.text);
        assert_int_equal(c->jobs[i].state, BATCH_ENDED);
        assert_int_equal(c->jobs[i].generated, c->alone_n[i]);
        for (int t = 0; t < c->alone_n[i]; t++)
            if (c->got[i][t] != c->alone[i][t])
                fail_msg("session %d writes %d at %d, alone %d", i, c->got[i][t], t, c->alone[i][t]);
    }
}

void crowd_free(struct crowd *c)
{
    for (int i = 0; i < c->n; i++) {
        session_free(c->sessions[i]);
        c->sessions[i] = NULL;
    }
}

size_t crowd_need(struct engine *g, int64_t tokens)
{
    struct session *s = session_new(g, 1);
    size_t bytes = session_need(s, tokens);
    session_free(s);
    return bytes;
}

struct bits {
    struct backend *backend;
    struct buf out;
};

static int put_bits(void *arg, struct tensor t)
{
    struct bits *w = arg;
    size_t bytes = (size_t)t.rows * (size_t)t.cols * dtype_size(t.dtype);
    uint8_t *row = xmalloc(bytes + 1, 1);
    w->backend->ops->download(w->backend, (struct tensor){row, t.dtype, t.rows, t.cols, t.cols}, t);
    buf_put(&w->out, row, bytes);
    free(row);
    return 0;
}

uint8_t *crowd_bits(struct session *s, size_t *len)
{
    struct err e = ERR_INIT;
    struct bits w = {.backend = s->engine->backend};
    buf_init(&w.out, 64 << 20);
    if (session_pin(s, 0, &e))
        fail_msg("%s", e.text);
    state_visit(&s->state, &s->engine->config.lm, put_bits, &w);
    session_unpin(s);
    *len = w.out.len;
    uint8_t *bits = (uint8_t *)buf_take(&w.out);
    buf_free(&w.out);
    return bits;
}
