/* pool_check.c - see pool_check.h. */
#include "pool_check.h"

#include "check.h"

#include "base/buf.h"
#include "session/session_impl.h"

struct engine *pool_check_engine(const struct tiny *t, const char *device, size_t bound)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = t->dir, .device = device, .threads = 1, .state_memory = bound};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

size_t pool_check_need(struct engine *g, int64_t tokens)
{
    struct session *s = session_new(g, 1);
    const struct lm_config *lm = &engine_config(g)->lm;
    size_t bytes = pool_entry_bytes(&s->entry) + state_need(&s->state, lm, state_capacity(0, tokens));
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

uint8_t *pool_check_bits(struct session *s, size_t *len)
{
    struct err e = ERR_INIT;
    struct bits w = {.backend = s->engine->backend};
    buf_init(&w.out, 64 << 20);
    if (session_pin(s, 0, &e))
        fail_msg("%s", e.text);
    language_flush(&s->engine->language, &s->state);
    state_visit(&s->state, &s->engine->config.lm, put_bits, &w);
    session_unpin(s);
    *len = w.out.len;
    uint8_t *bits = (uint8_t *)buf_take(&w.out);
    buf_free(&w.out);
    return bits;
}

void pool_check_same(struct session *a, struct session *b)
{
    size_t n, m;
    session_logits(a);
    session_logits(b);
    uint8_t *x = pool_check_bits(a, &n), *y = pool_check_bits(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    assert_memory_equal(session_logits(a), session_logits(b),
                        (size_t)engine_vocab(session_engine(a)) * sizeof(float));
    free(x);
    free(y);
}
