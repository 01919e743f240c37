/* t_reference.c - compares a random model of the family with Hugging Face transformers, which computed
 * tests/golden/transformers (tests/reference/make_nemotron_h.py): tower, projector, every layer and logits
 * in f32. */
#include "check.h"

#include "base/file.h"
#include "model/language.h"
#include "model/vision.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/transformers"

struct reference {
    json_t *root;
    struct file_map data;
};

/* Returns the values of an array and their number; NULL if it is missing. */
static const void *find(const struct reference *r, const char *name, size_t *count)
{
    size_t i, k;
    json_t *v, *dim;
    json_array_foreach(json_object_get(r->root, "arrays"), i, v)
    {
        if (strcmp(json_string_value(json_object_get(v, "name")), name) != 0)
            continue;
        *count = 1;
        json_array_foreach(json_object_get(v, "shape"), k, dim) *count *= (size_t)json_integer_value(dim);
        return r->data.data + json_integer_value(json_object_get(v, "offset"));
    }
    return NULL;
}

struct run {
    struct reference ref;
    struct model_config config;
    struct model_weights weights;
    struct backend *backend;
    double worst;
    int seen;
};

/* Computes the relative root mean square difference of a stage and remembers the largest. */
static void check_stage(struct run *r, const char *name, struct tensor t)
{
    size_t n;
    const float *want = find(&r->ref, name, &n);
    if (!want)
        return;
    assert_int_equal(n, t.rows * t.cols);
    float *got = malloc(n * sizeof *got);
    r->backend->ops->download(r->backend, (struct tensor){got, DT_F32, t.rows, t.cols, t.cols}, t);
    double diff = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        sum += (double)want[i] * want[i];
    }
    free(got);
    r->worst = fmax(r->worst, check_relative(diff, sum));
    r->seen++;
}

static void watch_block(void *arg, int block, struct tensor x)
{
    char name[32];
    snprintf(name, sizeof name, "block%d", block);
    check_stage(arg, name, x);
}

static void watch_layer(void *arg, int layer, struct tensor h)
{
    char name[32];
    snprintf(name, sizeof name, "layer%d", layer);
    check_stage(arg, name, h);
}

/* Rearranges pixels [3][64][64] to patches, channel by channel within a patch. */
static void patchify(const struct model_config *c, const float *pixels, float *patches)
{
    int side = c->vit.tile, grid = config_grid(c);
    for (int ch = 0; ch < 3; ch++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                patches[((size_t)(y / 16 * grid + x / 16) * 3 + (size_t)ch) * 256 +
                        (size_t)(y % 16 * 16 + x % 16)] = pixels[(ch * side + y) * side + x];
}

static struct tensor run_vision(struct run *r)
{
    size_t n;
    const float *pixels = find(&r->ref, "pixels", &n);
    float *patches = malloc(n * sizeof *patches);
    struct vision v;
    vision_init(&v, &r->config, &r->weights.vision, r->backend, DT_F32);
    v.watch = watch_block;
    v.watch_arg = r;
    patchify(&r->config, pixels, patches);
    struct tensor rows =
        r->backend->ops->alloc(r->backend, DT_F32, config_tile_tokens(&r->config), r->config.lm.hidden);
    assert_int_equal(vision_encode(&v, patches, 1, rows, NULL), 1);
    check_stage(r, "rows", rows);
    vision_free(&v);
    free(patches);
    return rows;
}

static void run_language(struct run *r, struct tensor rows)
{
    size_t n, count;
    const int32_t *ids = find(&r->ref, "ids", &n);
    const float *want = find(&r->ref, "logits", &count);
    int vocab = r->weights.vocab;
    struct language m;
    struct lm_state s;
    language_init(&m, &r->config.lm, &r->weights, r->backend, DT_F32);
    state_init(&s, &r->config.lm, r->backend, (struct state_types){DT_F32, DT_F32, DT_F32});
    struct image_rows image = {0, rows};
    while (ids[image.at] != r->config.image_token)
        image.at++;
    m.watch = watch_layer;
    m.watch_arg = r;
    language_forward(&m, &s, ids, (int64_t)n, &image, 1);
    float *logits = malloc((size_t)vocab * sizeof *logits);
    language_logits(&m, &s, logits);
    double worst = 0;
    for (int i = 0; i < vocab; i++)
        worst = check_worse(worst, fabs((double)logits[i] - want[(n - 1) * (size_t)vocab + (size_t)i]));
    check_note("%s: %d stages, worst relative difference %.1e; logits differ by %.1e at most",
               r->backend->ops->name, r->seen, r->worst, worst);
    assert_true(worst < 2e-4 && r->worst < 1e-5);
    assert_int_equal(r->seen, 11);
    free(logits);
    state_free(&s, &r->config.lm, r->backend);
    language_free(&m);
}

static void t_reference(void **state)
{
    const char *names[8];
    int isas = backend_cpu_list(names, 8);
    for (int i = 0; i < isas; i++) {
        struct err e = ERR_INIT;
        struct run r = {.ref.root = json_load_file(GOLDEN "/reference.json", 0, NULL)};
        assert_non_null(r.ref.root);
        assert_int_equal(file_map(&r.ref.data, GOLDEN "/reference.bin", &e), 0);
        if (config_load(&r.config, GOLDEN, &e))
            fail_msg("%s", e.text);
        struct safetensors *s = safetensors_open(GOLDEN, &e);
        r.backend = backend_cpu(names[i], NULL, &e);
        struct bind_options o = {.f32 = true};
        if (!s || weights_bind(&r.weights, &r.config, s, r.backend, &o, &e))
            fail_msg("%s", e.text);
        struct tensor rows = run_vision(&r);
        run_language(&r, rows);
        r.backend->ops->free(r.backend, &rows);
        weights_free(&r.weights, &r.config, r.backend);
        backend_free(r.backend);
        safetensors_close(s);
        file_unmap(&r.ref.data);
        json_decref(r.ref.root);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("tower, projector, layers and logits agree with transformers", t_reference),
};

CHECK_MAIN()
