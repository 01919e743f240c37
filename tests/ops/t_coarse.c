/* t_coarse.c - products with activations rounded to 8 bits equal the scalar reference, and a row has the
 * same bits alone and in a batch, in every integer format. */
#include "check.h"
#include "tiny_qwen.h"

#include "ops/quant.h"
#include "ops/synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const enum quant_format formats[] = {QUANT_I8,   QUANT_I4,    QUANT_F4,    QUANT_Q8_0,
                                            QUANT_Q4_K, QUANT_Q5_K,  QUANT_Q6_K,  QUANT_Q4_1,
                                            QUANT_Q5_1, QUANT_Q4_16, QUANT_Q8_16, QUANT_GPTQ};
enum { FORMATS = 12, MOST_TOKENS = 110, MOST_COLS = 4304 };

static const struct tensor none = {0};

static struct weight *make(struct backend *b, enum quant_format format, int64_t rows, int64_t cols)
{
    struct synthetic m = {.seed = 7, .spread = 0.05f};
    struct weight *w = b->ops->make_synthetic_weight(b, format, DT_BF16, rows, cols, &m);
    b->ops->round_activations(b, w);
    return w;
}

/* Computes y [tokens, rows] in f32 from x [tokens][cols]. */
static void multiply(struct backend *b, const struct weight *w, int64_t rows, int64_t cols, const float *x,
                     int64_t tokens, float *y)
{
    struct tensor in = b->ops->alloc(b, DT_BF16, tokens, cols), out = b->ops->alloc(b, DT_F32, tokens, rows);
    tensor_convert(in, (struct tensor){(void *)(uintptr_t)x, DT_F32, tokens, cols, cols});
    b->ops->linear(b, out, in, w, none, EPI_NONE, SET);
    tensor_convert((struct tensor){y, DT_F32, tokens, rows, rows}, out);
    b->ops->free(b, &in);
    b->ops->free(b, &out);
}

static void draw(float *x, int64_t n, uint64_t *rng)
{
    for (int64_t i = 0; i < n; i++) {
        double size = check_random(rng) < 0.01 ? 20 : 1; /* some outliers, as in real models */
        x[i] = bf16_to_f32(bf16_from_f32((float)((2 * check_random(rng) - 1) * size)));
    }
}

/* Returns the largest difference of a fast product from the reference, relative to the largest value. */
static double apart(struct backend *ref, struct backend *b, enum quant_format format, const int64_t size[3],
                    uint64_t *rng)
{
    int64_t rows = size[0], cols = size[1], tokens = size[2];
    float *x = malloc((size_t)(tokens * cols) * sizeof *x),
          *want = malloc((size_t)(3 * tokens * rows) * sizeof *want), *have = want + tokens * rows,
          *one = have + tokens * rows;
    struct weight *exact = make(ref, format, rows, cols), *fast = make(b, format, rows, cols);
    double off = 0, most = 0;
    draw(x, tokens * cols, rng);
    multiply(ref, exact, rows, cols, x, tokens, want);
    multiply(b, fast, rows, cols, x, tokens, have);
    for (int64_t i = 0; i < tokens * rows; i++) {
        off = check_worse(off, fabs((double)want[i] - (double)have[i]));
        most = fmax(most, fabs((double)want[i]));
    }
    for (int64_t t = 0; t < tokens; t++) {
        multiply(b, fast, rows, cols, x + t * cols, 1, one);
        assert_memory_equal(one, have + t * rows, (size_t)rows * sizeof *one);
    }
    ref->ops->weight_free(ref, exact);
    b->ops->weight_free(b, fast);
    free(x);
    free(want);
    return off / most;
}

static void t_products(void **state)
{
    static const int64_t sizes[][3] = {
        {40, 512, 1}, {33, 256, 3}, {8, 512, 12}, {64, 768, 13}, {72, 256, 107}};
    static const int64_t odd[][3] = {{30, 300, 5}, {16, 4304, 14}, {3, 5, 2}};
    const char *names[8];
    int n = backend_cpu_list(names, 8), tried = 0;
    uint64_t rng = check_seed();
    struct backend *ref = backend_cpu("ref", NULL, NULL);
    for (int i = 1; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        for (int f = 0; f < FORMATS && b->ops->round_activations; f++) {
            double worst = 0;
            for (int k = 0; k < 5; k++)
                worst = check_worse(worst, apart(ref, b, formats[f], sizes[k], &rng));
            for (int k = 0; k < 3 && formats[f] == QUANT_I8; k++)
                worst = check_worse(worst, apart(ref, b, formats[f], odd[k], &rng));
            check_note("%-10s %-5s off by %.1e", names[i], quant_name(formats[f]), worst);
            assert_true(worst < 1e-5);
            tried++;
        }
        backend_free(b);
    }
    check_note("%d products compared", tried);
    backend_free(ref);
}

/* An outlier destroys the precision of its own group, but not of the next group. */
static void t_groups(void **state)
{
    float row[256], exact[256];
    uint64_t rng = check_seed();
    double off = 0;
    for (int k = 0; k < 256; k++)
        row[k] = exact[k] = (float)check_random(&rng) * 0.01f;
    row[5] = exact[5] = 100;
    quant_round_row(row, 256, quant_activation_group(QUANT_I8));
    assert_true(row[5] == 100);
    for (int k = 0; k < 128; k++)
        assert_true(k == 5 || row[k] == 0);
    for (int k = 128; k < 256; k++)
        off = fmax(off, fabs((double)row[k] - (double)exact[k]));
    check_note("off by %.1e of 0.01", off / 0.01);
    assert_true(off > 0 && off <= 0.01 / 254 * 1.001);
}

static void t_no_number(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        float x[256] = {0}, y[8];
        for (int f = 0; f < FORMATS && b->ops->round_activations; f++) {
            struct weight *w = make(b, formats[f], 8, 256);
            for (int k = 0; k < 2; k++) {
                x[200] = k ? INFINITY : NAN;
                multiply(b, w, 8, 256, x, 1, y);
                assert_true(isnan(y[3]));
            }
            b->ops->weight_free(b, w);
        }
        backend_free(b);
    }
}

/* ---- models -------------------------------------------------------------------------------------------- */

static void logits_of(struct engine_options o, float *out)
{
    struct err e = ERR_INIT;
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    struct session *s = session_new(g, 1);
    tiny_append(s, 3, 25);
    memcpy(out, session_logits(s), 288 * sizeof *out);
    session_free(s);
    engine_close(g);
}

/* The reference rounds in the same way; activations are bf16 between products.  In a small random model a
 * token may be routed to another expert. */
static void t_model(void **state)
{
    struct tiny t;
    float exact[288], want[288], have[288];
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    tiny_qwen(&t, 5);
    tiny_write(&t);
    struct engine_options o = {.dir = t.dir, .isa = "ref", .threads = 1, .weights = WEIGHTS_INT8};
    logits_of(o, exact);
    o.activations = ACTIVATIONS_INT8;
    logits_of(o, want);
    check_note("logits drift by %.1f %%", 100 * tiny_distance(exact, want, 288));
    assert_true(tiny_distance(exact, want, 288) > 1e-4 && tiny_distance(exact, want, 288) < 0.5);
    for (int i = 1; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        bool able = b->ops->round_activations;
        backend_free(b);
        o.isa = names[i];
        if (able)
            logits_of(o, have);
        if (able)
            check_note("%s is %.1f %% from the reference", names[i], 100 * tiny_distance(want, have, 288));
        if (able)
            assert_true(tiny_distance(want, have, 288) < 0.5);
    }
    tiny_free(&t);
}

static void refused(struct engine_options o, const char *says)
{
    o.activations = ACTIVATIONS_INT8;
    tiny_refused(o, says);
}

static void t_refused(void **state)
{
    struct tiny t;
    tiny_qwen(&t, 5);
    tiny_write(&t);
    struct engine_options o = {.dir = t.dir, .isa = "ref", .threads = 1};
    o.f32 = true;
    refused(o, "leave out --f32 or --activations");
    o.f32 = false;
    o.weights = WEIGHTS_FP8;
    refused(o, "--weights auto, int8 or int4");
    o.weights = WEIGHTS_BF16;
    refused(o, "--weights auto, int8 or int4");
    tiny_free(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("products with 8-bit activations equal the reference, alone and in a batch", t_products),
    CLAIM("an outlier affects the precision of its own group only", t_groups),
    CLAIM("a model with 8-bit activations has the rounding error of the reference", t_model),
    CLAIM("8-bit activations are refused if weights, activations or kernels are not integer", t_refused),
    CLAIM("NaN in an activation makes the sums NaN", t_no_number),
};

CHECK_MAIN()
