/* t_cuda_fp8.c - tests of matrix products whose activations are rounded to e4m3 on a GPU (cuda/fp8.cu).
 *
 * The reference rounds a row with quant_f8_row and then computes as usual.  The codes are bit-identical,
 * which products with a unit matrix show.  The tolerance of sums differs from t_cuda_linear.c: the fp8
 * tensor cores of Hopper and Ada keep 13 bits behind the point of the largest of 32 products and the
 * previous sum, and truncate the rest (DeepSeek-V3 technical report, section 3.3.2; SageAttention2;
 * "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004).  Blackwell is reported to keep 25 bits.  On
 * an H200 the error of sums was up to 20 times that of f32, the same as with emu/cublaslt.cc, which
 * emulates the truncation.
 */
#include "lab.h"
#include "tiny_check.h"

#include "emu/emu.h"
#include "ops/quant.h"
#include "session/session.h"
#include "src/ops/cuda.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_DECODED = 128 }; /* up to this many rows are not rounded */

/* ---- weights ------------------------------------------------------------------------------------------- */

/* Packs weights with one scale for all, as in a file, or computes a scale for each row. */
static struct weight *pack(struct backend *b, const struct quant_source *s)
{
    void *bytes = aligned_alloc(64, (b->ops->quant_bytes(b, QUANT_F8, s->rows, s->cols) + 63) / 64 * 64);
    b->ops->quant_pack(b, bytes, QUANT_F8, s);
    return b->ops->quant_weight(b, bytes, true, QUANT_F8, s->rows, s->cols);
}

static struct quant_source make(int64_t rows, int64_t cols, bool codes)
{
    struct quant_source s = {.rows = rows, .cols = cols, .scale = 0.037f};
    uint8_t *byte = malloc((size_t)(rows * cols) * sizeof(float));
    float *number = (float *)(void *)byte;
    for (int64_t i = 0; i < rows * cols; i++)
        if (!codes)
            number[i] = (float)(lab_uniform(-1, 1) / (double)(1 + i / cols % 3));
        else
            do
                byte[i] = (uint8_t)lab_between(0, 255);
            while ((byte[i] & 127) == 127); /* not NaN */
    s.stored = (struct tensor){byte, codes ? DT_F8E4M3 : DT_F32, rows, cols, cols};
    return s;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

/* Fills rows with zeros, tiny, huge or widely spread values, values halfway between two codes, infinities
 * and NaN. */
static void put_kinds(struct tensor x)
{
    for (int64_t t = 0; t < x.rows; t++)
        for (int64_t k = 0; k < x.cols; k++) {
            double v = lab_uniform(-1, 1);
            switch (t % 12) {
            case 0:
                v = 0;
                break;
            case 1:
                v *= 1e-38;
                break;
            case 2:
                v *= 3e38;
                break;
            case 3:
                v = k == x.cols / 2 ? 1e4 : v;
                break;
            case 4:
                v = k == 0 ? 448 : lab_between(-60, 60) / 8.0 * exp2(lab_between(-8, 4));
                break;
            case 5:
                v = k == x.cols - 1 ? (t % 24 < 12 ? INFINITY : (double)NAN) : v;
                break;
            default:
                break;
            }
            ((uint16_t *)x.data)[t * x.stride + k] = bf16_from_f32((float)v);
        }
}

/* Returns x rounded to e4m3 and back. */
static struct tensor rounded(struct backend *b, struct tensor x)
{
    struct tensor y = b->ops->alloc(b, DT_F32, x.rows, x.cols);
    uint8_t *codes = malloc((size_t)x.cols);
    float *row = malloc((size_t)x.cols * sizeof *row);
    for (int64_t t = 0; t < x.rows; t++) {
        for (int64_t k = 0; k < x.cols; k++)
            row[k] = lab_at(x, t, k);
        float scale = quant_f8_row(codes, row, x.cols);
        for (int64_t k = 0; k < x.cols; k++)
            ((float *)y.data)[t * y.stride + k] = f8e4m3_to_f32(codes[k]) * scale;
    }
    free(codes);
    free(row);
    return y;
}

static struct weight *coarse(struct backend *b, const struct quant_source *s)
{
    struct weight *w = pack(b, s);
    b->ops->round_activations(b, w);
    return w;
}

/* ---- tests ------------------------------------------------------------------------------------ */

static long small_products(void)
{
    return &emu_card ? emu_card.small : 0;
}

/* A product with the unit matrix returns x as rounded to e4m3. */
static void t_codes(void **state)
{
    struct lab l = lab_open(DT_BF16);
    static const int64_t sizes[][2] = {{129, 40}, {513, 24}, {150, 200}};
    for (int i = 0; i < 3; i++) {
        int64_t T = sizes[i][0], K = sizes[i][1];
        uint8_t *unit = calloc((size_t)K, (size_t)K);
        for (int64_t k = 0; k < K; k++)
            unit[k * K + k] = 0x38; /* 1.0 */
        struct quant_source s = {.rows = K, .cols = K, .scale = 1, .stored = {unit, DT_F8E4M3, K, K, K}};
        struct weight *w = coarse(l.fast, &s);
        struct tensor x = lab_make(l.mem, DT_BF16, T, K, 0, 0), y = lab_make(l.mem, DT_F32, T, K, 0, 0),
                      none = {0};
        put_kinds(x);
        struct tensor want = rounded(l.mem, x);
        l.fast->ops->linear(l.fast, y, x, w, none, EPI_NONE, SET);
        for (int64_t t = 0; t < T; t++)
            for (int64_t k = 0; k < K; k++) {
                float a = lab_at(y, t, k), b = lab_at(want, t, k);
                if (!(a == b || (isnan(a) && isnan(b))))
                    fail_msg("row %d, column %d: %g, not %g", (int)t, (int)k, (double)a, (double)b);
            }
        l.fast->ops->weight_free(l.fast, w);
        lab_drop(l.mem, 3, (struct tensor *const[]){&x, &y, &want});
        free(unit);
    }
    lab_close(&l);
}

/* A row of zeros has scale 0 and zero codes; the largest value gets the largest code; NaN and infinity stay
 * visible. */
static void t_row(void **state)
{
    float row[6] = {0, -0.0f, 0, 0, 0, 0};
    uint8_t codes[6];
    assert_true(quant_f8_row(codes, row, 6) == 0);
    assert_int_equal(codes[0] | codes[5], 0);
    row[3] = -3.5f;
    row[4] = 1.75f + 1.75f / 32; /* halfway between two codes: rounded to even */
    assert_true(quant_f8_row(codes, row, 6) == 3.5f / 448);
    assert_int_equal(codes[3], 0xfe);
    assert_int_equal(codes[4], 0x76);
    row[0] = INFINITY;
    assert_true(isnan(quant_f8_row(codes, row, 6)));
    row[0] = NAN;
    assert_true(isnan(quant_f8_row(codes, row, 6)));
    row[0] = FLT_MAX;
    assert_true(quant_f8_row(codes, row, 6) == FLT_MAX / 448 && codes[0] == 0x7e && codes[3] == 0x80);
}

struct shape {
    int64_t T, N, K;
    int skip; /* columns before x and y in the matrices that they view */
    enum dtype out;
    enum epilogue epi;
    bool add, biased, codes;
};

/* Each of 33 numbers loses less than 2^-13 of the largest; with random signs that is about 2^-13 of their
 * sum. */
static const double cut_off = 0x1p-10;

static void make_positive(const struct quant_source *m)
{
    for (int64_t i = 0; i < m->rows * m->cols; i++)
        if (m->stored.dtype == DT_F32)
            ((float *)m->stored.data)[i] = fabsf(((float *)m->stored.data)[i]);
        else
            ((uint8_t *)m->stored.data)[i] &= 127;
}

/* Returns for each number of y the sum of the magnitudes of its terms, times the amplification of the
 * epilogue.  Makes x and m positive. */
static struct tensor terms_of(const struct lab *l, const struct shape *s, struct tensor x,
                              const struct quant_source *m, const struct weight *w, struct tensor bias)
{
    struct tensor sums = l->mem->ops->alloc(l->mem, DT_F32, s->T, s->N), terms = lab_twin(l->mem, sums),
                  none = {0};
    l->ref->ops->linear(l->ref, sums, x, w, bias, EPI_NONE, SET);
    make_positive(m);
    for (int64_t i = 0; i < x.rows * x.stride; i++)
        ((float *)x.data)[i] = fabsf(((float *)x.data)[i]);
    struct weight *positive = pack(l->ref, m);
    l->ref->ops->linear(l->ref, terms, x, positive, none, EPI_NONE, SET);
    for (int64_t i = 0; i < s->T * s->N; i++) {
        float *each = (float *)terms.data + i, sum = fabsf(((float *)sums.data)[i]);
        *each *= s->epi == EPI_RELU2 ? 2 * (sum + (float)cut_off * *each) : s->epi == EPI_GELU ? 1.13f : 1.0f;
    }
    l->ref->ops->weight_free(l->ref, positive);
    lab_drop(l->mem, 1, (struct tensor *const[]){&sums});
    return terms;
}

static double apart(const struct lab *l, const struct shape *s)
{
    struct quant_source m = make(s->N, s->K, s->codes);
    struct weight *wr = pack(l->ref, &m), *wf = coarse(l->fast, &m);
    struct tensor X = lab_make(l->mem, DT_BF16, s->T, s->K + s->skip, -1, 1),
                  Y = lab_make(l->mem, s->out, s->T, s->N + s->skip, -1, 1),
                  x = tensor_cols(X, s->skip, s->K), have = tensor_cols(Y, s->skip, s->N),
                  bias = lab_make(l->mem, DT_F32, 1, s->N, -1, 1), want = lab_twin(l->mem, have),
                  in = rounded(l->mem, x);
    struct tensor add = s->biased ? bias : (struct tensor){0};
    l->ref->ops->linear(l->ref, want, in, wr, add, s->epi, s->add ? ADD : SET);
    l->fast->ops->linear(l->fast, have, x, wf, add, s->epi, s->add ? ADD : SET);
    struct tensor terms = terms_of(l, s, in, &m, wr, add);
    double within = s->add && s->out == DT_BF16 ? 0x1p-7 * (1 + lab_largest(want)) : 0,
           off = lab_worst_beside(have, want, within, terms, cut_off);
    l->ref->ops->weight_free(l->ref, wr);
    l->fast->ops->weight_free(l->fast, wf);
    lab_drop(l->mem, 6, (struct tensor *const[]){&X, &Y, &bias, &want, &in, &terms});
    free(m.stored.data);
    return s->epi == EPI_RELU2 ? off / 3 : off; /* an error of v counts twice in v^2 */
}

static void t_products(void **state)
{
    static const int64_t rows[] = {129, 130, 200, 257, 513};
    struct lab l = lab_open(DT_BF16);
    double worst = 0;
    for (int i = 0; i < 15; i++) {
        struct shape s = {.T = rows[i % 5],
                          .N = 8 * lab_between(1, 14), /* not whole tiles of 16 */
                          .K = 8 * lab_between(1, 40),
                          .skip = 8 * lab_between(0, 2),
                          .out = i % 3 ? DT_BF16 : DT_F32,
                          .epi = (enum epilogue)lab_between(0, 2),
                          .add = lab_between(0, 1),
                          .biased = lab_between(0, 1),
                          .codes = i % 2};
        long before = small_products();
        double off = apart(&l, &s);
        check_note("%dx%dx%d, epilogue %d%s%s: %.2f of the tolerance", (int)s.T, (int)s.N, (int)s.K,
                   (int)s.epi, s.add ? ", added" : "", s.biased ? ", bias" : "", off);
        worst = fmax(worst, off);
        if (&emu_card && small_products() == before)
            fail_msg("%d rows were multiplied otherwise", (int)s.T);
    }
    assert_true(worst <= 1);
    lab_close(&l);
}

/* With few rows, as in a decode step, or an odd row length, the bits are those of weights without rounded
 * activations. */
static void t_exact(void **state)
{
    static const int64_t rows[] = {1, 17, MOST_DECODED, 513, 600};
    struct lab l = lab_open(DT_BF16);
    long before = small_products();
    for (int i = 0; i < 5; i++) {
        int64_t T = rows[i], N = 40, K = T > MOST_DECODED ? 13 + 2 * lab_between(0, 9) : 136;
        struct quant_source m = make(N, K, i % 2);
        struct weight *exact = pack(l.fast, &m), *w = coarse(l.fast, &m);
        struct tensor x = lab_make(l.mem, DT_BF16, T, K, -1, 1), a = lab_make(l.mem, DT_F32, T, N, 0, 0),
                      b = lab_make(l.mem, DT_F32, T, N, 0, 0), none = {0};
        l.fast->ops->linear(l.fast, a, x, exact, none, EPI_NONE, SET);
        l.fast->ops->linear(l.fast, b, x, w, none, EPI_NONE, SET);
        assert_memory_equal(a.data, b.data, (size_t)(T * N) * sizeof(float));
        l.fast->ops->weight_free(l.fast, exact);
        l.fast->ops->weight_free(l.fast, w);
        lab_drop(l.mem, 3, (struct tensor *const[]){&x, &a, &b});
        free(m.stored.data);
    }
    assert_int_equal(small_products() - before, 0);
    lab_close(&l);
}

/* ---- models -------------------------------------------------------------------------------------------- */

static void logits_of(struct engine_options o, int tokens, float *out)
{
    struct err e = ERR_INIT;
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    struct session *s = session_new(g, 1);
    tiny_append(s, 3, tokens);
    memcpy(out, session_logits(s), 288 * sizeof *out);
    session_free(s);
    engine_close(g);
}

/* Rounding to e4m3 changes a number by up to 1/16 of its value, 2.5 % on average, and so each of about ten
 * layers changes the logits by 2.5 %; in total 2.5 % times the root of 10, which is 8 %.  Small random
 * models can have larger errors, as in t_coarse.c. */
static void t_model(void **state)
{
    float exact[288], have[288];
    struct engine_options o = {.dir = tiny.dir, .device = "cuda", .threads = 1, .weights = WEIGHTS_FP8};
    for (int i = 0; i < 2; i++) {
        int tokens = i ? 300 : 100;
        o.activations = ACTIVATIONS_AUTO;
        logits_of(o, tokens, exact);
        o.activations = ACTIVATIONS_FP8;
        o.weights = i ? WEIGHTS_AUTO : WEIGHTS_FP8; /* AUTO selects fp8 here */
        logits_of(o, tokens, have);
        o.weights = WEIGHTS_FP8;
        double off = tiny_distance(exact, have, 288);
        check_note("%d tokens: logits differ by %.2f %%", tokens, 100 * off);
        assert_true(i ? off > 1e-4 && off < 0.5 : off == 0);
    }
}

static void t_refused(void **state)
{
    struct engine_options o = {
        .dir = tiny.dir, .device = "cuda", .threads = 1, .activations = ACTIVATIONS_FP8, .f32 = true};
    tiny_refused(o, "either f32 or fp8");
    o.f32 = false;
    o.weights = WEIGHTS_INT8;
    tiny_refused(o, "--weights auto or fp8");
    o.weights = WEIGHTS_FP8;
    o.device = "cpu";
    tiny_refused(o, "does not support fp8 activations");
    o.device = "cuda";
    if (&emu_card) {
        emu_card.major = 8;
        emu_card.minor = 6;
        tiny_refused(o, "compute capability 8.9");
        emu_card.minor = 9;
        float logits[288];
        logits_of(o, 140, logits);
        emu_card.major = 9;
        emu_card.minor = 0;
    }
    o.weights = WEIGHTS_AUTO;
    o.activations = ACTIVATIONS_INT8;
    tiny_refused(o, "backend 'cuda' does not support int8 activations");
}

static const struct CMUnitTest tests[] = {
    CLAIM("in a row in e4m3 the largest value has the largest code, and NaN stays visible", t_row),
    CLAIM("the device rounds rows of any numbers to the codes of the reference", t_codes),
    CLAIM("products of many rounded rows equal the reference's of the same codes", t_products),
    CLAIM("rows of a decode step and rows of odd lengths are not rounded", t_exact),
    CLAIM("fp8 activations change a model's logits by the expected rounding error, and only in prompts",
          t_model),
    CLAIM("fp8 activations are refused if the weights or the device have no such products", t_refused),
};

TINY_MAIN(lab_random = check_seed())
