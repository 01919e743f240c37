/* t_ops.c - claims about src/ops: the scalar reference against plain formulas in double precision, and
 * every instruction set of this CPU against the reference.
 *
 * Tolerances.  In f32 two orders of summation over n terms differ by about sqrt(n) roundings of 6e-8 of
 * the largest partial sum: 2e-5 relative to the largest output covers n up to 5000 with room.  With
 * bf16 outputs one rounding step is 2^-8 to 2^-7 of the value; a sum that falls to the other side of
 * a rounding boundary differs by one step: 1 % of the value plus the f32 term, and twice that where an epilogue
 * squares.  Attention may round its weights to bf16 before they meet the values (as flash
 * attention on a GPU does): each weight is off by up to 2^-9 of itself, so the sum may be off by
 * 0.5 % of the largest value.
 */
#include "check.h"

#include "ops/ops.h"

#include <math.h>

static uint64_t rng;

static double uniform(double lo, double hi)
{
    return lo + (hi - lo) * check_random(&rng);
}

static int between(int lo, int hi)
{
    return lo + (int)(check_random(&rng) * (hi - lo + 1));
}

/* ---- tensors on the host ---------------------------------------------------------------------- */

static float at(struct tensor t, int64_t r, int64_t c)
{
    int64_t i = r * t.stride + c;
    return t.dtype == DT_BF16 ? bf16_to_f32(((uint16_t *)t.data)[i]) : ((float *)t.data)[i];
}

static void fill(struct tensor t, double lo, double hi)
{
    for (int64_t r = 0; r < t.rows; r++)
        for (int64_t c = 0; c < t.cols; c++) {
            float v = (float)uniform(lo, hi);
            if (t.dtype == DT_BF16)
                ((uint16_t *)t.data)[r * t.stride + c] = bf16_from_f32(v);
            else
                ((float *)t.data)[r * t.stride + c] = v;
        }
}

static struct tensor make(struct backend *b, enum dtype d, int64_t rows, int64_t cols, double lo, double hi)
{
    struct tensor t = b->ops->alloc(b, d, rows, cols);
    fill(t, lo, hi);
    return t;
}

static struct tensor twin(struct backend *b, struct tensor t)
{
    struct tensor c = b->ops->alloc(b, t.dtype, t.rows, t.cols);
    b->ops->copy(b, c, t);
    return c;
}

static void poison(struct tensor t)
{
    memset(t.data, 0xff, (size_t)t.rows * (size_t)t.stride * dtype_size(t.dtype)); /* NaN in both types */
}

static double largest(struct tensor t)
{
    double most = 0;
    for (int64_t r = 0; r < t.rows; r++)
        for (int64_t c = 0; c < t.cols; c++)
            most = fmax(most, fabs((double)at(t, r, c)));
    return most;
}

/* Largest difference as a multiple of the tolerance; 1 is the limit.  slack: further tolerance, for what
 * was rounded to bf16 before it could cancel: it has to do with the terms, not with the result. */
static double worst_within(struct tensor have, struct tensor want, double slack)
{
    double most = largest(want), off = 0;
    for (int64_t r = 0; r < want.rows; r++)
        for (int64_t c = 0; c < want.cols; c++) {
            double w = at(want, r, c),
                   allowed = 2e-5 * most + slack + 1e-6 + (want.dtype == DT_BF16 ? 0.01 * fabs(w) : 0);
            double d = fabs(at(have, r, c) - w) / allowed;
            off = d >= off ? d : off;
            if (isnan(d))
                return INFINITY;
        }
    return off;
}

static double worst(struct tensor have, struct tensor want)
{
    return worst_within(have, want, 0);
}

/* ---- every operation on every instruction set ------------------------------------------------------ */

struct lab { /* two backends side by side */
    struct backend *ref, *fast;
    enum dtype act;
};

typedef double case_fn(const struct lab *l); /* returns worst() */

static void drop(struct backend *b, int n, struct tensor *const t[])
{
    for (int i = 0; i < n; i++)
        b->ops->free(b, t[i]);
}

static double case_linear(const struct lab *l)
{
    static const int rows[] = {1, 2, 3, 5, 13, 64, 200, 400};
    int T = rows[between(0, 7)], N = between(1, 150), K = between(1, 200);
    enum epilogue epi = (enum epilogue)between(0, 2);
    int add = between(0, 1), biased = between(0, 1);
    struct tensor x = make(l->ref, l->act, T, K, -1, 1), host = make(l->ref, DT_F32, N, K, -1, 1);
    struct tensor bias = make(l->ref, DT_F32, 1, N, -1, 1), none = {0};
    struct tensor want = make(l->ref, between(0, 3) ? l->act : DT_F32, T, N, -1, 1),
                  have = twin(l->ref, want);
    if (!add)
        poison(have);
    struct weight *wr = l->ref->ops->pack(l->ref, host, l->act),
                  *wf = l->fast->ops->pack(l->fast, host, l->act);
    l->ref->ops->linear(l->ref, want, x, wr, biased ? bias : none, epi, add);
    l->fast->ops->linear(l->fast, have, x, wf, biased ? bias : none, epi, add);
    /* a product is rounded, to one side or the other, before it is added to what is at most 1 */
    double off = worst_within(have, want, add && l->act == DT_BF16 ? 0x1p-7 * (1 + largest(want)) : 0);
    l->ref->ops->unpack_free(l->ref, wr);
    l->fast->ops->unpack_free(l->fast, wf);
    drop(l->ref, 5, (struct tensor *const[]){&x, &host, &bias, &want, &have});
    return epi == EPI_RELU2 ? off / 2 : off;
}

static double case_norms(const struct lab *l)
{
    int T = between(1, 40), groups = between(1, 4), D = groups * between(1, 60);
    struct tensor x = make(l->ref, l->act, T, D, -3, 3), z = make(l->ref, l->act, T, D, -3, 3);
    struct tensor w = make(l->ref, DT_F32, 1, D, 0.5, 2), bias = make(l->ref, DT_F32, 1, D, -1, 1);
    struct tensor want = twin(l->ref, x), have = twin(l->ref, x);
    double off = 0;
    for (int which = 0; which < 4; which++) {
        struct tensor pair[2] = {want, have};
        poison(want);
        poison(have);
        for (int side = 0; side < 2; side++) {
            struct backend *b = side ? l->fast : l->ref;
            if (which == 0)
                b->ops->rmsnorm(b, pair[side], x, w, 1e-5f);
            else if (which == 1)
                b->ops->layernorm(b, pair[side], x, w, bias, 1e-6f);
            else if (which == 2)
                b->ops->gated_norm(b, pair[side], x, z, w, groups, 1e-5f);
            else {
                b->ops->copy(b, pair[side], z);
                b->ops->add(b, pair[side], x);
            }
        }
        off = fmax(off, worst(have, want));
    }
    drop(l->ref, 6, (struct tensor *const[]){&x, &z, &w, &bias, &want, &have});
    return off;
}

static double case_conv(const struct lab *l)
{
    int T = between(1, 30), C = between(1, 80), K = between(2, 5);
    struct tensor x = make(l->ref, l->act, T, C, -2, 2), w = make(l->ref, DT_F32, C, K, -1, 1);
    struct tensor bias = make(l->ref, DT_F32, 1, C, -1, 1);
    struct tensor s1 = make(l->ref, l->act, K - 1, C, -2, 2), s2 = twin(l->ref, s1), want = twin(l->ref, x),
                  have = twin(l->ref, x);
    poison(have);
    l->ref->ops->conv(l->ref, want, x, w, bias, s1);
    l->fast->ops->conv(l->fast, have, x, w, bias, s2);
    double off = fmax(worst(have, want), worst(s2, s1));
    drop(l->ref, 7, (struct tensor *const[]){&x, &w, &bias, &s1, &s2, &want, &have});
    return off;
}

/* A Mamba-2 layer of random shape. */
struct ssm_case {
    struct ssm_shape s;
    struct ssm_const c;
    float a[16], dt_bias[16], d[16];
    struct tensor v, dt, state;
    int T, inner;
};

static void ssm_make(struct ssm_case *k, struct backend *b, enum dtype act, int T, int P, int N)
{
    int G = 1 << between(0, 1), H = G * between(1, 3);
    k->s = (struct ssm_shape){H, P, N, G, 4, between(2, 40), 0, INFINITY};
    k->c = (struct ssm_const){k->a, k->dt_bias, k->d};
    k->T = T;
    k->inner = H * P;
    for (int h = 0; h < H; h++) {
        k->a[h] = (float)-exp(uniform(-2, 2));
        k->dt_bias[h] = (float)uniform(-4, 1);
        k->d[h] = (float)uniform(-1, 1);
    }
    k->v = make(b, act, T, k->inner + 2 * G * N, -1, 1);
    k->dt = make(b, act, T, H, -2, 2);
    k->state = make(b, DT_F32, k->inner, N, -1, 1);
}

static void ssm_drop(struct ssm_case *k, struct backend *b)
{
    drop(b, 3, (struct tensor *const[]){&k->v, &k->dt, &k->state});
}

static double case_ssm(const struct lab *l)
{
    struct ssm_case k;
    int step = between(0, 1);
    ssm_make(&k, l->ref, l->act, step ? 1 : between(1, 70), between(1, 80), between(1, 70));
    struct tensor s2 = twin(l->ref, k.state), want = l->ref->ops->alloc(l->ref, l->act, k.T, k.inner),
                  have = twin(l->ref, want);
    poison(have);
    (step ? l->ref->ops->ssm_step : l->ref->ops->ssm_scan)(l->ref, want, k.v, k.dt, k.state, &k.s, &k.c);
    (step ? l->fast->ops->ssm_step : l->fast->ops->ssm_scan)(l->fast, have, k.v, k.dt, s2, &k.s, &k.c);
    double off = fmax(worst(have, want), worst(s2, k.state));
    ssm_drop(&k, l->ref);
    drop(l->ref, 3, (struct tensor *const[]){&s2, &want, &have});
    return off;
}

/* Attention is a mean of values of at most 1, whose weights are rounded to bf16: half a step each. */
static const double weights_rounded = 0x1p-8;

static double case_attend(const struct lab *l)
{
    int kv = between(1, 3), group = between(1, 3), d = between(1, 90), T = between(1, 70),
        past = between(0, 130);
    struct tensor q = make(l->ref, l->act, T, (int64_t)kv * group * d, -1, 1);
    struct tensor k = make(l->ref, l->act, past + T, (int64_t)kv * d, -1, 1),
                  v = make(l->ref, l->act, past + T, (int64_t)kv * d, -1, 1);
    struct tensor want = twin(l->ref, q), have = twin(l->ref, q);
    poison(have);
    l->ref->ops->attend(l->ref, want, q, k, v, kv * group, kv, past);
    l->fast->ops->attend(l->fast, have, q, k, v, kv * group, kv, past);
    double off = worst_within(have, want, l->act == DT_BF16 ? weights_rounded : 0);
    drop(l->ref, 5, (struct tensor *const[]){&q, &k, &v, &want, &have});
    return off;
}

static double case_tiles(const struct lab *l)
{
    int heads = between(1, 3), d = between(1, 90), tiles = between(1, 3), n = between(1, 90);
    struct tensor qkv = make(l->ref, l->act, (int64_t)tiles * n, 3 * (int64_t)heads * d, -1, 1);
    struct tensor want = make(l->ref, l->act, qkv.rows, (int64_t)heads * d, 0, 0), have = twin(l->ref, want);
    poison(have);
    l->ref->ops->attend_tiles(l->ref, want, qkv, heads, tiles);
    l->fast->ops->attend_tiles(l->fast, have, qkv, heads, tiles);
    double off = worst_within(have, want, l->act == DT_BF16 ? weights_rounded : 0);
    drop(l->ref, 3, (struct tensor *const[]){&qkv, &want, &have});
    return off;
}

static void compare(case_fn *fn, int rounds)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(2);
    struct lab l = {.ref = backend_cpu("ref", NULL, NULL)};
    for (int i = 1; i < n; i++) {
        l.fast = backend_cpu(isa[i], pool, NULL);
        assert_non_null(l.fast);
        for (int act = 0; act < 2; act++) {
            l.act = act ? DT_BF16 : DT_F32;
            double off = 0;
            for (int r = 0; r < rounds; r++)
                off = fmax(off, fn(&l));
            check_note("%-10s %-4s %d cases, worst difference %.2f of the tolerance", isa[i],
                       dtype_name(l.act), rounds, off);
            assert_true(off <= 1);
        }
        backend_free(l.fast);
    }
    backend_free(l.ref);
    pool_free(pool);
}

static void t_linear(void **state)
{
    (void)state;
    compare(case_linear, 150);
}

static void t_norms(void **state)
{
    (void)state;
    compare(case_norms, 60);
}

static void t_conv(void **state)
{
    (void)state;
    compare(case_conv, 60);
}

static void t_ssm(void **state)
{
    (void)state;
    compare(case_ssm, 60);
}

static void t_attend(void **state)
{
    (void)state;
    compare(case_attend, 40);
}

static void t_tiles(void **state)
{
    (void)state;
    compare(case_tiles, 40);
}

/* ---- equalities that hold on each backend ------------------------------------------------------------ */

/* Largest |a - b| relative to the largest |b|. */
static double relative(struct tensor a, struct tensor b)
{
    double most = 1e-30, off = 0;
    for (int64_t r = 0; r < b.rows; r++)
        for (int64_t c = 0; c < b.cols; c++) {
            most = fmax(most, fabs((double)at(b, r, c)));
            off = fmax(off, fabs((double)at(a, r, c) - at(b, r, c)));
        }
    return off / most;
}

static void each_isa(void (*fn)(struct backend *b))
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(isa[i], NULL, NULL);
        fn(b);
        backend_free(b);
    }
}

/* f32 scans differ from the recurrence by rounding only: exp of sums instead of products of exp. */
static void scan_is_recurrence(struct backend *b)
{
    static const int dims[][2] = {{80, 128}, {64, 64}, {7, 5}};
    double off = 0;
    for (int round = 0; round < 6; round++) {
        struct ssm_case k;
        ssm_make(&k, b, DT_F32, between(1, 60), dims[round % 3][0], dims[round % 3][1]);
        struct tensor s2 = twin(b, k.state), want = b->ops->alloc(b, DT_F32, k.T, k.inner),
                      have = twin(b, want);
        for (int t = 0; t < k.T; t++)
            b->ops->ssm_step(b, tensor_rows(want, t, 1), tensor_rows(k.v, t, 1), tensor_rows(k.dt, t, 1),
                             k.state, &k.s, &k.c);
        int cut = between(0, k.T); /* two calls, so that a state is handed over in the middle */
        if (cut)
            b->ops->ssm_scan(b, tensor_rows(have, 0, cut), tensor_rows(k.v, 0, cut),
                             tensor_rows(k.dt, 0, cut), s2, &k.s, &k.c);
        if (cut < k.T)
            b->ops->ssm_scan(b, tensor_rows(have, cut, k.T - cut), tensor_rows(k.v, cut, k.T - cut),
                             tensor_rows(k.dt, cut, k.T - cut), s2, &k.s, &k.c);
        off = fmax(off, fmax(relative(have, want), relative(s2, k.state)));
        ssm_drop(&k, b);
        drop(b, 3, (struct tensor *const[]){&s2, &want, &have});
    }
    check_note("%-10s largest relative difference %.1e", b->ops->name, off);
    assert_true(off < 5e-6);
}

static void t_scan(void **state)
{
    (void)state;
    each_isa(scan_is_recurrence);
}

static void conv_splits(struct backend *b)
{
    for (int round = 0; round < 20; round++) {
        int T = between(2, 12), C = 33, cut = between(1, T - 1);
        struct tensor x = make(b, DT_BF16, T, C, -2, 2), w = make(b, DT_F32, C, 4, -1, 1),
                      bias = make(b, DT_F32, 1, C, -1, 1);
        struct tensor s1 = make(b, DT_BF16, 3, C, -2, 2), s2 = twin(b, s1), whole = twin(b, x),
                      parts = twin(b, x);
        b->ops->conv(b, whole, x, w, bias, s1);
        b->ops->conv(b, tensor_rows(parts, 0, cut), tensor_rows(x, 0, cut), w, bias, s2);
        b->ops->conv(b, tensor_rows(parts, cut, T - cut), tensor_rows(x, cut, T - cut), w, bias, s2);
        assert_memory_equal(whole.data, parts.data, (size_t)T * (size_t)C * 2);
        assert_memory_equal(s1.data, s2.data, (size_t)3 * (size_t)C * 2);
        drop(b, 7, (struct tensor *const[]){&x, &w, &bias, &s1, &s2, &whole, &parts});
    }
}

static void t_conv_split(void **state)
{
    (void)state;
    each_isa(conv_splits);
}

/* The reference against softmax(q k / sqrt d) v in double precision. */
static void t_ref_attend(void **state)
{
    (void)state;
    struct backend *b = backend_cpu("ref", NULL, NULL);
    int T = 9, past = 4, d = 6, S = T + past;
    struct tensor q = make(b, DT_F32, T, 2 * d, -2, 2), k = make(b, DT_F32, S, d, -2, 2),
                  v = make(b, DT_F32, S, d, -2, 2), y = twin(b, q);
    b->ops->attend(b, y, q, k, v, 2, 1, past);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < 2; h++)
            for (int c = 0; c < d; c++) {
                double sum = 0, total = 0;
                for (int s = 0; s <= past + t; s++) {
                    double dot = 0;
                    for (int i = 0; i < d; i++)
                        dot += (double)at(q, t, h * d + i) * at(k, s, i);
                    total += exp(dot / sqrt(d));
                    sum += exp(dot / sqrt(d)) * at(v, s, c);
                }
                assert_true(fabs(at(y, t, h * d + c) - sum / total) < 1e-5);
            }
    drop(b, 4, (struct tensor *const[]){&q, &k, &v, &y});
    backend_free(b);
}

/* The recurrence against its definition, written out for one head. */
static void t_ref_step(void **state)
{
    (void)state;
    struct backend *b = backend_cpu("ref", NULL, NULL);
    struct ssm_shape s = {1, 2, 3, 1, 4, 8, 0, INFINITY};
    float a = -0.5f, bias = 0.3f, D = 2;
    struct ssm_const c = {&a, &bias, &D};
    struct tensor v = make(b, DT_F32, 1, 2 + 6, -1, 1), dt = make(b, DT_F32, 1, 1, -1, 1),
                  S = make(b, DT_F32, 2, 3, -1, 1);
    struct tensor before = twin(b, S), y = b->ops->alloc(b, DT_F32, 1, 2);
    b->ops->ssm_step(b, y, v, dt, S, &s, &c);
    double delta = log1p(exp((double)at(dt, 0, 0) + bias));
    for (int p = 0; p < 2; p++) {
        double sum = D * (double)at(v, 0, p);
        for (int n = 0; n < 3; n++) {
            double next = exp(delta * a) * at(before, p, n) + delta * at(v, 0, p) * at(v, 0, 2 + n);
            assert_true(fabs(next - at(S, p, n)) < 1e-6);
            sum += next * at(v, 0, 5 + n);
        }
        assert_true(fabs(sum - at(y, 0, p)) < 1e-5);
    }
    drop(b, 5, (struct tensor *const[]){&v, &dt, &S, &before, &y});
    backend_free(b);
}

static void t_shuffle(void **state)
{
    (void)state;
    struct backend *b = backend_cpu("ref", NULL, NULL);
    int g = 6, C = 3;
    struct tensor x = b->ops->alloc(b, DT_F32, g * g, C), y = b->ops->alloc(b, DT_F32, g * g / 4, 4 * C);
    for (int i = 0; i < g * g * C; i++)
        ((float *)x.data)[i] = (float)i;
    b->ops->pixel_shuffle(b, y, x, g);
    for (int p = 0; p < g / 2; p++)
        for (int q = 0; q < g / 2; q++)
            for (int k = 0; k < 4; k++)
                for (int c = 0; c < C; c++)
                    assert_true(at(y, p * (g / 2) + q, k * C + c) ==
                                at(x, (2 * p + k / 2) * g + 2 * q + k % 2, c));
    drop(b, 2, (struct tensor *const[]){&x, &y});
    backend_free(b);
}

/* ---- threads, dtypes, choice ------------------------------------------------------------------------ */

static void t_threads(void **state)
{
    (void)state;
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(3);
    for (int i = 0; i < n; i++) {
        struct backend *one = backend_cpu(isa[i], NULL, NULL), *three = backend_cpu(isa[i], pool, NULL);
        struct tensor x = make(one, DT_BF16, 300, 96, -1, 1), host = make(one, DT_F32, 192, 96, -1, 1),
                      none = {0};
        struct tensor y1 = one->ops->alloc(one, DT_BF16, 300, 192), y3 = twin(one, y1),
                      a1 = one->ops->alloc(one, DT_BF16, 300, 64), a3 = twin(one, a1);
        struct weight *w = one->ops->pack(one, host, DT_BF16);
        one->ops->linear(one, y1, x, w, none, EPI_GELU, 0);
        three->ops->linear(three, y3, x, w, none, EPI_GELU, 0);
        assert_memory_equal(y1.data, y3.data, 300 * 192 * 2);
        one->ops->attend_tiles(one, a1, y1, 2, 1);
        three->ops->attend_tiles(three, a3, y1, 2, 1);
        assert_memory_equal(a1.data, a3.data, 300 * 64 * 2);
        one->ops->unpack_free(one, w);
        drop(one, 6, (struct tensor *const[]){&x, &host, &y1, &y3, &a1, &a3});
        backend_free(one);
        backend_free(three);
    }
    pool_free(pool);
}

/* One product with a weight that was packed and one with the same weight left where it is. */
static void compare_borrowed(struct backend *b, enum dtype act, enum dtype kept)
{
    static const int rows[] = {1, 2, 5, 40, 130, 700};
    int T = rows[between(0, 5)], N = between(1, T > 200 ? 90 : 400), K = between(1, 1300);
    struct tensor x = make(b, act, T, K, -1, 1), host = make(b, kept, N, K, -1, 1), bias = {0};
    struct tensor packed = make(b, between(0, 1) ? act : DT_F32, T, N, -1, 1), borrowed = twin(b, packed);
    struct weight *p = b->ops->pack(b, host, kept), *q = b->ops->borrow(b, host, false);
    enum epilogue epi = (enum epilogue)between(0, 2);
    int add = between(0, 1);
    b->ops->linear(b, packed, x, p, bias, epi, add);
    b->ops->linear(b, borrowed, x, q, bias, epi, add);
    assert_memory_equal(packed.data, borrowed.data, (size_t)(T * N) * dtype_size(packed.dtype));
    b->ops->unpack_free(b, p);
    b->ops->unpack_free(b, q);
    drop(b, 4, (struct tensor *const[]){&x, &host, &packed, &borrowed});
}

static void t_borrowed(void **state)
{
    (void)state;
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(2);
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(isa[i], i % 2 ? pool : NULL, NULL);
        for (int round = 0; round < (i ? 60 : 4); round++)
            compare_borrowed(b, round % 2 ? DT_BF16 : DT_F32, round % 3 ? DT_BF16 : DT_F32);
        backend_free(b);
    }
    pool_free(pool);
}

static void t_dtypes(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) { /* every bf16 survives the way to f32 and back */
        float f = bf16_to_f32((uint16_t)h);
        if (!isnan(f))
            assert_int_equal(bf16_from_f32(f), h);
        else
            assert_true(isnan(bf16_to_f32(bf16_from_f32(f))));
    }
    assert_int_equal(bf16_from_f32(1.00390625f), 0x3f80); /* halfway: to even */
    assert_int_equal(bf16_from_f32(1.01171875f), 0x3f82);
    assert_true(f16_to_f32(0x3c00) == 1 && f16_to_f32(0xc000) == -2 && f16_to_f32(1) == ldexpf(1, -24));
    assert_true(isinf(f16_to_f32(0x7c00)) && isnan(f16_to_f32(0x7c01)));
    assert_true(f8e4m3_to_f32(0x7e) == 448 && f8e4m3_to_f32(0x38) == 1 && f8e4m3_to_f32(1) == ldexpf(1, -9));
    assert_true(isnan(f8e4m3_to_f32(0x7f)) && isnan(f8e4m3_to_f32(0xff)) && f8e4m3_to_f32(0xb8) == -1);
}

static void t_choice(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_null(backend_cpu("sse9", NULL, &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_non_null(strstr(e.text, "'sse9'"));
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct backend *best = backend_cpu(NULL, NULL, &e);
    assert_string_equal(best->ops->name, isa[n - 1]);
    check_note("this CPU runs %s", isa[n - 1]);
    backend_free(best);
}

static const struct CMUnitTest tests[] = {
    CLAIM("matrix products with every epilogue equal the reference on every instruction set", t_linear),
    CLAIM("a weight read where it lies gives the products of a packed one, bit for bit", t_borrowed),
    CLAIM("norms and sums equal the reference on every instruction set", t_norms),
    CLAIM("the convolution and its state equal the reference on every instruction set", t_conv),
    CLAIM("the state space step and scan equal the reference on every instruction set", t_ssm),
    CLAIM("causal attention over a cache equals the reference on every instruction set", t_attend),
    CLAIM("attention inside tiles equals the reference on every instruction set", t_tiles),
    CLAIM("a chunked scan, cut anywhere, equals the single-token recurrence", t_scan),
    CLAIM("a convolution cut anywhere equals an uncut one, bit for bit", t_conv_split),
    CLAIM("the reference attention equals its formula in double precision", t_ref_attend),
    CLAIM("the reference recurrence equals its formula in double precision", t_ref_step),
    CLAIM("the pixel shuffle puts each channel where its index says", t_shuffle),
    CLAIM("one thread equals three, bit for bit", t_threads),
    CLAIM("bf16, f16 and f8 convert exactly", t_dtypes),
    CLAIM("an unknown instruction set is refused by name, the best one is the default", t_choice),
};

int main(int argc, char **argv)
{
    rng = check_seed();
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
