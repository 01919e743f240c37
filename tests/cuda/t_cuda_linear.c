/* t_cuda_linear.c - tests of matrix products: every weight format, few rows and many, compared with the
 * scalar reference (see t_cuda_ops.c).  Products of experts are in t_cuda_moe.c.
 *
 * For many rows, values of i4 are rounded to bf16; the reference then multiplies these.
 *
 * Without a GPU, cuBLASLt is emulated by a plain loop (emu/cublaslt.cc); the tests then show that it gets
 * the right matrices and that its sums are used correctly.  lab_worst (lab.h) explains the tolerance; a
 * product is rounded, up or down, before it is added.
 */
#include "check.h"
#include "lab.h"

#include "emu/emu.h"
#include "ops/quant.h"

#include <math.h>

/* ---- products -------------------------------------------------------------------------------- */

struct shape {
    int64_t T, N, K;
    enum quant_format format;
    enum dtype kept, out;
    int skip; /* columns before and after x and y in the matrices that they view */
    enum epilogue epi;
    bool add, biased, exact; /* exact: bf16 represents the bias exactly */
};

/* Returns a matrix in the middle of *whole, whose other columns are NaN. */
static struct tensor inside(struct tensor *whole, struct backend *b, enum dtype t, int64_t rows, int64_t cols,
                            int skip)
{
    *whole = b->ops->alloc(b, t, rows, cols + 2 * skip);
    lab_poison(*whole);
    struct tensor x = tensor_cols(*whole, skip, cols);
    lab_fill(x, -1, 1);
    return x;
}

static bool edges_are_nan(struct tensor whole, int skip)
{
    for (int64_t r = 0; r < whole.rows; r++)
        for (int c = 0; c < skip; c++)
            if (!isnan(lab_at(whole, r, c)) || !isnan(lab_at(whole, r, whole.cols - 1 - c)))
                return false;
    return true;
}

/* Returns whether a product is the library's, for which i4 values are rounded to bf16. */
static bool by_library(const struct lab *l, const struct shape *s)
{
    return s->T > (s->format ? 64 : 16) && l->act == DT_BF16 && (s->N | s->K | s->skip) % 8 == 0;
}

static double product(const struct lab *l, const struct shape *s)
{
    struct lab_weights m = lab_weights_make(s->format, s->N, s->K);
    struct weight *wr = lab_weights_pack(l->ref, s->format, &m, s->kept);
    if (s->format == QUANT_I4 && by_library(l, s))
        wr = lab_rounded(l, wr, s->N, s->K);
    struct weight *wf = lab_weights_pack(l->fast, s->format, &m, s->kept);
    struct tensor X, Y, none = {0}, x = inside(&X, l->mem, l->act, s->T, s->K, s->skip),
                        have = inside(&Y, l->mem, s->out, s->T, s->N, s->skip);
    struct tensor bias = lab_make(l->mem, DT_F32, 1, s->N, -1, 1), want = lab_twin(l->mem, have);
    float *biases = bias.data;
    for (int64_t i = 0; i < s->N && s->exact; i++)
        biases[i] = bf16_to_f32(bf16_from_f32(biases[i]));
    l->ref->ops->linear(l->ref, want, x, wr, s->biased ? bias : none, s->epi, s->add ? ADD : SET);
    l->fast->ops->linear(l->fast, have, x, wf, s->biased ? bias : none, s->epi, s->add ? ADD : SET);
    assert_true(edges_are_nan(Y, s->skip));
    bool rounded = s->add && s->out == DT_BF16;
    bool gelu = s->epi == EPI_GELU && s->out == DT_BF16 && s->T > 16; /* its argument is rounded as well */
    double within = rounded ? 0x1p-7 * (1 + lab_largest(want)) : gelu ? 0x1p-8 * (1 + lab_largest(want)) : 0;
    double off = lab_worst_within(have, want, within);
    l->ref->ops->weight_free(l->ref, wr);
    l->fast->ops->weight_free(l->fast, wf);
    lab_drop(l->mem, 4, (struct tensor *const[]){&X, &Y, &bias, &want});
    lab_weights_drop(&m);
    return s->epi == EPI_RELU2 ? off / 3
                               : off; /* an error of v counts twice in v^2, which is rounded as well */
}

static void random_rest(struct shape *s, enum dtype act)
{
    s->epi = (enum epilogue)lab_between(0, 2);
    s->add = lab_between(0, 1);
    s->biased = lab_between(0, 1);
    s->exact = lab_between(0, 1);
    s->out = lab_between(0, 2) ? act : DT_F32;
    s->kept = act;
}

static void compare(enum dtype act, enum quant_format format, const int64_t *rows, int n, bool whole)
{
    struct lab l = lab_open(act);
    double worst = 0;
    for (int i = 0; i < n; i++) {
        struct shape s = {.T = rows[i], .format = format};
        int unit = whole ? 8 : 1;
        s.N = unit * lab_between(1, 90 / unit);
        s.K = unit * lab_between(1, 330 / unit);
        s.skip = whole ? 8 * lab_between(0, 2) : lab_between(0, 3);
        random_rest(&s, act);
        double off = product(&l, &s);
        if (off > 1)
            check_note("%lldx%lldx%lld, %d aside, to %s, epilogue %d%s%s: %.2f", (long long)s.T,
                       (long long)s.N, (long long)s.K, s.skip, dtype_name(s.out), (int)s.epi,
                       s.add ? ", added" : "", s.biased ? ", bias" : "", off);
        worst = fmax(worst, off);
    }
    check_note("%-4s x %-4s %s: %d cases, worst difference %.2f of the tolerance", dtype_name(act),
               format ? quant_name(format) : "own", whole ? "whole" : "odd", n, worst);
    assert_true(worst <= 1);
    lab_close(&l);
}

static const int64_t few[] = {1, 2, 5, 8, 9, 13, 16}, many[] = {17, 33, 65, 70},
                     more[] = {17, 34, 70, 101, 128, 260, 520}; /* for quantized weights */

static void t_plain(void **state)
{
    for (int whole = 0; whole < 2; whole++) {
        compare(DT_F32, QUANT_NONE, few, 7, whole);
        compare(DT_BF16, QUANT_NONE, few, 7, whole);
        compare(DT_BF16, QUANT_NONE, few, 7, whole);
    }
}

static void t_many(void **state)
{
    compare(DT_F32, QUANT_NONE, many, 2, true);
    compare(DT_BF16, QUANT_NONE, many, 4, false);
    for (int i = 0; i < 5; i++)
        compare(DT_BF16, QUANT_NONE, many, 4, true);
}

static void t_small(void **state)
{
    for (enum quant_format f = QUANT_I8; f <= QUANT_F4; f++) {
        compare(DT_F32, f, few, 3, false);
        compare(DT_BF16, f, few, 7, false);
        compare(DT_BF16, f, few, 7, true);
    }
}

static void t_small_many(void **state)
{
    for (enum quant_format f = QUANT_I8; f <= QUANT_F4; f++) {
        compare(DT_BF16, f, many, 4, false);
        for (int i = 0; i < 2; i++)
            compare(DT_BF16, f, more, 7, true);
    }
}

/* Long rows: every warp runs its prefetch loop twice, and some warps have one more block. */
static void t_long(void **state)
{
    struct lab l = lab_open(DT_BF16);
    for (enum quant_format f = QUANT_NONE; f <= QUANT_F4; f++)
        for (int T = 4; T <= 20; T += 8) { /* 1, 2 and 4 tiles of x */
            int64_t K = f == QUANT_NONE ? 1832 : f == QUANT_I4 || f == QUANT_F4 ? 5656 : 3624;
            struct shape s = {.T = T, .N = 8, .K = K, .format = f, .out = DT_F32, .kept = DT_BF16};
            double off = product(&l, &s);
            check_note("%-4s %dx%lld: %.2f of the tolerance", f ? quant_name(f) : "bf16", T, (long long)K,
                       off);
            assert_true(off <= 1);
        }
    lab_close(&l);
}

/* The router's weights are always f32. */
static void t_mixed(void **state)
{
    struct lab l = lab_open(DT_BF16);
    for (int T = 1; T < 40; T += 19) {
        struct shape s = {.T = T, .N = 24, .K = 136, .out = DT_F32, .kept = DT_F32};
        assert_true(product(&l, &s) <= 1);
    }
    lab_close(&l);
    l = lab_open(DT_F32);
    struct shape s = {.T = 3, .N = 24, .K = 136, .out = DT_F32, .kept = DT_BF16};
    assert_true(product(&l, &s) <= 1);
    lab_close(&l);
}

/* Uses integers, whose sums are exact in any order, so that rounding is the only difference. */
static void whole_numbers(struct tensor t, int most)
{
    for (int64_t r = 0; r < t.rows; r++)
        for (int64_t c = 0; c < t.cols; c++) {
            float v = (float)lab_between(-most, most);
            if (t.dtype == DT_BF16)
                ((uint16_t *)t.data)[r * t.stride + c] = bf16_from_f32(v);
            else
                ((float *)t.data)[r * t.stride + c] = v;
        }
}

static void t_rounding(void **state)
{
    struct lab l = lab_open(DT_BF16);
    for (int round = 0; round < 16; round++) {
        int64_t T = round / 8 ? 24 : lab_between(1, 16), N = 24, K = 104;
        enum accumulate add = round % 2 ? ADD : SET;
        enum epilogue epi = round / 2 % 2 ? EPI_RELU2 : EPI_NONE;
        struct tensor x = lab_make(l.mem, DT_BF16, T, K, 0, 0), host = lab_make(l.mem, DT_BF16, N, K, 0, 0);
        struct tensor want = lab_make(l.mem, DT_BF16, T, N, 0, 0), bias = lab_make(l.mem, DT_F32, 1, N, 0, 0),
                      none = {0};
        whole_numbers(x, 9);
        whole_numbers(host, 30);
        whole_numbers(want, 200);
        whole_numbers(bias, 300);
        struct tensor have = lab_twin(l.mem, want);
        struct weight *wr = l.ref->ops->pack(l.ref, host, DT_BF16),
                      *wf = l.fast->ops->pack(l.fast, host, DT_BF16);
        l.ref->ops->linear(l.ref, want, x, wr, round / 4 % 2 ? bias : none, epi, add);
        l.fast->ops->linear(l.fast, have, x, wf, round / 4 % 2 ? bias : none, epi, add);
        assert_memory_equal(have.data, want.data, (size_t)(T * N) * sizeof(uint16_t));
        l.ref->ops->weight_free(l.ref, wr);
        l.fast->ops->weight_free(l.fast, wf);
        lab_drop(l.mem, 5, (struct tensor *const[]){&x, &host, &want, &have, &bias});
    }
    lab_close(&l);
}

/* ---- bits ------------------------------------------------------------------------------------ */

static void same_bits(const struct lab *l, enum quant_format format, int64_t T, int64_t K)
{
    struct lab_weights m = lab_weights_make(format, 40, K);
    struct weight *w = lab_weights_pack(l->fast, format, &m, l->act);
    struct tensor x = lab_make(l->mem, l->act, T, K, -1, 1), none = {0},
                  all = lab_make(l->mem, DT_F32, T, 40, 0, 0), one = lab_make(l->mem, DT_F32, T, 40, 0, 0);
    l->fast->ops->linear(l->fast, all, x, w, none, EPI_NONE, SET);
    for (int64_t t = 0, n = 1; t < T; t += n) {
        n = lab_between(1, 3) == 3 && T - t > 2 ? 3 : 1;
        l->fast->ops->linear(l->fast, tensor_rows(one, t, n), tensor_rows(x, t, n), w, none, EPI_NONE, SET);
    }
    assert_memory_equal(all.data, one.data, (size_t)(T * 40) * sizeof(float));
    l->fast->ops->weight_free(l->fast, w);
    lab_drop(l->mem, 3, (struct tensor *const[]){&x, &all, &one});
    lab_weights_drop(&m);
}

static void t_bits(void **state)
{
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        for (enum quant_format f = QUANT_NONE; f <= QUANT_F4; f++) {
            int most = f ? 64 : 16;
            same_bits(&l, f, lab_between(2, 16), 8 * lab_between(20, 60));
            same_bits(&l, f, lab_between(2, 16), lab_between(20, 400));
            same_bits(&l, f, most, 8 * lab_between(20, 40));
        }
        lab_close(&l);
    }
}

/* ---- kernels of cuBLASLt ---------------------------------------------------------------------- */

static long multiplied(void)
{
    long sum = 0;
    for (int i = 0; i < 8; i++)
        sum += emu_card.multiplied[i];
    return sum;
}

static void check_product(const struct lab *l, int64_t T, int64_t N, bool add)
{
    struct shape s = {.T = T, .N = N, .K = 64, .kept = DT_BF16, .out = DT_BF16, .add = add};
    assert_true(product(l, &s) <= 1);
}

/* The first product of a shape runs eight kernels four times each.  The fastest one is then used for all
 * shapes with a similar number of rows, even if it is no longer the fastest. */
static void t_fastest(void **state)
{
    if (!&emu_card)
        skip();
    struct lab l = lab_open(DT_BF16);
    emu_card.fastest = 5;
    for (int add = 0; add < 2; add++) {
        long before = multiplied(), own = emu_card.multiplied[5], timed = emu_card.timed;
        check_product(&l, 300, 48 + 8 * add, add);
        assert_int_equal(multiplied() - before, 8 * 4 + 1);
        assert_int_equal(emu_card.multiplied[5] - own, 4 + 1);
        assert_int_equal(emu_card.timed - timed, add ? 8 * 4 : 0); /* timing must not change the sum */
        emu_card.fastest = 2;
        check_product(&l, 300, 48 + 8 * add, add);
        check_product(&l, 500, 48 + 8 * add, add);
        assert_int_equal(multiplied() - before, 8 * 4 + 3);
        assert_int_equal(emu_card.multiplied[5] - own, 4 + 3);
        emu_card.fastest = 5;
    }
    emu_card.refused = 5; /* the kernel that the neighbouring shapes use */
    check_product(&l, 260, 48, false);
    check_product(&l, 260, 88, false);
    emu_card.refused = -1;
    emu_card.fastest = 0;
    lab_close(&l);
}

/* Kernels are not timed during capture, because timing has to wait for the device. */
static void t_untimed(void **state)
{
    if (!&emu_card)
        skip();
    struct lab l = lab_open(DT_BF16);
    struct backend *b = l.fast;
    struct lab_weights m = lab_weights_make(QUANT_NONE, 72, 64);
    struct weight *w = lab_weights_pack(b, QUANT_NONE, &m, DT_BF16);
    struct tensor x = lab_make(l.mem, DT_BF16, 40, 64, -1, 1), y = lab_make(l.mem, DT_BF16, 40, 72, -1, 1),
                  none = {0};
    for (int turn = 0; turn < 3; turn++) { /* warm-up, capture, replay; the capture has a new shape */
        int64_t rows = turn ? 40 : 20;
        long before = multiplied();
        b->ops->graph_begin(b, 77);
        b->ops->linear(b, tensor_rows(y, 0, rows), tensor_rows(x, 0, rows), w, none, EPI_NONE, SET);
        b->ops->graph_end(b);
        assert_int_equal(multiplied() - before, turn == 0 ? 8 * 4 + 1 : turn == 1);
    }
    b->ops->weight_free(b, w);
    lab_drop(l.mem, 2, (struct tensor *const[]){&x, &y});
    lab_weights_drop(&m);
    lab_close(&l);
}

/* cuBLASLt adds only biases that bf16 represents exactly.  This is forgotten when the bias is freed. */
static void t_biases(void **state)
{
    if (!&emu_card)
        skip();
    struct lab l = lab_open(DT_BF16);
    struct shape s = {.T = 200, .N = 40, .K = 64, .kept = DT_BF16, .out = DT_BF16, .biased = true};
    for (int i = 0; i < 12; i++) {
        long before = emu_card.biased;
        s.exact = i % 2;
        s.add = i / 2 % 2;
        s.epi = s.add ? EPI_NONE : (enum epilogue)(i / 4);
        assert_true(product(&l, &s) <= 1);
        if ((emu_card.biased > before) != s.exact)
            fail_msg("epilogue %d%s, %s bias: added by the %s", (int)s.epi, s.add ? ", added" : "",
                     s.exact ? "an exact" : "another", s.exact ? "kernel" : "library");
    }
    lab_close(&l);
}

/* New numbers in a bias are checked for exactness again. */
static void t_rewritten(void **state)
{
    if (!&emu_card)
        skip();
    struct lab l = lab_open(DT_BF16);
    const int64_t T = 200, N = 40, K = 64;
    struct tensor x = lab_make(l.mem, DT_BF16, T, K, -1, 1), host = lab_make(l.mem, DT_F32, N, K, -1, 1);
    struct tensor bias = l.fast->ops->alloc(l.fast, DT_F32, 1, N);
    struct weight *wr = l.ref->ops->pack(l.ref, host, DT_BF16),
                  *wf = l.fast->ops->pack(l.fast, host, DT_BF16);
    for (int i = 0; i < 4; i++) {
        struct tensor now = lab_make(l.mem, DT_F32, 1, N, 1, 2);
        struct tensor want = lab_make(l.mem, DT_BF16, T, N, 0, 0),
                      have = lab_make(l.mem, DT_BF16, T, N, 0, 0);
        float *numbers = now.data;
        for (int64_t n = 0; n < N && i % 2 == 0; n++)
            numbers[n] = bf16_to_f32(bf16_from_f32(numbers[n]));
        l.fast->ops->upload(l.fast, bias, now);
        long before = emu_card.biased;
        l.ref->ops->linear(l.ref, want, x, wr, now, EPI_NONE, SET);
        l.fast->ops->linear(l.fast, have, x, wf, bias, EPI_NONE, SET);
        assert_true(lab_worst_within(have, want, 0) <= 1);
        assert_int_equal(emu_card.biased > before, i % 2 == 0);
        lab_drop(l.mem, 3, (struct tensor *const[]){&now, &want, &have});
    }
    l.fast->ops->free(l.fast, &bias);
    l.ref->ops->weight_free(l.ref, wr);
    l.fast->ops->weight_free(l.fast, wf);
    lab_drop(l.mem, 2, (struct tensor *const[]){&x, &host});
    lab_close(&l);
}

static const struct CMUnitTest tests[] = {
    CLAIM("products of few rows equal the reference, in views and with f32 output", t_plain),
    CLAIM("products of many rows equal the reference", t_many),
    CLAIM("the library's fastest kernel is determined once and reused", t_fastest),
    CLAIM("kernels are not timed while a graph is recorded", t_untimed),
    CLAIM("the library adds biases that bf16 represents exactly, and no others", t_biases),
    CLAIM("new numbers in a bias are checked again", t_rewritten),
    CLAIM("products of few rows with small numbers equal the reference", t_small),
    CLAIM("products of many rows with small numbers equal the reference", t_small_many),
    CLAIM("products of long rows equal the reference", t_long),
    CLAIM("weights of another type than the activations multiply correctly", t_mixed),
    CLAIM("a product of few rows or of a decode step is rounded as in the reference", t_rounding),
    CLAIM("a row has the same bits alone and among up to 16 rows, or 64 with quantized weights", t_bits),
};

CHECK_MAIN(lab_random = check_seed())
