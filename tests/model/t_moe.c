/* t_moe.c - compares random models of the next generation with Hugging Face transformers, which computed
 * tests/golden/moe (tests/reference/make_nemotron_moe.py): every choice of a router, every layer, canvas
 * sizes, pixels, tower, rows, logits and a greedy continuation in f32; and the model with itself in pieces
 * and on threads in bf16.
 *
 * Tolerance: both sides sum in f32 in different orders, with an error of 6e-8 of the largest partial sum
 * for each of a few hundred terms and a dozen layers: 1e-5 of a stage's size. */
#include "check.h"

#include "base/file.h"
#include "model/language.h"
#include "model/preprocess.h"
#include "model/vision.h"
#include "tiny_model.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/moe/"

enum { MAX_IMAGES = 2 };

struct run { /* a model of the golden data on one instruction set */
    json_t *root;
    struct file_map data;
    struct safetensors *files;
    struct model_config config;
    struct model_weights weights;
    struct backend *b;
    enum dtype act;
    double worst; /* error of the worst stage */
    char at[32];  /* its name */
    int seen;
};

/* ---- golden data ----------------------------------------------------------------------------- */

/* Returns the values of an array and its shape; fails if it is missing. */
static const void *find(const struct run *r, const char *name, int64_t shape[2])
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(r->root, "arrays"), i, v)
    {
        const json_t *dims = json_object_get(v, "shape");
        if (strcmp(json_string_value(json_object_get(v, "name")), name) != 0)
            continue;
        shape[0] = json_integer_value(json_array_get(dims, 0));
        shape[1] = 1;
        for (size_t k = 1; k < json_array_size(dims); k++)
            shape[1] *= json_integer_value(json_array_get(dims, k));
        return r->data.data + json_integer_value(json_object_get(v, "offset"));
    }
    fail_msg("no array '%s'", name);
    return NULL;
}

static struct tensor find_tensor(const struct run *r, const char *name, enum dtype t)
{
    int64_t shape[2];
    const void *data = find(r, name, shape);
    return (struct tensor){(void *)(uintptr_t)data, t, shape[0], shape[1], shape[1]};
}

static void run_open(struct run *r, const char *folder, const char *isa, struct pool *pool, enum dtype act)
{
    struct err e = ERR_INIT;
    char path[64];
    *r = (struct run){.act = act};
    snprintf(path, sizeof path, GOLDEN "%s/reference.json", folder);
    r->root = json_load_file(path, 0, NULL);
    assert_non_null(r->root);
    snprintf(path, sizeof path, GOLDEN "%s/reference.bin", folder);
    assert_int_equal(file_map(&r->data, path, &e), 0);
    snprintf(path, sizeof path, GOLDEN "%s", folder);
    if (config_load(&r->config, path, &e) || !(r->files = safetensors_open(path, &e)))
        fail_msg("%s", e.text);
    r->b = backend_cpu(isa, pool, &e);
    struct bind_options o = {.f32 = act == DT_F32};
    if (weights_bind(&r->weights, &r->config, r->files, r->b, &o, &e))
        fail_msg("%s", e.text);
}

static void run_close(struct run *r)
{
    weights_free(&r->weights, &r->config, r->b);
    backend_free(r->b);
    safetensors_close(r->files);
    file_unmap(&r->data);
    json_decref(r->root);
}

/* Computes the relative root mean square difference of a stage and remembers the worst one. */
static void check_values(struct run *r, const char *name, struct tensor got, struct tensor want)
{
    assert_int_equal(got.rows * got.cols, want.rows * want.cols);
    struct tensor host = r->b->ops->alloc(r->b, DT_F32, got.rows, got.cols);
    r->b->ops->download(r->b, host, got);
    double diff = 0, sum = 0;
    for (int64_t i = 0; i < got.rows * got.cols; i++) {
        double w = ((const float *)want.data)[i], d = ((const float *)host.data)[i] - w;
        diff += d * d;
        sum += w * w;
    }
    r->b->ops->free(r->b, &host);
    r->seen++;
    if (check_relative(diff, sum) > r->worst) {
        r->worst = check_relative(diff, sum);
        snprintf(r->at, sizeof r->at, "%s", name);
    }
}

static void check_stage(struct run *r, const char *name, struct tensor got)
{
    check_values(r, name, got, find_tensor(r, name, DT_F32));
}

/* ---- language model -------------------------------------------------------------------------- */

struct watching {
    struct run *r;
    struct language *m;
};

static void watch_layer(void *arg, int layer, struct tensor h)
{
    struct watching *w = arg;
    char name[32];
    snprintf(name, sizeof name, "layer%d", layer);
    check_stage(w->r, name, h);
    if (w->r->config.lm.pattern[layer] != LAYER_MOE)
        return;
    snprintf(name, sizeof name, "chosen%d", layer);
    struct tensor chosen = find_tensor(w->r, name, DT_I32), ids = tensor_rows(w->m->moe.ids, 0, h.rows);
    assert_int_equal(chosen.rows * chosen.cols, ids.rows * ids.cols);
    assert_memory_equal(chosen.data, ids.data, (size_t)(ids.rows * ids.cols) * sizeof(int32_t));
    snprintf(name, sizeof name, "weights%d", layer);
    check_stage(w->r, name, tensor_rows(w->m->moe.weights, 0, h.rows));
}

/* Inserts the image rows of transformers at the image tokens. */
static int place(struct run *r, const int32_t *ids, int64_t n, struct image_rows images[MAX_IMAGES])
{
    int count = 0;
    for (int64_t i = 0; r->config.vision && i < n; i++) {
        if (ids[i] != r->config.image_token || (i && ids[i - 1] == ids[i]))
            continue;
        char name[32];
        snprintf(name, sizeof name, "rows%d", count);
        struct tensor rows = find_tensor(r, name, DT_F32);
        images[count] = (struct image_rows){i, r->b->ops->alloc(r->b, r->act, rows.rows, rows.cols)};
        r->b->ops->upload(r->b, images[count++].rows, rows);
    }
    return count;
}

static void logits_of(const struct run *r, struct language *m, struct lm_state *s, float *out)
{
    language_logits(m, s, out);
    for (int i = 0; i < r->weights.vocab; i++)
        assert_true(isfinite(out[i]));
}

/* Generates from the state after the prompt; the ids must equal those of transformers. */
static void check_greedy(struct run *r, struct language *m, struct lm_state *s, float *logits)
{
    struct tensor want = find_tensor(r, "greedy", DT_I32);
    for (int64_t k = 0; k < want.rows; k++) {
        int32_t best = 0;
        for (int i = 1; i < r->weights.vocab; i++)
            best = logits[i] > logits[best] ? i : best;
        assert_int_equal(best, ((const int32_t *)want.data)[k]);
        language_forward(m, s, &best, 1, NULL, 0);
        logits_of(r, m, s, logits);
    }
}

static void check_language(const char *folder, const char *isa, int stages)
{
    struct run r;
    run_open(&r, folder, isa, NULL, DT_F32);
    struct tensor ids = find_tensor(&r, "ids", DT_I32), want = find_tensor(&r, "logits", DT_F32);
    struct image_rows images[MAX_IMAGES];
    struct language m;
    struct lm_state s;
    language_init(&m, &r.config.lm, &r.weights, r.b, DT_F32);
    state_init(&s, &r.config.lm, r.b, (struct state_types){DT_F32, DT_F32, DT_F32});
    struct watching w = {&r, &m};
    m.watch = watch_layer;
    m.watch_arg = &w;
    int n = place(&r, ids.data, ids.rows, images);
    language_forward(&m, &s, ids.data, ids.rows, images, n);
    m.watch = NULL;
    float logits[256];
    assert_true(r.weights.vocab <= 256);
    logits_of(&r, &m, &s, logits);
    check_values(&r, "logits", (struct tensor){logits, DT_F32, 1, want.rows, want.rows},
                 (struct tensor){want.data, DT_F32, 1, want.rows, want.rows});
    check_note("%-10s %-6s %d stages, worst relative difference %.1e at %s", isa, folder, r.seen, r.worst,
               r.at);
    assert_true(r.worst < 1e-5);
    assert_int_equal(r.seen, stages);
    check_greedy(&r, &m, &s, logits);
    for (int i = 0; i < n; i++)
        r.b->ops->free(r.b, &images[i].rows);
    state_free(&s, &r.config.lm, r.b);
    language_free(&m);
    run_close(&r);
}

static void each_isa(void (*fn)(const char *isa))
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++)
        fn(names[i]);
}

static void check_both(const char *isa)
{
    check_language("omni", isa, 10 + 4 + 1); /* layers, routers, logits */
    check_language("latent", isa, 4 + 2 + 1);
}

static void t_language(void **state)
{
    each_isa(check_both);
}

/* ---- images of any size ---------------------------------------------------------------------- */

/* The sizes equal those of the published processor for many images under several limits. */
static void t_canvas(void **state)
{
    struct run r;
    run_open(&r, "omni", NULL, NULL, DT_F32);
    struct tensor table = find_tensor(&r, "canvases", DT_I32);
    struct model_config c = r.config;
    c.lm.max_tokens = 1 << 20;
    assert_true(table.rows > 500 && table.cols == 6);
    for (int64_t i = 0; i < table.rows; i++) {
        const int32_t *k = (const int32_t *)table.data + i * 6;
        c.vit.min_patches = k[2];
        c.vit.max_patches = k[3];
        struct tile_grid g = preprocess_grid(&c, k[0], k[1]);
        if (g.patch_rows != k[4] || g.patch_cols != k[5])
            fail_msg("%dx%d within %d..%d: %dx%d patches, not %dx%d", k[0], k[1], k[2], k[3], g.patch_cols,
                     g.patch_rows, k[5], k[4]);
        assert_int_equal(preprocess_tokens(&g), k[4] * k[5] / 4);
    }
    c.vit.min_patches =
        16; /* only 4 tokens of context are left: the minimum takes precedence over the maximum */
    c.lm.max_tokens = 8;
    struct tile_grid g = preprocess_grid(&c, 1000, 1000);
    assert_int_equal(g.patch_rows * g.patch_cols, 16);
    run_close(&r);
}

/* Compares our patches of golden image i with those of transformers; the caller frees them. */
static float *check_pixels(struct run *r, int i, struct tile_grid *g)
{
    char name[32];
    int64_t shape[2], grids[2];
    snprintf(name, sizeof name, "image%d", i);
    const uint8_t *rgb = find(r, name, shape);
    const int32_t *grid = (const int32_t *)find(r, "grids", grids) + 2 * (ptrdiff_t)i;
    struct image im = {.rgb = (uint8_t *)(uintptr_t)rgb, .w = (int)shape[1] / 3, .h = (int)shape[0]};
    *g = preprocess_grid(&r->config, im.w, im.h);
    assert_true(g->patch_rows == grid[0] && g->patch_cols == grid[1] && g->patch_rows != g->patch_cols);
    float *patches = malloc(preprocess_image_floats(&r->config, g) * sizeof *patches);
    preprocess_image(&r->config, &im, g, false, NULL, patches);
    snprintf(name, sizeof name, "pixels%d", i);
    struct tensor want = find_tensor(r, name, DT_F32);
    for (int64_t k = 0; k < want.rows * want.cols; k++)
        assert_true(fabsf(patches[k] - ((const float *)want.data)[k]) < 2e-5f);
    return patches;
}

struct vqa {
    struct run *r;
    int64_t first, rows; /* position in the golden blocks, which hold all images */
};

static void watch_block(void *arg, int block, struct tensor x)
{
    const struct vqa *l = arg;
    char name[32];
    snprintf(name, sizeof name, "block%d", block);
    if (block >= 0)
        check_values(l->r, name, x, tensor_rows(find_tensor(l->r, name, DT_F32), l->first, l->rows));
}

static void check_vision(const char *isa)
{
    struct run r;
    struct vision v;
    struct vqa l = {.r = &r};
    run_open(&r, "omni", isa, NULL, DT_F32);
    vision_init(&v, &r.config, &r.weights.vision, r.b, DT_F32);
    v.watch_arg = &l;
    assert_null(v.x.data);        /* no buffers before the first image */
    for (int i = 0; i < 4; i++) { /* the second time from the cache */
        struct tile_grid g;
        char name[32];
        float *patches = check_pixels(&r, i % 2, &g);
        struct tensor rows = r.b->ops->alloc(r.b, DT_F32, preprocess_tokens(&g), r.config.lm.hidden);
        l.rows = (int64_t)g.patch_rows * g.patch_cols + r.weights.vision.prefix.rows;
        v.watch = i < 2 ? watch_block : NULL;
        assert_int_equal(vision_encode_canvas(&v, patches, g.patch_rows, g.patch_cols, rows, NULL), i < 2);
        snprintf(name, sizeof name, "rows%d", i % 2);
        check_stage(&r, name, rows);
        l.first += l.rows;
        r.b->ops->free(r.b, &rows);
        free(patches);
    }
    vision_free(&v);
    check_note("%-10s %d stages, worst relative difference %.1e at %s", isa, r.seen, r.worst, r.at);
    assert_true(r.worst < 1e-5);
    assert_int_equal(r.seen, 2 * 2 + 4);
    run_close(&r);
}

static void t_vision(void **state)
{
    each_isa(check_vision);
}

/* A tower published with a language model that has further predictors ends with a norm that has no weights
 * in the file. */
static void t_final_norm(void **state)
{
    struct run r;
    struct vision v;
    struct tile_grid g;
    run_open(&r, "omni", NULL, NULL, DT_F32);
    r.config.vit.final_norm = true;
    vision_init(&v, &r.config, &r.weights.vision, r.b, DT_F32);
    float *patches = check_pixels(&r, 0, &g);
    struct tensor rows = r.b->ops->alloc(r.b, DT_F32, preprocess_tokens(&g), r.config.lm.hidden);
    vision_encode_canvas(&v, patches, g.patch_rows, g.patch_cols, rows, NULL);
    check_stage(&r, "normed0", rows);
    assert_true(r.worst < 1e-5);
    r.b->ops->free(r.b, &rows);
    free(patches);
    vision_free(&v);
    run_close(&r);
}

/* ---- consistency ----------------------------------------------------------------------------- */

/* Computes the logits after all ids, prefilled in pieces of `piece`, on `threads` threads. */
static void run_pieces(const char *folder, const char *isa, enum dtype act, int threads, int64_t piece,
                       float *logits)
{
    struct pool *pool = threads > 1 ? pool_new(threads) : NULL;
    struct run r;
    run_open(&r, folder, isa, pool, act);
    struct tensor ids = find_tensor(&r, "ids", DT_I32);
    struct language m;
    struct lm_state s;
    language_init(&m, &r.config.lm, &r.weights, r.b, act);
    state_init(&s, &r.config.lm, r.b, (struct state_types){act, DT_F32, act});
    for (int64_t i = 0; i < ids.rows; i += piece)
        language_forward(&m, &s, (const int32_t *)ids.data + i, piece < ids.rows - i ? piece : ids.rows - i,
                         NULL, 0);
    logits_of(&r, &m, &s, logits);
    state_free(&s, &r.config.lm, r.b);
    language_free(&m);
    run_close(&r);
    pool_free(pool);
}

/* The recurrence of one token and the scan of many round differently.  In bf16 a value may be rounded the
 * other way, and a router may choose another expert, so for a prompt in pieces the tolerance is that of
 * bf16. */
static void check_itself(const char *isa)
{
    static const char *const folders[] = {"omni", "latent"};
    double worst[2] = {0};
    for (int i = 0; i < 4; i++) {
        float whole[64], other[64];
        enum dtype act = i / 2 ? DT_BF16 : DT_F32;
        run_pieces(folders[i % 2], isa, act, 1, 512, whole);
        run_pieces(folders[i % 2], isa, act, 2, 512, other);
        assert_memory_equal(whole, other, sizeof whole);
        for (int k = 0; k < 2; k++) {
            run_pieces(folders[i % 2], isa, act, 3, k ? 7 : 1, other);
            worst[i / 2] = fmax(worst[i / 2], tiny_distance(whole, other, 64));
        }
    }
    check_note("%-10s in pieces of 7 and 1: worst relative difference f32 %.1e, bf16 %.1e", isa, worst[0],
               worst[1]);
    assert_true(worst[0] < 1e-5 && worst[1] < 0.1);
}

static void t_itself(void **state)
{
    each_isa(check_itself);
}

static const struct CMUnitTest tests[] = {
    CLAIM("routers, layers, logits and a greedy continuation agree with transformers", t_language),
    CLAIM("the canvas of an image has the size that the published processor chooses", t_canvas),
    CLAIM("pixels, tower and rows of canvases that are not square agree with transformers", t_vision),
    CLAIM("a final norm without weights agrees with transformers", t_final_norm),
    CLAIM("two threads give the bits of one; a prompt in pieces gives the same answer", t_itself),
};

CHECK_MAIN()
