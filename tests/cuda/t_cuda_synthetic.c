/* t_cuda_synthetic.c - tests that synthetic values made on the device (cuda/synthetic.cu) equal the
 * reference. */
#include "check.h"
#include "lab.h"

#include "ops/quant.h"
#include "ops/synthetic.h"
#include "src/ops/cuda.h"

#include <math.h>

static struct backend *ref, *gpu;

static struct synthetic some(void)
{
    return (struct synthetic){(uint64_t)lab_between(1, 1 << 20), (float)lab_uniform(-2, 2),
                              (float)lab_uniform(0.01, 3)};
}

static void t_numbers(void **state)
{
    for (int round = 0; round < 12; round++) {
        enum dtype type = round % 2 ? DT_BF16 : DT_F32;
        int64_t rows = lab_between(1, 40), cols = lab_between(1, 600);
        struct synthetic m = some();
        struct tensor whole = gpu->ops->alloc(gpu, type, rows, cols + 3),
                      want = gpu->ops->alloc(gpu, type, rows, cols);
        lab_poison(whole);
        struct tensor have = tensor_cols(whole, 2, cols);
        gpu->ops->fill_synthetic(gpu, have, &m);
        ref->ops->fill_synthetic(ref, want, &m);
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t c = 0; c < cols; c++)
                assert_true(lab_at(have, r, c) == lab_at(want, r, c));
            assert_true(isnan(lab_at(whole, r, 1)) && isnan(lab_at(whole, r, cols + 2)));
        }
        lab_drop(gpu, 2, (struct tensor *const[]){&whole, &want});
    }
}

/* Values have the mean and mean square of a uniform distribution, and rows differ. */
static void t_spread(void **state)
{
    enum { ROWS = 64, COLS = 1024 };
    const struct synthetic m = {check_seed(), 0.5f, 2};
    struct tensor t = gpu->ops->alloc(gpu, DT_F32, ROWS, COLS);
    gpu->ops->fill_synthetic(gpu, t, &m);
    double sum = 0, square = 0, beside = 0;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            double v = (double)lab_at(t, r, c) - 1, w = (double)lab_at(t, (r + 1) % ROWS, c) - 1;
            assert_true(v >= -2 && v < 2);
            sum += v;
            square += v * v;
            beside += v * w;
        }
    double n = ROWS * COLS;
    check_note("mean %.4f, mean square %.4f, correlation with the next row %.4f", sum / n, square / n,
               beside / n);
    assert_true(fabs(sum / n) < 0.03 && fabs(square / n - 4.0 / 3) < 0.03 && fabs(beside / n) < 0.03);
    lab_drop(gpu, 1, (struct tensor *const[]){&t});
}

/* Returns the root mean square of the difference of two products, relative to the first. */
static double apart(enum quant_format format, enum dtype kept, int64_t T, int64_t N, int64_t K)
{
    struct synthetic m = {(uint64_t)lab_between(1, 1 << 20), 0, sqrtf(3.0f / (float)K)};
    struct weight *a = ref->ops->make_synthetic_weight(ref, format, kept, N, K, &m),
                  *b = gpu->ops->make_synthetic_weight(gpu, format, kept, N, K, &m);
    struct tensor x = lab_make(gpu, DT_BF16, T, K, -1.7, 1.7), want = gpu->ops->alloc(gpu, DT_F32, T, N),
                  have = gpu->ops->alloc(gpu, DT_F32, T, N), none = {0};
    lab_poison(have);
    ref->ops->linear(ref, want, x, a, none, EPI_NONE, SET);
    gpu->ops->linear(gpu, have, x, b, none, EPI_NONE, SET);
    double diff = 0, size = 0;
    for (int64_t t = 0; t < T; t++)
        for (int64_t n = 0; n < N; n++) {
            diff += pow((double)lab_at(have, t, n) - lab_at(want, t, n), 2);
            size += pow(lab_at(want, t, n), 2);
        }
    ref->ops->weight_free(ref, a);
    gpu->ops->weight_free(gpu, b);
    lab_drop(gpu, 3, (struct tensor *const[]){&x, &want, &have});
    size /= (double)(T * N);
    assert_true(isfinite(diff) && size > 0.2 && size < 5); /* about 1 */
    return sqrt(diff / (double)(T * N) / size);
}

/* i8 and i4 weights are random codes on the device and quantized values in the reference, so they differ by
 * up to half a code. */
static void t_weights(void **state)
{
    static const double most[QUANT_FORMATS] = {
        [QUANT_NONE] = 1e-5, [QUANT_I8] = 0.02, [QUANT_I4] = 0.25, [QUANT_F8] = 1e-5, [QUANT_F4] = 1e-5};
    for (int format = 0; format <= QUANT_F4; format++)
        for (int T = 1; T <= 70; T += 69) {
            int64_t N = lab_between(17, 90),
                    K = format == QUANT_F4 ? 16 * lab_between(3, 20) : lab_between(40, 330);
            double gap = apart((enum quant_format)format, DT_BF16, T, N, K);
            check_note("%-4s %dx%lldx%lld: %.1e apart",
                       format ? quant_name((enum quant_format)format) : "bf16", T, (long long)N, (long long)K,
                       gap);
            assert_true(gap < most[format]);
        }
}

static void t_limits(void **state)
{
    for (int type = DT_F32; type <= DT_BF16; type++)
        assert_true(gpu->ops->probe(gpu, (enum dtype)type, 100) > 1000);
    gpu->ops->synchronize(gpu);
}

static const struct CMUnitTest tests[] = {
    CLAIM("numbers made on the device equal the reference to the bit, and stay within their view", t_numbers),
    CLAIM("made numbers are uniform", t_spread),
    CLAIM("made weights of every format multiply as those of the reference", t_weights),
    CLAIM("both limits of arithmetic can be measured", t_limits),
};

CHECK_MAIN_WITH((lab_random = check_seed(), ref = backend_cpu("ref", NULL, NULL), gpu = lab_gpu()),
                backend_free(gpu);
                backend_free(ref))
