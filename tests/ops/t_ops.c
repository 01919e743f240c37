/* t_ops.c - compares the scalar reference of src/ops with formulas in double precision, and every
 * instruction set of this CPU with the reference.  lab.h explains the tolerances.
 */
#include "check.h"
#include "lab.h"

#include <math.h>

static void compare(lab_case *fn, int rounds)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(2);
    struct lab l = {.ref = backend_cpu("ref", NULL, NULL)};
    l.mem = l.ref;
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
    compare(lab_linear, 150);
}

static void t_norms(void **state)
{
    compare(lab_norms, 60);
}

static void t_conv(void **state)
{
    compare(lab_conv, 60);
}

static void t_ssm(void **state)
{
    compare(lab_ssm, 60);
}

static void t_attend(void **state)
{
    compare(lab_attend, 40);
}

static void t_tiles(void **state)
{
    compare(lab_tiles, 40);
}

/* ---- equalities that hold on each backend ---------------------------------------------------- */

/* Returns the largest |a - b| relative to the largest |b|. */
static double relative(struct tensor a, struct tensor b)
{
    double most = 1e-30, off = 0;
    for (int64_t r = 0; r < b.rows; r++)
        for (int64_t c = 0; c < b.cols; c++) {
            most = fmax(most, fabs((double)lab_at(b, r, c)));
            off = check_worse(off, fabs((double)lab_at(a, r, c) - lab_at(b, r, c)));
        }
    return off / most;
}

/* An f32 scan differs from the recurrence by rounding: it uses exp of sums instead of products of exp. */
static void scan_is_recurrence(struct backend *b)
{
    static const int dims[][2] = {{80, 128}, {64, 64}, {7, 5}};
    double off = 0;
    for (int round = 0; round < 6; round++) {
        struct lab_ssm k;
        lab_ssm_make(&k, b, DT_F32, lab_between(1, 60), dims[round % 3][0], dims[round % 3][1]);
        struct tensor s2 = lab_twin(b, k.state), want = b->ops->alloc(b, DT_F32, k.T, k.inner),
                      have = lab_twin(b, want);
        for (int t = 0; t < k.T; t++)
            b->ops->ssm_step_batch(b, tensor_rows(want, t, 1), tensor_rows(k.v, t, 1),
                                   tensor_rows(k.dt, t, 1), &k.state, NULL, &k.s, &k.c);
        int cut = lab_between(0, k.T); /* two calls, to pass a state between them */
        if (cut)
            b->ops->ssm_scan(b, tensor_rows(have, 0, cut), tensor_rows(k.v, 0, cut),
                             tensor_rows(k.dt, 0, cut), s2, 0, &k.s, &k.c);
        if (cut < k.T)
            b->ops->ssm_scan(b, tensor_rows(have, cut, k.T - cut), tensor_rows(k.v, cut, k.T - cut),
                             tensor_rows(k.dt, cut, k.T - cut), s2, 0, &k.s, &k.c);
        off = check_worse(off, check_worse(relative(have, want), relative(s2, k.state)));
        lab_ssm_drop(&k, b);
        lab_drop(b, 3, (struct tensor *const[]){&s2, &want, &have});
    }
    check_note("%-10s largest relative difference %.1e", b->ops->name, off);
    assert_true(off < 5e-6);
}

static void t_scan(void **state)
{
    lab_each_isa(scan_is_recurrence);
}

/* Mixes tokens with total and with slow decay: prefix sums reach tens of thousands. */
static void scan_forgets(struct backend *b)
{
    enum { T = 256, P = 16, N = 16 };
    double off = 0;
    for (int round = 0; round < 4; round++) {
        struct lab_ssm k;
        lab_ssm_of(&k, b, DT_F32, T, 1, 2, P, N);
        k.s.chunk = 128;
        for (int h = 0; h < 2; h++) {
            ((float *)k.a.data)[h] = (float)-lab_uniform(4, 16);
            ((float *)k.dt_bias.data)[h] = 0;
            for (int t = 0; t < T; t++)
                ((float *)k.dt.data)[t * 2 + h] = lab_between(0, 3) ? -5 : (float)lab_uniform(10, 60);
        }
        struct tensor s2 = lab_twin(b, k.state), want = b->ops->alloc(b, DT_F32, T, k.inner),
                      have = lab_twin(b, want);
        for (int t = 0; t < T; t++)
            lab_ssm_run(&k, b, true, want, t, 1, k.state, 0);
        lab_ssm_run(&k, b, false, have, 0, T, s2, 0);
        for (int h = 0; h < 2; h++)
            off = check_worse(off, relative(tensor_cols(have, h * P, P), tensor_cols(want, h * P, P)));
        off = check_worse(off, relative(s2, k.state));
        lab_ssm_drop(&k, b);
        lab_drop(b, 3, (struct tensor *const[]){&s2, &want, &have});
    }
    check_note("%-10s largest difference %.1e of the largest", b->ops->name, off);
    assert_true(off < 1e-5);
}

static void t_forgets(void **state)
{
    lab_each_isa(scan_forgets);
}

static void conv_splits(struct backend *b)
{
    for (int round = 0; round < 20; round++) {
        int T = lab_between(2, 12), C = 33, cut = lab_between(1, T - 1);
        struct tensor x = lab_make(b, DT_BF16, T, C, -2, 2), w = lab_make(b, DT_F32, C, 4, -1, 1),
                      bias = lab_make(b, DT_F32, 1, C, -1, 1);
        struct tensor s1 = lab_make(b, DT_BF16, 3, C, -2, 2), s2 = lab_twin(b, s1), whole = lab_twin(b, x),
                      parts = lab_twin(b, x);
        b->ops->conv_tokens(b, whole, x, w, bias, s1);
        b->ops->conv_tokens(b, tensor_rows(parts, 0, cut), tensor_rows(x, 0, cut), w, bias, s2);
        b->ops->conv_tokens(b, tensor_rows(parts, cut, T - cut), tensor_rows(x, cut, T - cut), w, bias, s2);
        assert_memory_equal(whole.data, parts.data, (size_t)T * (size_t)C * 2);
        assert_memory_equal(s1.data, s2.data, (size_t)3 * (size_t)C * 2);
        lab_drop(b, 7, (struct tensor *const[]){&x, &w, &bias, &s1, &s2, &whole, &parts});
    }
}

static void t_conv_split(void **state)
{
    lab_each_isa(conv_splits);
}

/* Compares the reference with softmax(q k / sqrt d) v in double precision. */
static void t_ref_attend(void **state)
{
    struct backend *b = backend_cpu("ref", NULL, NULL);
    int T = 9, past = 4, d = 6, S = T + past;
    struct tensor q = lab_make(b, DT_F32, T, 2 * d, -2, 2), k = lab_make(b, DT_F32, S, d, -2, 2),
                  v = lab_make(b, DT_F32, S, d, -2, 2), y = lab_twin(b, q);
    b->ops->attend_tokens(b, y, q, k, v, 2, 1, past);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < 2; h++)
            for (int c = 0; c < d; c++) {
                double sum = 0, total = 0;
                for (int s = 0; s <= past + t; s++) {
                    double dot = 0;
                    for (int i = 0; i < d; i++)
                        dot += (double)lab_at(q, t, h * d + i) * lab_at(k, s, i);
                    total += exp(dot / sqrt(d));
                    sum += exp(dot / sqrt(d)) * lab_at(v, s, c);
                }
                assert_true(fabs(lab_at(y, t, h * d + c) - sum / total) < 1e-5);
            }
    lab_drop(b, 4, (struct tensor *const[]){&q, &k, &v, &y});
    backend_free(b);
}

/* Compares the recurrence with its definition for one head. */
static void t_ref_step(void **state)
{
    struct backend *b = backend_cpu("ref", NULL, NULL);
    struct ssm_shape s = {1, 2, 3, 1, 4, 8, 0, INFINITY};
    float a = -0.5f, bias = 0.3f, D = 2;
    struct ssm_const c = {&a, &bias, &D};
    struct tensor v = lab_make(b, DT_F32, 1, 2 + 6, -1, 1), dt = lab_make(b, DT_F32, 1, 1, -1, 1),
                  S = lab_make(b, DT_F32, 2, 3, -1, 1);
    struct tensor before = lab_twin(b, S), y = b->ops->alloc(b, DT_F32, 1, 2);
    b->ops->ssm_step_batch(b, y, v, dt, &S, NULL, &s, &c);
    double delta = log1p(exp((double)lab_at(dt, 0, 0) + bias));
    for (int p = 0; p < 2; p++) {
        double sum = D * (double)lab_at(v, 0, p);
        for (int n = 0; n < 3; n++) {
            double next =
                exp(delta * a) * lab_at(before, p, n) + delta * lab_at(v, 0, p) * lab_at(v, 0, 2 + n);
            assert_true(fabs(next - lab_at(S, p, n)) < 1e-6);
            sum += next * lab_at(v, 0, 5 + n);
        }
        assert_true(fabs(sum - lab_at(y, 0, p)) < 1e-5);
    }
    lab_drop(b, 5, (struct tensor *const[]){&v, &dt, &S, &before, &y});
    backend_free(b);
}

static void t_shuffle(void **state)
{
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
                    assert_true(lab_at(y, p * (g / 2) + q, k * C + c) ==
                                lab_at(x, (2 * p + k / 2) * g + 2 * q + k % 2, c));
    lab_drop(b, 2, (struct tensor *const[]){&x, &y});
    backend_free(b);
}

/* ---- threads, dtypes, choice ------------------------------------------------------------------------ */

static void compare_threads(struct backend *one, struct backend *three)
{
    struct tensor x = lab_make(one, DT_BF16, 300, 96, -1, 1), host = lab_make(one, DT_F32, 192, 96, -1, 1),
                  none = {0};
    struct tensor y1 = one->ops->alloc(one, DT_BF16, 300, 192), y3 = lab_twin(one, y1),
                  a1 = one->ops->alloc(one, DT_BF16, 300, 64), a3 = lab_twin(one, a1);
    struct weight *w = one->ops->pack(one, host, DT_BF16);
    one->ops->linear(one, y1, x, w, none, EPI_GELU, SET);
    three->ops->linear(three, y3, x, w, none, EPI_GELU, SET);
    assert_memory_equal(y1.data, y3.data, 300 * 192 * 2);
    one->ops->attend_tiles(one, a1, y1, 2, 1);
    three->ops->attend_tiles(three, a3, y1, 2, 1);
    assert_memory_equal(a1.data, a3.data, 300 * 64 * 2);
    one->ops->weight_free(one, w);
    lab_drop(one, 6, (struct tensor *const[]){&x, &host, &y1, &y3, &a1, &a3});
}

static void t_threads(void **state)
{
    lab_each_threads(3, compare_threads);
}

/* Compares a product with a packed weight and one that reads the same weight in place. */
static void compare_borrowed(struct backend *b, enum dtype act, enum dtype kept)
{
    static const int rows[] = {1, 2, 5, 40, 130, 700};
    int T = rows[lab_between(0, 5)], N = lab_between(1, T > 200 ? 90 : 400), K = lab_between(1, 1300);
    struct tensor x = lab_make(b, act, T, K, -1, 1), host = lab_make(b, kept, N, K, -1, 1), bias = {0};
    struct tensor packed = lab_make(b, lab_between(0, 1) ? act : DT_F32, T, N, -1, 1),
                  borrowed = lab_twin(b, packed);
    struct weight *p = b->ops->pack(b, host, kept), *q = b->ops->borrow(b, host, false);
    enum epilogue epi = (enum epilogue)lab_between(0, 2);
    enum accumulate add = lab_between(0, 1) ? ADD : SET;
    b->ops->linear(b, packed, x, p, bias, epi, add);
    b->ops->linear(b, borrowed, x, q, bias, epi, add);
    assert_memory_equal(packed.data, borrowed.data, (size_t)(T * N) * dtype_size(packed.dtype));
    b->ops->weight_free(b, p);
    b->ops->weight_free(b, q);
    lab_drop(b, 4, (struct tensor *const[]){&x, &host, &packed, &borrowed});
}

static void t_borrowed(void **state)
{
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
    for (uint32_t h = 0; h < 0x10000; h++) { /* bf16 to f32 and back is exact */
        float f = bf16_to_f32((uint16_t)h);
        if (!isnan(f))
            assert_int_equal(bf16_from_f32(f), h);
        else
            assert_true(isnan(bf16_to_f32(bf16_from_f32(f))));
    }
    assert_int_equal(bf16_from_f32(1.00390625f), 0x3f80); /* halfway: rounds to even */
    assert_int_equal(bf16_from_f32(1.01171875f), 0x3f82);
    assert_true(f16_to_f32(0x3c00) == 1 && f16_to_f32(0xc000) == -2 && f16_to_f32(1) == ldexpf(1, -24));
    assert_true(isinf(f16_to_f32(0x7c00)) && isnan(f16_to_f32(0x7c01)));
    assert_true(f8e4m3_to_f32(0x7e) == 448 && f8e4m3_to_f32(0x38) == 1 && f8e4m3_to_f32(1) == ldexpf(1, -9));
    assert_true(isnan(f8e4m3_to_f32(0x7f)) && isnan(f8e4m3_to_f32(0xff)) && f8e4m3_to_f32(0xb8) == -1);
}

static void t_choice(void **state)
{
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
    CLAIM("a weight read in place gives the same bits as a packed one", t_borrowed),
    CLAIM("norms and sums equal the reference on every instruction set", t_norms),
    CLAIM("the convolution and its state equal the reference on every instruction set", t_conv),
    CLAIM("the state space step and scan equal the reference on every instruction set", t_ssm),
    CLAIM("causal attention over a cache equals the reference on every instruction set", t_attend),
    CLAIM("attention inside tiles equals the reference on every instruction set", t_tiles),
    CLAIM("a chunked scan, cut anywhere, equals the single-token recurrence", t_scan),
    CLAIM("a scan under strong decay is as near to the recurrence as one under weak decay", t_forgets),
    CLAIM("a convolution cut anywhere equals an uncut one, bit for bit", t_conv_split),
    CLAIM("the reference attention equals its formula in double precision", t_ref_attend),
    CLAIM("the reference recurrence equals its formula in double precision", t_ref_step),
    CLAIM("the pixel shuffle writes each channel to the correct index", t_shuffle),
    CLAIM("one thread equals three, bit for bit", t_threads),
    CLAIM("bf16, f16 and f8 convert exactly", t_dtypes),
    CLAIM("an unknown instruction set is refused by name, the best one is the default", t_choice),
};

CHECK_MAIN(lab_random = check_seed())
