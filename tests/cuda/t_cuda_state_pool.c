/* t_cuda_state_pool.c - tests of many sessions with a limit on device memory: idle sessions are spilled to
 * host memory and restored with the same bits.
 */
#include "pool_check.h"
#include "tiny_check.h"

#include "capacity/plan.h"
#include "session/session_impl.h"

static void compute(struct session *s)
{
    struct err e = ERR_INIT;
    if (session_compute_logits(s, &e))
        fail_msg("%s", e.text);
}

static size_t used(const struct engine *g)
{
    return engine_state_memory(g).used;
}

/* ---- one session ----------------------------------------------------------------------------- */

static void t_spilled(void **state)
{
    struct engine *g = pool_check_engine(&tiny, "cuda", 0);
    struct session *s = session_new(g, 1), *here = session_new(g, 1), *both[2] = {s, here};
    struct checkpoint *c[2];
    assert_true(engine_state_memory(g).bound > 0); /* the memory that the weights leave */
    assert_int_equal(used(g), 0);
    for (int i = 0; i < 2; i++) {
        tiny_append(both[i], 1, 23);
        c[i] = session_try_checkpoint(both[i], NULL);
        tiny_append_image(both[i], 5); /* pending rows are spilled as well */
        tiny_append(both[i], 2, 3);
    }
    size_t all = used(g);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(pool_entry_spill(&s->entry), 0);
        assert_true(s->entry.spilled && used(g) < all);
        if (round == 0) { /* spills everything */
            assert_int_equal(pool_entry_spill(&here->entry), 0);
            assert_int_equal(used(g), 2 * pool_check_need(g, 0));
        }
        assert_int_equal(pool_entry_spill(&s->entry), -1); /* already spilled */
        compute(s);
        compute(here);
        pool_check_same(s, here);
        tiny_append(s, round, 1 + round);
        tiny_append(here, round, 1 + round);
    }
    assert_int_equal(session_pin(s, 0, NULL), 0);
    assert_int_equal(pool_entry_spill(&s->entry), -1); /* in use */
    session_unpin(s);
    assert_int_equal(pool_entry_spill(&s->entry), 0);
    struct session *fork = session_fork(s);
    pool_check_same(fork, here);
    session_free(fork);
    assert_int_equal(pool_entry_spill(&s->entry), 0); /* then rewinds and computes the logits again */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(session_rewind(both[i], c[i], NULL), 0);
        tiny_append(both[i], 4, 17);
    }
    compute(here);
    pool_check_same(s, here);
    assert_int_equal(engine_state_memory(g).spilled, 6);
    assert_int_equal(engine_state_memory(g).restored, 6);
    assert_int_equal(pool_entry_spill(&s->entry), 0);
    for (int i = 0; i < 2; i++) {
        session_free(both[i]);
        checkpoint_free(c[i]);
    }
    assert_int_equal(used(g), 0);
    engine_close(g);
}

/* Spills checkpoints first, then sessions, each in the order of their last use. */
static void t_order(void **state)
{
    enum { N = 4 };
    struct engine *g = pool_check_engine(&tiny, "cuda", 0);
    size_t one = pool_check_need(g, 512), mark = pool_check_need(g, 0);
    engine_close(g);
    g = pool_check_engine(&tiny, "cuda", N * one + 2 * mark);
    struct session *s[N + 2], *straight = session_new(g, 1);
    struct checkpoint *c[2];
    for (int i = 0; i < N + 2; i++)
        s[i] = session_new(g, 1);
    for (int i = 0; i < N; i++) {
        tiny_append(s[i], i, 5);
        compute(s[i]);
    }
    c[0] = session_try_checkpoint(s[0], NULL);
    c[1] = session_try_checkpoint(s[1], NULL);
    assert_int_equal(used(g), N * one + 2 * mark);
    assert_int_equal(session_rewind(s[0], c[0], NULL), 0); /* uses the session and the checkpoint */
    tiny_append(s[N], 9, 5);
    /* needs memory for a session: spills both checkpoints and the session that was used least recently */
    compute(s[N]);
    assert_int_equal(engine_state_memory(g).spilled, one > 2 * mark ? 3 : one > mark ? 2 : 1);
    for (int i = 0; i < N; i++)
        assert_int_equal(s[i]->entry.spilled, one > 2 * mark && i == 2);
    tiny_append(s[N + 1], 9, 5);
    compute(s[N + 1]);
    assert_true(s[3]->entry.spilled && !s[0]->entry.spilled && !s[1]->entry.spilled);
    size_t before = used(g);
    assert_int_equal(session_rewind(s[1], c[1], NULL), 0); /* directly from host memory */
    assert_true(used(g) <= before);
    tiny_append(s[1], 3, 4);
    tiny_append(straight, 1, 5);
    compute(straight);
    tiny_append(straight, 3, 4);
    compute(straight);
    compute(s[1]);
    pool_check_same(s[1], straight);
    assert_true(engine_state_memory(g).peak <= engine_state_memory(g).bound);
    session_decode_batch(s, N + 2); /* in groups, because not all fit */
    for (int i = 0; i < N + 2; i++) {
        tiny_append(s[i], 8, 1);
        assert_int_equal(session_pending(s[i]), 1);
    }
    session_decode_batch(s, N + 2);
    tiny_append(straight, 8, 1);
    assert_memory_equal(session_logits(s[1]), session_logits(straight),
                        (size_t)engine_vocab(g) * sizeof(float));
    for (int i = 0; i < N + 2; i++)
        session_free(s[i]);
    session_free(straight);
    checkpoint_free(c[0]);
    checkpoint_free(c[1]);
    assert_int_equal(used(g), 0);
    engine_close(g);
}

/* If memory suffices for one session only, its checkpoint is created in host memory. */
static void t_mark(void **state)
{
    struct err e = ERR_INIT;
    struct engine *g = pool_check_engine(&tiny, "cuda", 0);
    size_t one = pool_check_need(g, 512);
    engine_close(g);
    g = pool_check_engine(&tiny, "cuda", one);
    struct session *s = session_new(g, 1), *straight = session_new(g, 1);
    tiny_append(s, 1, 9);
    struct checkpoint *c = session_try_checkpoint(s, &e);
    assert_non_null(c);
    assert_int_equal(used(g), one);
    tiny_append(s, 2, 6);
    compute(s);
    assert_null(session_try_fork(s, &e));
    assert_non_null(strstr(e.text, "not enough memory"));
    assert_int_equal(session_rewind(s, c, &e), 0);
    tiny_append(s, 3, 5);
    tiny_append(straight, 1, 9);
    compute(straight); /* the two sessions spill each other */
    tiny_append(straight, 3, 5);
    pool_check_same(s, straight);
    assert_int_equal(used(g), one);
    session_free(s);
    session_free(straight);
    checkpoint_free(c);
    assert_int_equal(used(g), 0);
    engine_close(g);
}

/* ---- many sessions --------------------------------------------------------------------------- */

static void t_many(void **state)
{
    enum { N = 12, ROOM = 4, TOKENS = 5 };
    struct engine *g = pool_check_engine(&tiny, "cuda", 0);
    size_t bound = ROOM * pool_check_need(g, 512);
    engine_close(g);
    g = pool_check_engine(&tiny, "cuda", bound);
    struct session *s[N];
    for (int i = 0; i < N; i++) {
        s[i] = session_new(g, 1);
        tiny_append(s[i], i, 2 + 3 * i);
    }
    for (int t = 0; t < TOKENS; t++) {
        session_decode_batch(s, N);
        for (int i = 0; i < N; i++)
            tiny_append(s[i], 5 * i + t, 1);
    }
    struct state_memory m = engine_state_memory(g);
    check_note("%lld sessions went to the host", (long long)m.spilled);
    assert_true(m.peak <= bound && m.peak > bound / 10 * 9);
    assert_true(m.spilled >= N - ROOM);
    for (int i = 0; i < N; i += 3) { /* they continue correctly */
        struct session *straight = session_new(g, 1);
        tiny_append(straight, i, 2 + 3 * i);
        for (int t = 0; t < TOKENS; t++) {
            compute(straight);
            tiny_append(straight, 5 * i + t, 1);
        }
        pool_check_same(s[i], straight);
        session_free(straight);
    }
    for (int i = 0; i < N; i++)
        session_free(s[i]);
    assert_int_equal(used(g), 0);
    engine_close(g);
}

/* ---- a device that is full before the limit is reached --------------------------------------- */

static const struct ops *true_ops;
static size_t device_has;
static struct state_pool *device_pool;

static struct tensor scarce(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    if (device_pool->used + (size_t)rows * (size_t)cols * dtype_size(t) > device_has)
        return (struct tensor){NULL, t, rows, cols, cols};
    return true_ops->try_alloc(b, t, rows, cols);
}

static void t_full(void **state)
{
    struct err e = ERR_INIT;
    struct engine *g = pool_check_engine(&tiny, "cuda", 0);
    size_t one = pool_check_need(g, 512);
    true_ops = g->backend->ops;
    struct ops ops = *true_ops;
    ops.try_alloc = scarce;
    device_pool = &g->state_pool;
    device_has = 2 * one + one / 2;
    g->backend->ops = &ops;
    struct session *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = session_new(g, 1);
        tiny_append(s[i], i, 9);
        compute(s[i]);
    }
    assert_true(s[0]->entry.spilled && !s[1]->entry.spilled && !s[2]->entry.spilled);
    assert_int_equal(session_pin(s[1], 0, NULL), 0);
    assert_int_equal(session_pin(s[2], 0, NULL), 0);
    tiny_append(s[0], 1, 1);
    assert_int_equal(session_compute_logits(s[0], &e), -1); /* none can be spilled; nothing has changed */
    assert_non_null(strstr(e.text, "not enough memory"));
    assert_true(s[0]->entry.spilled);
    assert_int_equal(used(g), 2 * one);
    session_unpin(s[2]);
    compute(s[0]); /* s[1] has been idle for longer, but is pinned */
    assert_true(!s[1]->entry.spilled && s[2]->entry.spilled);
    session_unpin(s[1]);
    for (int i = 0; i < 3; i++)
        tiny_append(s[i], i, 1);
    session_decode_batch(s, 3); /* in groups that spill each other */
    for (int i = 0; i < 3; i++)
        assert_int_equal(session_pending(s[i]), 0);
    for (int i = 0; i < 3; i++)
        session_free(s[i]);
    assert_int_equal(used(g), 0);
    g->backend->ops = true_ops;
    engine_close(g);
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void t_planned(void **state)
{
    static const int lengths[] = {1, 511, 513, 1100, 2000};
    struct err e = ERR_INIT;
    struct model_config c;
    struct plan plans[2], p; /* on a device, states have rings */
    struct safetensors *f = safetensors_open(tiny.dir, &e);
    assert_true(f && config_load(&c, tiny.dir, &e) == 0);
    for (int cpu = 0; cpu < 2; cpu++) {
        struct engine_options o = {.weights_in = WEIGHTS_IN_RAM, .device = cpu ? "cpu" : "cuda"};
        assert_int_equal(plan_make(&plans[cpu], &c, f, &o, &e), 0);
    }
    safetensors_close(f);
    for (int cpu = 0; cpu < 2; cpu++) {
        p = plans[cpu];
        struct engine *g = pool_check_engine(&tiny, cpu ? "cpu" : "cuda", 0);
        size_t want = 0;
        struct session *s[5];
        struct checkpoint *marks[5];
        for (int i = 0; i < 5; i++) {
            s[i] = session_new(g, 1);
            marks[i] = session_checkpoint(s[i]);
            tiny_append(s[i], i, lengths[i]);
            assert_int_equal(session_pin(s[i], 0, NULL), 0); /* allocates, without a forward pass */
            session_unpin(s[i]);
            want += plan_state(&p, lengths[i]) + plan_state(&p, 0);
        }
        double part = (double)used(g) / (double)want;
        check_note("%s: %zu bytes, planned %zu", cpu ? "CPU" : "device", used(g), want);
        assert_true(part > 0.95 && part < 1.05);
        for (int i = 0; i < 5; i++) {
            session_free(s[i]);
            checkpoint_free(marks[i]);
        }
        assert_int_equal(used(g), 0);
        engine_close(g);
    }
    /* the planned number of states fits, and one more does not */
    p = plans[0];
    struct engine *g = pool_check_engine(&tiny, "cuda", 7 * plan_state(&p, 600) + 5000);
    int64_t most = plan_states(&p, engine_state_memory(g).bound, 600);
    struct session *s[8];
    assert_int_equal(most, 7);
    for (int i = 0; i < 8; i++) {
        s[i] = session_new(g, 1);
        tiny_append(s[i], i, 600);
        assert_int_equal(session_pin(s[i], 0, NULL), i < most ? 0 : -1);
    }
    for (int i = 0; i < 8; i++) {
        if (i < most)
            session_unpin(s[i]);
        session_free(s[i]);
    }
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a spilled session is restored automatically, with the same bits", t_spilled),
    CLAIM("checkpoints are spilled before sessions, the least recently used first", t_order),
    CLAIM("a checkpoint that does not fit is created in host memory", t_mark),
    CLAIM("12 sessions with memory for 4 decode together, with the same bits as each alone", t_many),
    CLAIM("a full device spills idle sessions, and reports an error if there are none", t_full),
    CLAIM("states use the planned memory, within 5 %, and as many fit as planned", t_planned),
};

TINY_MAIN(check_seed())
