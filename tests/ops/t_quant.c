/* t_quant.c - tests of quantized matrices: the values of codes, quantization, and products on every
 * instruction set.
 *
 * worst() explains the tolerance.
 */
#include "check.h"
#include "golden.h"
#include "lab.h"

#include "ops/f8.h"
#include "ops/quant.h"

#include <math.h>

/* The last one is f8 again, made from other numbers, with a scale for each row. */
static const enum quant_format formats[] = {QUANT_I8, QUANT_I4, QUANT_F8, QUANT_F4, QUANT_F8};
enum { FORMATS = 5, ROWS_F8 = 4 };

/* ---- matrices -------------------------------------------------------------------------------- */

/* Returns a matrix as a file in format formats[which] would hold it; lab_weights_make() alternates f8. */
static struct lab_weights make(int which, int64_t rows, int64_t cols)
{
    struct lab_weights m = lab_weights_make(formats[which], rows, cols);
    if (formats[which] == QUANT_F8 && (m.source.stored.dtype == DT_F32) != (which == ROWS_F8)) {
        lab_weights_drop(&m);
        m = lab_weights_make(formats[which], rows, cols);
    }
    return m;
}

/* Returns the largest difference as a multiple of the tolerance.
 *
 * Sums in another order may differ by 2e-5 of the largest output, as in t_ops.c.  16-bit activations have
 * an error of at most half of 1/32639 of the row's largest number, which is 1 here.  It is uniformly
 * distributed, 8.9e-6 on average, and is multiplied by the norm of the row of weights; the tolerance is six
 * times that.  Squaring doubles a difference, times the number.  In bf16 a sum may round the other way, a
 * difference of one step, 2^-7 of the smallest number with that exponent; so may its square and the number
 * to which it is added, which is at most 1. */
static double worst(struct tensor have, struct tensor want, double length, enum epilogue epi, bool added)
{
    double most = 0, off = 0;
    for (int64_t r = 0; r < want.rows; r++)
        for (int64_t c = 0; c < want.cols; c++)
            most = fmax(most, fabs((double)lab_at(want, r, c)));
    double sums = 2e-5 * most + 6 * 8.9e-6 * length * (epi == EPI_RELU2 ? 2 * sqrt(most + 1) : 1.2) + 1e-6;
    double steps = want.dtype == DT_BF16 ? ((epi == EPI_RELU2 ? 3 : 1) + added) / 128.0 : 0;
    for (int64_t r = 0; r < want.rows; r++)
        for (int64_t c = 0; c < want.cols; c++) {
            double allowed = sums + steps * (fabs((double)lab_at(want, r, c)) + added);
            double d = fabs((double)lab_at(have, r, c) - (double)lab_at(want, r, c)) / allowed;
            off = d >= off ? d : off;
            if (isnan(d))
                return INFINITY;
        }
    return off;
}

/* Returns the largest norm of a row. */
static double length_of(const struct quant_source *s)
{
    float *row = malloc((size_t)s->cols * sizeof *row);
    double most = 0;
    for (int64_t n = 0; n < s->rows; n++) {
        double sum = 0;
        quant_source_row(s, n, row);
        for (int64_t k = 0; k < s->cols; k++)
            sum += (double)row[k] * (double)row[k];
        most = fmax(most, sum);
    }
    free(row);
    return sqrt(most);
}

/* ---- products -------------------------------------------------------------------------------- */

static double product(struct backend *ref, struct backend *fast, int which, enum dtype act)
{
    enum quant_format format = formats[which];
    static const int rows[] = {1, 2, 4, 5, 13, 64, 150, 240};
    int64_t T = rows[lab_between(0, 7)], N = lab_between(1, 150), K = lab_between(1, 700);
    enum epilogue epi = (enum epilogue)lab_between(0, 2);
    enum accumulate add = lab_between(0, 1) ? ADD : SET;
    int biased = lab_between(0, 1);
    struct lab_weights m = make(which, N, K);
    struct weight *wr = lab_weights_pack(ref, format, &m, DT_F32),
                  *wf = lab_weights_pack(fast, format, &m, DT_F32);
    struct tensor x = lab_make(ref, act, T, K, -1, 1), bias = lab_make(ref, DT_F32, 1, N, -1, 1), none = {0};
    struct tensor want = lab_make(ref, lab_between(0, 3) ? act : DT_F32, T, N, -1, 1),
                  have = ref->ops->alloc(ref, want.dtype, T, N);
    ref->ops->copy(ref, have, want);
    ref->ops->linear(ref, want, x, wr, biased ? bias : none, epi, add);
    fast->ops->linear(fast, have, x, wf, biased ? bias : none, epi, add);
    double off = worst(have, want, length_of(&m.source), epi, add);
    ref->ops->weight_free(ref, wr);
    fast->ops->weight_free(fast, wf);
    struct tensor *all[] = {&x, &bias, &want, &have};
    for (int i = 0; i < 4; i++)
        ref->ops->free(ref, all[i]);
    lab_weights_drop(&m);
    return off;
}

static void compare_products(const char *isa, struct backend *ref, struct backend *fast)
{
    for (int f = 0; f < FORMATS; f++)
        for (int act = 0; act < 2; act++) {
            double off = 0;
            for (int r = 0; r < 6; r++)
                off = fmax(off, product(ref, fast, f, act ? DT_BF16 : DT_F32));
            check_note("%-10s %s%s x %-4s worst difference %.2f of the tolerance", isa,
                       quant_name(formats[f]), f == ROWS_F8 ? " by rows" : "", act ? "bf16" : "f32", off);
            assert_true(off <= 1);
        }
}

static void t_products(void **state)
{
    lab_each_fast(2, compare_products);
}

/* Compares rows together and separately, on two threads and on one. */
static void t_alone(void **state)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(2);
    for (int round = 0; round < 8 * FORMATS * n; round++) {
        struct backend *one = backend_cpu(isa[round % n], NULL, NULL),
                       *two = backend_cpu(isa[round % n], pool, NULL);
        int which = round / n % FORMATS;
        enum quant_format format = formats[which];
        bool big = round % n > 0; /* so that both threads have work */
        int64_t T = big ? lab_between(2, 60) : 3, N = big ? lab_between(200, 400) : 40,
                K = lab_between(200, 700);
        struct lab_weights m = make(which, N, K);
        struct weight *w = lab_weights_pack(one, format, &m, DT_F32),
                      *v = lab_weights_pack(two, format, &m, DT_F32);
        struct tensor x = lab_make(one, round & 1 ? DT_BF16 : DT_F32, T, K, -1, 1), none = {0};
        struct tensor a = one->ops->alloc(one, DT_F32, T, N), b = one->ops->alloc(one, DT_F32, T, N),
                      c = one->ops->alloc(one, DT_F32, T, N);
        one->ops->linear(one, a, x, w, none, EPI_NONE, SET);
        two->ops->linear(two, b, x, v, none, EPI_NONE, SET);
        for (int64_t t = 0; t < T; t++)
            two->ops->linear(two, tensor_rows(c, t, 1), tensor_rows(x, t, 1), v, none, EPI_NONE, SET);
        assert_memory_equal(a.data, b.data, (size_t)(T * N) * sizeof(float));
        assert_memory_equal(a.data, c.data, (size_t)(T * N) * sizeof(float));
        struct tensor *all[] = {&x, &a, &b, &c};
        for (int i = 0; i < 4; i++)
            one->ops->free(one, all[i]);
        one->ops->weight_free(one, w);
        two->ops->weight_free(two, v);
        lab_weights_drop(&m);
        backend_free(one);
        backend_free(two);
    }
    pool_free(pool);
}

/* bf16 represents all e4m3 numbers, so with a scale of one both matrices are equal. */
static void t_exact(void **state)
{
    struct backend *b = backend_cpu(NULL, NULL, NULL);
    int64_t T = 30, N = 70, K = 333;
    struct lab_weights m = make(2, N, K);
    m.source.scale = 1;
    struct tensor host = b->ops->alloc(b, DT_BF16, N, K), none = {0};
    for (int64_t i = 0; i < N * K; i++)
        ((uint16_t *)host.data)[i] = bf16_from_f32(f8e4m3_to_f32(((uint8_t *)m.data)[i]));
    struct weight *w = b->ops->pack(b, host, DT_BF16), *v = lab_weights_pack(b, QUANT_F8, &m, DT_F32);
    struct tensor x = lab_make(b, DT_BF16, T, K, -1, 1), y = b->ops->alloc(b, DT_F32, T, N),
                  z = b->ops->alloc(b, DT_F32, T, N);
    b->ops->linear(b, y, x, w, none, EPI_NONE, SET);
    b->ops->linear(b, z, x, v, none, EPI_NONE, SET);
    double most = 0, off = 0;
    for (int64_t i = 0; i < T * N; i++) {
        most = fmax(most, fabs((double)lab_at(y, i / N, i % N)));
        off = check_worse(off, fabs((double)lab_at(y, i / N, i % N) - (double)lab_at(z, i / N, i % N)));
    }
    assert_true(off <= 1e-6 * most);
    check_note("largest difference %.1e of the largest sum", off / most);
    struct tensor *all[] = {&host, &x, &y, &z};
    for (int i = 0; i < 4; i++)
        b->ops->free(b, all[i]);
    b->ops->weight_free(b, w);
    b->ops->weight_free(b, v);
    lab_weights_drop(&m);
    backend_free(b);
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void t_codes(void **state)
{
    struct golden g;
    golden_open(&g, "quant");
    struct golden_array e4m3 = golden_find(&g, "e4m3"), e2m1 = golden_find(&g, "e2m1");
    assert_int_equal(e4m3.rows * e4m3.cols, 256);
    assert_int_equal(e2m1.rows * e2m1.cols, 16);
    for (int i = 0; i < 256; i++) {
        float want = ((const float *)e4m3.data)[i], have = f8e4m3_to_f32((uint8_t)i);
        assert_true(isnan(want) ? isnan(have) : have == want && signbit(have) == signbit(want));
        assert_true(isnan(want) || bf16_to_f32(bf16_from_f32(have)) == have);
        if (!isnan(want))
            assert_true(quant_value(QUANT_F8, i) == want);
    }
    for (int i = 0; i < 16; i++)
        assert_true(quant_value(QUANT_F4, i) == ((const float *)e2m1.data)[i]);
    for (int i = 0; i < 16; i++)
        assert_true(quant_value(QUANT_I4, i) == (float)(i < 8 ? i : i - 16));
    golden_close(&g);
}

/* Ties, both ends of the range, subnormals and NaN are rounded as in torch, single or four at a time. */
static void t_rounding(void **state)
{
    struct golden g;
    golden_open(&g, "f8");
    struct golden_array numbers = golden_find(&g, "numbers"), codes = golden_find(&g, "codes");
    int64_t n = numbers.rows * numbers.cols;
    const float *x = numbers.data;
    const uint8_t *want = codes.data;
    assert_true(n > 1000 && n == 4 * codes.rows * codes.cols);
    float *row = calloc((size_t)n + 1, sizeof *row), *room = calloc((size_t)n + 1, sizeof *room);
    uint8_t *have = calloc((size_t)n + 1, 1);
    for (int64_t i = 0; i < n; i++) {
        if (f8_of(x[i]) != want[i])
            fail_msg("%a becomes %02x, torch has %02x", (double)x[i], f8_of(x[i]), want[i]);
        row[i] = fabsf(x[i]) <= 448 ? x[i] : 0;
    }
    row[n] = -448; /* makes the scale 1 */
    struct quant_source s = {.rows = 1, .cols = n + 1, .stored = {row, DT_F32, 1, n + 1, n + 1}};
    struct quant_row r = {.codes = have, .room = room};
    quant_make_row(QUANT_F8, &s, 0, &r);
    assert_true(r.scale == 1);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(have[i], row[i] == 0 ? 0 | (signbit(row[i]) ? 0x80 : 0) : want[i]);
    check_note("%lld numbers", (long long)n);
    free(row);
    free(room);
    free(have);
    golden_close(&g);
}

/* Compares matrices quantized by other programs with the values that those give for them. */
static void t_stored(void **state)
{
    struct golden g;
    golden_open(&g, "quant");
    struct golden_array codes = golden_find(&g, "nvfp4.packed"), scales = golden_find(&g, "nvfp4.scales"),
                        want = golden_find(&g, "nvfp4.values"), global = golden_find(&g, "nvfp4.global");
    int64_t rows = want.rows, cols = want.cols;
    struct quant_source s = {.rows = rows,
                             .cols = cols,
                             .stored = {(void *)(uintptr_t)codes.data, DT_U8, rows, cols / 2, cols / 2},
                             .groups = scales.data,
                             .scale = *(const float *)global.data};
    float *row = malloc((size_t)cols * sizeof *row);
    double off = 0, most = 0;
    for (int64_t n = 0; n < rows; n++) {
        quant_source_row(&s, n, row);
        for (int64_t k = 0; k < cols; k++) {
            double v = (double)((const float *)want.data)[n * cols + k];
            off = check_worse(off, fabs((double)row[k] - v));
            most = fmax(most, fabs(v));
        }
    }
    check_note("NVFP4 %lldx%lld: largest difference %.1e of the largest number", (long long)rows,
               (long long)cols, off / most);
    assert_true(off <= 1e-6 * most); /* three factors in another order */
    free(row);
    codes = golden_find(&g, "fp8.codes");
    want = golden_find(&g, "fp8.values");
    global = golden_find(&g, "fp8.scale");
    s = (struct quant_source){
        .rows = want.rows,
        .cols = want.cols,
        .stored = {(void *)(uintptr_t)codes.data, DT_F8E4M3, want.rows, want.cols, want.cols},
        .scale = *(const float *)global.data};
    row = malloc((size_t)want.cols * sizeof *row);
    for (int64_t n = 0; n < want.rows; n++) {
        quant_source_row(&s, n, row);
        assert_memory_equal(row, (const float *)want.data + n * want.cols, (size_t)want.cols * sizeof *row);
    }
    free(row);
    golden_close(&g);
}

/* Returns the root mean square of the quantization error, relative to that of the numbers. */
static double lost(enum quant_format format, const float *x, int64_t cols)
{
    struct quant_source s = {
        .rows = 1, .cols = cols, .stored = {(void *)(uintptr_t)x, DT_F32, 1, cols, cols}};
    struct backend *b = backend_cpu("ref", NULL, NULL);
    struct weight *w = lab_weights_pack(b, format, &(struct lab_weights){.source = s}, DT_F32);
    struct tensor unit = b->ops->alloc(b, DT_F32, 1, cols), y = b->ops->alloc(b, DT_F32, 1, 1), none = {0};
    double off = 0, all = 0;
    for (int64_t k = 0; k < cols; k++) {
        ((float *)unit.data)[k] = 1;
        b->ops->linear(b, y, unit, w, none, EPI_NONE, SET);
        ((float *)unit.data)[k] = 0;
        off += pow((double)x[k] - (double)lab_at(y, 0, 0), 2);
        all += pow((double)x[k], 2);
    }
    b->ops->free(b, &unit);
    b->ops->free(b, &y);
    b->ops->weight_free(b, w);
    backend_free(b);
    return sqrt(off / all);
}

static double normal(void)
{
    double u = check_random(&lab_random), v = check_random(&lab_random);
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

static void t_making(void **state)
{
    enum { N = 512 };
    float x[N];
    double i8 = 0, i4 = 0, f8 = 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(normal() * 0.02);
        i8 = check_worse(i8, lost(QUANT_I8, x, N));
        i4 = check_worse(i4, lost(QUANT_I4, x, N));
        f8 = check_worse(f8, lost(QUANT_F8, x, N));
    }
    check_note("of normal numbers int8 loses %.2f %%, int4 %.2f %%, fp8 %.2f %%", 100 * i8, 100 * i4,
               100 * f8);
    assert_true(i8 < 0.012); /* 1/127 of about 3.3 deviations, uniform error: 1 / sqrt 12 of a step */
    assert_true(f8 < 0.03 && f8 > 0.02); /* steps of 1/8 to 1/16 of the number, uniform error */
    assert_true(i4 < 0.11);              /* the same with 2 * 2.1 deviations in 15 steps */
    for (int i = 0; i < N; i++)          /* representable values are exact */
        x[i] = (float)(i % 32 == 0 ? -8 : i % 15 - 7) * 0.125f;
    assert_true(lost(QUANT_I4, x, N) == 0);
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 255 - 127) * 0.5f;
    assert_true(lost(QUANT_I8, x, N) < 1e-7);
    for (int i = 0; i < N; i++)
        x[i] = i % 128 == 127 ? -448 : f8e4m3_to_f32((uint8_t)(i % 256));
    assert_true(lost(QUANT_F8, x, N) == 0);
    memset(x, 0, sizeof x); /* zeros and a subnormal number */
    x[5] = 1e-42f;
    for (int f = 0; f < 3; f++) {
        struct quant_source s = {.rows = 1, .cols = N, .stored = {x, DT_F32, 1, N, N}};
        uint8_t codes[N];
        uint16_t groups[N / QUANT_I4_GROUP];
        float room[N];
        struct quant_row r = {codes, groups, 0, room};
        quant_make_row(formats[f], &s, 0, &r);
        assert_true(isfinite(r.scale));
        for (int i = 0; i < N; i++)
            assert_int_equal(codes[i], 0);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("every e4m3 and every e2m1 code has the value that torch gives it", t_codes),
    CLAIM("matrices quantized by other programs have the values that those give for them", t_stored),
    CLAIM("numbers are rounded to e4m3 as torch rounds them", t_rounding),
    CLAIM("the error of int8, int4 and fp8 is that of their step sizes", t_making),
    CLAIM("products with small numbers equal the reference on every instruction set", t_products),
    CLAIM("a row alone, among others, on one thread or two has the same bits", t_alone),
    CLAIM("e4m3 numbers multiply like the same numbers in bf16", t_exact),
};

CHECK_MAIN(lab_random = check_seed())
