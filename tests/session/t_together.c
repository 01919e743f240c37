/* t_together.c - tests batches: a token of each of several sessions, computed together, has the bits of each
 * session alone, per operation and in the whole model.
 */
#include "check.h"
#include "lab.h"
#include "tiny_model.h"

#include "session/session_impl.h"

#include <math.h>

enum { MOST = 20 };

/* ---- operations ------------------------------------------------------------------------------ */

static struct tensor make(struct backend *b, enum dtype d, int64_t rows, int64_t cols)
{
    struct tensor host = {xmalloc((unsigned long)(rows * cols), sizeof(float)), DT_F32, rows, cols, cols},
                  t = b->ops->alloc(b, d, rows, cols);
    for (int64_t i = 0; i < rows * cols; i++)
        ((float *)host.data)[i] = (float)(check_random(&lab_random) * 2 - 1);
    b->ops->upload(b, t, host);
    free(host.data);
    return t;
}

static void same_tensor(struct tensor a, struct tensor b)
{
    assert_memory_equal(a.data, b.data, (size_t)(a.rows * a.cols) * dtype_size(a.dtype));
}

static void drop(struct backend *b, struct tensor *t, int n)
{
    for (int i = 0; i < n; i++)
        b->ops->free(b, &t[i]);
}

static void conv_together(struct backend *b, enum dtype act)
{
    int n = lab_between(1, MOST), C = lab_between(1, 300), K = lab_between(2, 5);
    struct tensor x = make(b, act, n, C), w = make(b, DT_F32, C, K), bias = make(b, DT_F32, 1, C);
    struct tensor one = lab_twin(b, x), all = lab_twin(b, x), s1[MOST], s2[MOST];
    for (int i = 0; i < n; i++) {
        s1[i] = make(b, act, K - 1, C);
        s2[i] = lab_twin(b, s1[i]);
        b->ops->conv_tokens(b, tensor_rows(one, i, 1), tensor_rows(x, i, 1), w, bias, s1[i]);
    }
    b->ops->conv_batch(b, all, x, w, bias, s2);
    same_tensor(one, all);
    for (int i = 0; i < n; i++)
        same_tensor(s1[i], s2[i]);
    drop(b, s1, n);
    drop(b, s2, n);
    drop(b, (struct tensor[]){x, w, bias, one, all}, 5);
}

static void ssm_together(struct backend *b, enum dtype act)
{
    int n = lab_between(1, MOST), G = lab_between(1, 2), H = G * lab_between(1, 3), P = lab_between(1, 40),
        N = lab_between(1, 70);
    struct tensor constants = make(b, DT_F32, 3, H), v = make(b, act, n, H * P + 2 * G * N),
                  dt = make(b, act, n, H);
    const float *at = constants.data;
    struct ssm_shape s = {H, P, N, G, 4, 8, 0, INFINITY};
    struct ssm_const c = {at, at + H, at + 2 * (ptrdiff_t)H};
    struct tensor one = make(b, act, n, H * P), all = lab_twin(b, one), s1[MOST], s2[MOST];
    for (int i = 0; i < n; i++) {
        s1[i] = make(b, DT_F32, H * P, N);
        s2[i] = lab_twin(b, s1[i]);
        b->ops->ssm_step_batch(b, tensor_rows(one, i, 1), tensor_rows(v, i, 1), tensor_rows(dt, i, 1), &s1[i],
                               NULL, &s, &c);
    }
    b->ops->ssm_step_batch(b, all, v, dt, s2, NULL, &s, &c);
    same_tensor(one, all);
    for (int i = 0; i < n; i++)
        same_tensor(s1[i], s2[i]);
    drop(b, s1, n);
    drop(b, s2, n);
    drop(b, (struct tensor[]){constants, v, dt, one, all}, 5);
}

static void attend_together(struct backend *b, enum dtype act)
{
    int n = lab_between(1, MOST), kv = lab_between(1, 3), group = lab_between(1, 5), d = lab_between(1, 90);
    struct tensor q = make(b, act, n, (int64_t)kv * group * d), one = lab_twin(b, q), all = lab_twin(b, q);
    struct tensor k[MOST], v[MOST];
    for (int i = 0; i < n; i++) {
        int keys = lab_between(1, i % 4 ? 100 : 600);
        k[i] = make(b, act, keys, (int64_t)kv * d);
        v[i] = make(b, act, keys, (int64_t)kv * d);
        b->ops->attend_tokens(b, tensor_rows(one, i, 1), tensor_rows(q, i, 1), k[i], v[i], kv * group, kv,
                              keys - 1);
    }
    b->ops->attend_batch(b, all, q, k, v, kv * group, kv);
    same_tensor(one, all);
    drop(b, k, n);
    drop(b, v, n);
    drop(b, (struct tensor[]){q, one, all}, 3);
}

static void t_operations(void **state)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(2);
    lab_random = check_seed();
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(isa[i], pool, NULL);
        for (int round = 0; round < (i ? 40 : 4); round++) {
            enum dtype act = round % 2 ? DT_BF16 : DT_F32;
            conv_together(b, act);
            ssm_together(b, act);
            attend_together(b, act);
        }
        backend_free(b);
    }
    pool_free(pool);
}

/* ---- the model ------------------------------------------------------------------------------- */

static void append(struct session *s, int first, int n)
{
    struct err e = ERR_INIT;
    for (int i = 0; i < n; i++) {
        int32_t id = 16 + (first + i) % 256;
        if (session_append(s, &id, 1, &e))
            fail_msg("%s", e.text);
    }
}

static int same_state(const struct lm_state *a, const struct lm_state *b, const struct lm_config *c)
{
    for (int i = 0; i < c->layers; i++) {
        if (c->pattern[i] == LAYER_MAMBA) {
            same_tensor(a->now.ssm[i], b->now.ssm[i]);
            same_tensor(a->now.conv[i], b->now.conv[i]);
        } else if (c->pattern[i] == LAYER_ATTENTION) {
            same_tensor(tensor_rows(a->k[i], 0, a->length), tensor_rows(b->k[i], 0, a->length));
            same_tensor(tensor_rows(a->v[i], 0, a->length), tensor_rows(b->v[i], 0, a->length));
        }
    }
    same_tensor(a->now.last, b->now.last);
    return a->length == b->length;
}

/* Steps sessions of different lengths, mostly by one token each. About one step in ten appends 0 to 3 tokens
 * instead. */
static void step_model(const struct tiny *t, const char *isa, int threads, bool f32)
{
    struct engine *g = tiny_open(t, isa, threads, f32);
    struct session *alone[MOST], *together[MOST];
    int n = lab_between(2, MOST);
    for (int i = 0; i < n; i++) {
        alone[i] = session_new(g, 1);
        append(alone[i], lab_between(0, 255), lab_between(1, 40));
        together[i] = session_fork(alone[i]); /* shares the prefilled tokens */
    }
    for (int step = 0; step < 8; step++) {
        for (int i = 0; i < n; i++) {
            int first = lab_between(0, 255), count = lab_between(0, 9) ? 1 : lab_between(0, 3);
            append(alone[i], first, count);
            append(together[i], first, count);
            session_logits(alone[i]);
        }
        session_decode_batch(together, n);
        for (int i = 0; i < n; i++) {
            assert_int_equal(together[i]->logits_at, together[i]->n);
            assert_memory_equal(session_logits(together[i]), session_logits(alone[i]),
                                (size_t)engine_vocab(g) * sizeof(float));
            assert_true(same_state(&together[i]->state, &alone[i]->state, &engine_config(g)->lm));
        }
    }
    for (int i = 0; i < n; i++) {
        session_free(alone[i]);
        session_free(together[i]);
    }
    engine_close(g);
}

static void t_sessions(void **state)
{
    struct tiny t;
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    lab_random = check_seed();
    tiny_init(&t, check_seed());
    tiny_write(&t);
    for (int i = 0; i < n; i++)
        for (int f32 = 0; f32 < 2; f32++)
            step_model(&t, isa[i], 1 + i % 3, f32);
    tiny_free(&t);
}

/* A layer watcher: counts rows, and makes the model compute all of them. */
static void count_rows(void *arg, int layer, struct tensor h)
{
    *(int64_t *)arg += h.rows;
}

/* Prompts of one chunk and of several, after nothing and after other tokens. */
static void t_unread(void **state)
{
    static const int prompts[] = {1, 2, 77, LANGUAGE_ROWS, LANGUAGE_ROWS + 1, LANGUAGE_ROWS + 200};
    struct tiny t;
    lab_random = check_seed();
    tiny_init(&t, check_seed());
    tiny_write(&t);
    for (int f32 = 0; f32 < 2; f32++) {
        struct engine *g = tiny_open(&t, NULL, 2, f32);
        struct session *some = session_new(g, 1), *all = session_new(g, 1);
        for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
            int first = lab_between(0, 255);
            int64_t rows = 0;
            append(some, first, prompts[i]);
            append(all, first, prompts[i]);
            session_logits(some);
            g->language.watch = count_rows;
            g->language.watch_arg = &rows;
            session_logits(all);
            g->language.watch = NULL;
            assert_int_equal(rows, (int64_t)prompts[i] * engine_config(g)->lm.layers);
            assert_memory_equal(session_logits(some), session_logits(all),
                                (size_t)engine_vocab(g) * sizeof(float));
            assert_true(same_state(&some->state, &all->state, &engine_config(g)->lm));
        }
        session_free(some);
        session_free(all);
        engine_close(g);
    }
    tiny_free(&t);
}

/* A batch reads the weights once. Tokens of a batch count as decoded. */
static void t_counted(void **state)
{
    struct tiny t;
    tiny_init(&t, check_seed());
    tiny_write(&t);
    struct engine *g = tiny_open(&t, NULL, 1, false);
    struct session *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = session_new(g, 1);
        append(s[i], i, i); /* session 0 has no token, session 1 one, session 2 two */
    }
    session_decode_batch(s, 3);
    for (int i = 0; i < 3; i++) {
        struct session_stats stats = session_stats(s[i]);
        assert_int_equal(stats.decoded, i == 1);
        assert_int_equal(stats.prefilled, i == 2 ? 2 : 0);
        assert_true(i == 0 ? !session_logits(s[i]) : session_logits(s[i]) != NULL);
        session_free(s[i]);
    }
    session_decode_batch(s, 0);
    engine_close(g);
    tiny_free(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a batch row has the bits of each session alone, in every operation", t_operations),
    CLAIM("sessions in a batch have the logits and states of sessions alone", t_sessions),
    CLAIM("skipping rows that are not read changes neither logits nor state", t_unread),
    CLAIM("tokens of a batch are counted as decoded or prefilled", t_counted),
};

CHECK_MAIN()
