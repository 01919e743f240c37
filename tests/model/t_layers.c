/* t_layers.c - compares every stage of three random models with independent implementations
 * (tests/reference/make_layers.py).
 *
 * A stage is the output of a block, a layer, the projector or the head.  For some rows all numbers are
 * known, for every row its norm and two sums with random signs.  A relative error is the root mean square
 * of the differences divided by that of the values; if a sum is off by the fraction d of its row's norm,
 * the relative error is about d.
 *
 * Tolerance in f32.  Two orders of summing n products differ by about sqrt(n) / 2 roundings of 6e-8: 4e-6
 * for the longest sum here (20480).  Such errors add up over the stages: 1e-5.
 *
 * Tolerance in bf16.  The reference computes in f32 with the same bf16 weights, so the only difference is
 * the rounding of values stored between two steps.  A number 1.m * 2^e is rounded to a multiple of
 * 2^(e-7).  The error is uniformly distributed, with a root mean square of 2^-7 / sqrt(12) of 2^e; with
 * logarithmically distributed m that is r = 0.0017 of the value.  Roundings are independent, so their
 * squares add, and a layer h + y adds ROUNDS * r^2:
 *   - Mamba-2 has the most roundings.  y is a product of x, B, C and the gate.  Each has the rounding of u
 *     and of in_proj's output (4 * 2), twice that because of SiLU (4 * 2 more); x, B and C have that of the
 *     convolution (3); the time step has two, times its exponent (2); then y, the gated norm, the last
 *     product and h (4): 25
 *   - attention: u, q, k, v, weights, their sum, product, h.  A block of the tower: twice that.  The MLP:
 *     u, the argument of the square (4 times its squared error), the square, product, h.  All have fewer
 *     than 25.
 * An incoming error E of h remains in h, and y has G times that error: G is 1 for a matrix product, 2 for a
 * square, the root of the number of factors for a product of numbers.  With G^2 = 2, and y^2 a quarter of
 * (h + y)^2, which grows from layer to layer, E^2 becomes (1 + 1/4) E^2.  So
 *   E(after)^2 = GROWTH * E(before)^2 + ROUNDS * r^2,   GROWTH = 1.25, ROUNDS = 25
 * which is 0.9 % after the first stage and 4 % after nine.  An error in an equation changes a stage by
 * about its own size; smaller errors are found in f32, where the limit is a thousand times lower.  In a
 * single row the group of a norm may be small, which amplifies errors, so the limit for the sums of a row
 * is ten times higher.
 */
#include "check.h"
#include "golden.h"

#include "model/language.h"
#include "model/vision.h"

#include <math.h>

static const double ROUND = 0.0017, GROWTH = 1.25, ROUNDS = 25, F32_LIMIT = 1e-5;

enum { STAGES = 32 };

struct stage {
    char name[16];
    int64_t rows;      /* rows compared */
    double diff, sum;  /* sums of squares over the known rows */
    double off, worst; /* sum of the squared errors of the sums; the largest one, relative to its row */
    int64_t sums;
};

struct run {
    struct golden *g;
    struct model_config config;
    struct model_weights weights;
    struct backend *backend;
    enum dtype act;
    struct stage stages[STAGES];
    int n;
};

/* ---- comparing ------------------------------------------------------------------------------- */

static struct stage *stage_named(struct run *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->stages[i].name, name))
            return &r->stages[i];
    assert_true(r->n < STAGES);
    struct stage *s = &r->stages[r->n++];
    *s = (struct stage){0};
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

static void compare_row(struct stage *s, const float *have, const float *want, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        double d = (double)have[c] - (double)want[c];
        s->diff += isfinite(d) ? d * d : INFINITY;
        s->sum += (double)want[c] * (double)want[c];
    }
}

static void compare_sums(struct stage *s, const float *have, const float *want, int64_t n)
{
    double sum[2] = {0};
    for (int64_t c = 0; c < n; c++)
        for (int k = 0; k < 2; k++)
            sum[k] += (double)golden_sign((uint64_t)k + 1, c) * (double)have[c];
    for (int k = 0; k < 2; k++) {
        double d = (sum[k] - (double)want[k]) / (double)want[2];
        d = isfinite(d) ? d * d : INFINITY;
        s->off += d;
        s->worst = fmax(s->worst, d);
        s->sums++;
    }
}

/* Compares the next t.rows rows of a stage. */
static void compare(struct run *r, const char *name, struct tensor t)
{
    char sums_name[32];
    snprintf(sums_name, sizeof sums_name, "%s.sums", name);
    struct golden_array known = golden_find(r->g, name), sums = golden_find(r->g, sums_name);
    struct stage *s = stage_named(r, name);
    float *have = malloc((size_t)(t.rows * t.cols) * sizeof *have);
    r->backend->ops->download(r->backend, (struct tensor){have, DT_F32, t.rows, t.cols, t.cols}, t);
    assert_true(sums.data && s->rows + t.rows <= sums.rows && known.cols == t.cols);
    for (int64_t i = 0; i < t.rows; i++)
        compare_sums(s, have + i * t.cols, (const float *)sums.data + 3 * (s->rows + i), t.cols);
    for (int64_t k = 0; k < known.rows; k++) {
        int64_t row = json_integer_value(json_array_get(known.which, (size_t)k)) - s->rows;
        if (row >= 0 && row < t.rows)
            compare_row(s, have + row * t.cols, (const float *)known.data + k * t.cols, t.cols);
    }
    s->rows += t.rows;
    free(have);
}

static void watch_block(void *arg, int block, struct tensor x)
{
    char name[16];
    snprintf(name, sizeof name, "block%d", block);
    compare(arg, name, x);
}

static void watch_layer(void *arg, int layer, struct tensor h)
{
    char name[16];
    snprintf(name, sizeof name, "layer%d", layer);
    compare(arg, name, h);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Cuts patches from random pixels [tiles][3][side][side]. */
static float *draw_patches(const struct run *r, int tiles)
{
    int side = r->config.vit.tile, grid = config_grid(&r->config);
    size_t n = (size_t)side * (size_t)side * 3;
    uint16_t *pixels = malloc(n * sizeof *pixels);
    float *patches = malloc(n * (size_t)tiles * sizeof *patches);
    for (int t = 0; t < tiles; t++) {
        golden_draw(r->g->seed, "pixels", (int64_t)n * t, (int64_t)n, 0, (float)(1 / 37837.2), pixels);
        for (size_t i = 0; i < n; i++) {
            size_t ch = i / (n / 3), y = i / (size_t)side % (size_t)side, x = i % (size_t)side;
            size_t patch = (size_t)t * (size_t)grid * (size_t)grid + y / 16 * (size_t)grid + x / 16;
            patches[(patch * 3 + ch) * 256 + y % 16 * 16 + x % 16] = bf16_to_f32(pixels[i]);
        }
    }
    free(pixels);
    return patches;
}

static struct tensor run_vision(struct run *r)
{
    int tiles = (int)golden_number(r->g, "tiles");
    float *patches = draw_patches(r, tiles);
    struct vision v;
    vision_init(&v, &r->config, &r->weights.vision, r->backend, r->act);
    v.watch = watch_block;
    v.watch_arg = r;
    struct tensor rows = r->backend->ops->alloc(
        r->backend, r->act, (int64_t)tiles * config_tile_tokens(&r->config), r->config.lm.hidden);
    assert_int_equal(vision_encode(&v, patches, tiles, rows, NULL), tiles);
    compare(r, "rows", rows);
    vision_free(&v);
    free(patches);
    return rows;
}

static void run_language(struct run *r, struct tensor rows)
{
    struct golden_array ids = golden_find(r->g, "ids"), want = golden_find(r->g, "logits");
    const json_t *pieces = json_object_get(r->g->root, "pieces");
    int64_t at = 0, image_at = golden_number(r->g, "image_at"), vocab = r->weights.vocab;
    float *logits = malloc((size_t)vocab * sizeof *logits);
    struct language m;
    struct lm_state s;
    language_init(&m, &r->config.lm, &r->weights, r->backend, r->act);
    state_init(&s, &r->config.lm, r->backend, (struct state_types){r->act, DT_F32, r->act});
    m.watch = watch_layer;
    m.watch_arg = r;
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        int64_t n = json_integer_value(json_array_get(pieces, i));
        struct image_rows image = {image_at - at, rows};
        bool here = image_at >= at && image_at < at + n;
        language_forward(&m, &s, (const int32_t *)ids.data + at, n, here ? &image : NULL, here);
        language_logits(&m, &s, logits);
        compare_row(stage_named(r, "logits"), logits, (const float *)want.data + (int64_t)i * vocab, vocab);
        at += n;
    }
    assert_int_equal(at, ids.rows);
    free(logits);
    state_free(&s, &r->config.lm, r->backend);
    language_free(&m);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Returns the limit of stage i; errors accumulate separately in the tower and the language model. */
static double limit_of(const struct run *r, const char *name, double *square)
{
    if (r->act == DT_F32)
        return F32_LIMIT;
    if (!strcmp(name, "block-1") || !strcmp(name, "layer0"))
        *square = 0;
    *square = GROWTH * *square + ROUNDS * ROUND * ROUND;
    return sqrt(*square);
}

static bool judge(const struct run *r, const char *fixture, bool all)
{
    double square = 0, most = 0;
    bool good = true;
    char line[1024], worst[16] = "";
    size_t len = 0;
    for (int i = 0; i < r->n; i++) {
        const struct stage *s = &r->stages[i];
        double rows = sqrt(s->diff / s->sum), sums = s->sums ? sqrt(s->off / (double)s->sums) : 0;
        double limit = limit_of(r, s->name, &square), error = fmax(rows, sums);
        bool ok = error <= limit && sqrt(s->worst) <= 10 * limit;
        if (!ok)
            check_note("%s %s: %s is off by %.1e, sums by %.1e, worst row %.1e; allowed %.1e", fixture,
                       r->backend->ops->name, s->name, error, sums, sqrt(s->worst), limit);
        good = good && ok;
        if (error / limit > most) {
            most = error / limit;
            snprintf(worst, sizeof worst, "%s", s->name);
        }
        len += (size_t)snprintf(line + len, sizeof line - len, " %s %.1e", s->name, error);
    }
    const char *act = r->act == DT_F32 ? "f32" : "bf16";
    if (all)
        check_note("%s %s %s:%s", fixture, act, r->backend->ops->name, line);
    check_note("%s %s %s: closest to its limit %s, %.2f of it", fixture, act, r->backend->ops->name, worst,
               most);
    return good;
}

static bool run(struct golden *g, const char *fixture, const char *isa, struct pool *pool, enum dtype act,
                bool all)
{
    struct err e = ERR_INIT;
    struct run r = {.g = g, .act = act};
    if (config_load(&r.config, g->checkpoint, &e))
        fail_msg("%s", e.text);
    struct safetensors *s = safetensors_open(g->checkpoint, &e);
    r.backend = backend_cpu(isa, pool, &e);
    struct bind_options o = {.f32 = act == DT_F32};
    if (!s || !r.backend || weights_bind(&r.weights, &r.config, s, r.backend, &o, &e))
        fail_msg("%s", e.text);
    struct tensor rows = run_vision(&r);
    run_language(&r, rows);
    bool good = judge(&r, fixture, all);
    r.backend->ops->free(r.backend, &rows);
    weights_free(&r.weights, &r.config, r.backend);
    backend_free(r.backend);
    safetensors_close(s);
    return good;
}

/* Runs every instruction set in f32 and bf16; prints every stage of the best one. */
static void small(const char *fixture)
{
    struct golden g;
    golden_open(&g, fixture);
    golden_checkpoint(&g);
    const char *names[8];
    int isas = backend_cpu_list(names, 8);
    bool good = true;
    for (int i = 0; i < isas; i++) {
        good = run(&g, fixture, names[i], NULL, DT_F32, i == isas - 1) && good;
        good = run(&g, fixture, names[i], NULL, DT_BF16, i == isas - 1) && good;
    }
    golden_close(&g);
    assert_true(good);
}

static void t_chunks(void **state)
{
    small("chunks");
}

static void t_faint(void **state)
{
    small("faint");
}

static void t_full(void **state)
{
    struct golden g;
    golden_open(&g, "full");
    golden_checkpoint(&g);
    struct pool *pool = pool_new(2);
    bool good = run(&g, "full", NULL, pool, DT_BF16, true);
#ifndef __SANITIZE_ADDRESS__ /* would take half a minute more for the same accesses */
    good = run(&g, "full", NULL, pool, DT_F32, true) && good;
#endif
    pool_free(pool);
    golden_close(&g);
    assert_true(good);
}

static const struct CMUnitTest tests[] = {
    CLAIM("with many chunks and pieces every stage agrees with mamba-ssm, timm and transformers", t_chunks),
    CLAIM("with faint inputs every epsilon is the published one", t_faint),
    CLAIM("layers, tower and projector at the sizes of the 12B model agree with the reference", t_full),
};

CHECK_MAIN()
