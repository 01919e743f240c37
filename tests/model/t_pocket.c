/* t_pocket.c - compares the embedded model with reference values computed from the equations in double
 * precision (assets/pocket/pocket/golden.py): token ids, pixels, every block of the tower, the projector,
 * every layer, states and logits.  f32 kernels must agree closely, bf16 kernels within their rounding. */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "model/preprocess.h"
#include "session/chat.h"
#include "session/generate.h"
#include "session/session_impl.h"

#include <jansson.h>
#include <math.h>

#define MODEL  "assets/pocket/model"
#define GOLDEN "tests/golden/pocket/"

/* ---- the reference --------------------------------------------------------------------------- */

struct golden {
    json_t *root;
    struct file_map data;
};

struct array {
    const float *values; /* or int32_t */
    int rows, cols;
    int index[64]; /* numbers of the stored rows */
};

static struct golden open_golden(void)
{
    struct golden g;
    g.root = json_load_file(GOLDEN "golden.json", 0, NULL);
    assert_non_null(g.root);
    assert_int_equal(file_map(&g.data, GOLDEN "golden.bin", NULL), 0);
    return g;
}

static void close_golden(struct golden *g)
{
    json_decref(g->root);
    file_unmap(&g->data);
}

static bool find_array(const struct golden *g, const char *name, struct array *a)
{
    size_t i, k;
    json_t *v, *r;
    json_array_foreach(json_object_get(g->root, "arrays"), i, v)
    {
        if (strcmp(json_string_value(json_object_get(v, "name")), name) != 0)
            continue;
        const json_t *shape = json_object_get(v, "shape");
        bool flat = json_array_size(shape) == 1;
        a->rows = flat ? 1 : (int)json_integer_value(json_array_get(shape, 0));
        a->cols = (int)json_integer_value(json_array_get(shape, flat ? 0 : 1));
        json_array_foreach(json_object_get(v, "rows"), k, r) if (k < 64) a->index[k] =
            (int)json_integer_value(r);
        a->values =
            (const float *)(const void *)(g->data.data + json_integer_value(json_object_get(v, "offset")));
        return true;
    }
    return false;
}

/* Largest difference, and the root mean square of the difference relative to the reference. */
struct distance {
    double worst, relative;
};

struct sums {
    double worst, diff, ref;
};

static void compare(struct sums *s, const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        s->worst = check_worse(s->worst, d);
        s->diff += d * d;
        s->ref += (double)want[i] * want[i];
    }
}

/* ---- a run with all stages recorded ---------------------------------------------------------- */

struct watched {
    const struct golden *golden;
    struct engine *engine;
    int64_t first; /* position of the first row of the current piece */
    double worst;  /* relative difference of the worst stage */
    char at[32];
    int rows; /* compared */
    bool print;
};

static void check_tensor(struct watched *w, const char *name, struct tensor t, int64_t first)
{
    struct array a;
    if (!find_array(w->golden, name, &a))
        return;
    float *row = malloc((size_t)t.cols * sizeof *row);
    struct sums s = {0};
    for (int i = 0; i < a.rows; i++) {
        int64_t r = a.index[i] - first;
        if (r < 0 || r >= t.rows)
            continue;
        const struct ops *ops = w->engine->backend->ops;
        ops->download(w->engine->backend, (struct tensor){row, DT_F32, 1, t.cols, t.cols},
                      tensor_rows(t, r, 1));
        compare(&s, row, a.values + (size_t)i * (size_t)a.cols, a.cols);
        w->rows++;
    }
    free(row);
    double relative = check_relative(s.diff, s.ref + 1e-30);
    if (w->print)
        check_note("%-12s worst %.2e, relative %.2e", name, s.worst, relative);
    if (relative > w->worst) {
        w->worst = relative;
        snprintf(w->at, sizeof w->at, "%s", name);
    }
}

static void watch_block(void *arg, int block, struct tensor x)
{
    char name[32];
    snprintf(name, sizeof name, block < 0 ? "vit_in" : "vit_block%d", block);
    check_tensor(arg, name, x, 0);
}

static void watch_layer(void *arg, int layer, struct tensor h)
{
    struct watched *w = arg;
    char name[32];
    snprintf(name, sizeof name, "layer%d", layer);
    check_tensor(w, name, h, w->first);
}

static void append_golden(struct session *s, const struct golden *g)
{
    struct array ids;
    struct image page = {0};
    struct err e = ERR_INIT;
    assert_int_equal(image_read_png(&page, GOLDEN "page.png", &e), 0);
    const struct chat_part history = {.text = "Book a flight from Oslo to Rome\n-"},
                           picture = {.image = &page};
    assert_int_equal(chat_system(s, "", false, &e), 0);
    assert_int_equal(chat_user(s, &history, 1, CHAT_PLACE_INLINE, &e), 0);
    assert_int_equal(chat_reply(s, "<write>From<at><12><.3><20><.0>Oslo", &e), 0);
    assert_int_equal(chat_user(s, &picture, 1, CHAT_PLACE_INLINE, &e), 0);
    assert_int_equal(chat_open_reply(s, false, &e), 0);
    image_free(&page);
    assert_true(find_array(g, "ids", &ids));
    assert_int_equal(session_length(s), ids.cols);
    assert_memory_equal(session_tokens(s), ids.values, (size_t)ids.cols * 4);
}

static void check_states(struct watched *w, struct session *s)
{
    const struct lm_config *c = &w->engine->config.lm;
    for (int i = 0; i < c->layers; i++) {
        char name[32];
        struct array a;
        snprintf(name, sizeof name, "state%d", i);
        if (!find_array(w->golden, name, &a))
            continue;
        struct sums sums = {0};
        for (int h = 0; h < c->ssm.heads; h++)
            compare(&sums,
                    (const float *)s->state.now.ssm[i].data +
                        (size_t)h * (size_t)c->ssm.head_dim * (size_t)a.cols,
                    a.values + (size_t)h * (size_t)a.cols, a.cols);
        w->worst = fmax(w->worst, check_relative(sums.diff, sums.ref + 1e-30));
    }
}

/* Runs the whole prompt on one instruction set; returns the largest relative difference. */
static double run_golden(const char *isa, bool f32, bool print)
{
    struct golden g = open_golden();
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = MODEL, .isa = isa, .threads = 1, .f32 = f32};
    struct engine *engine = engine_open(&o, &e);
    if (!engine)
        printf("%s\n", e.text);
    assert_non_null(engine);
    struct watched w = {.golden = &g, .engine = engine, .print = print};
    engine->language.watch = watch_layer;
    engine->vision.watch = watch_block;
    engine->language.watch_arg = engine->vision.watch_arg = &w;
    struct session *s = session_new(engine, 1);
    append_golden(s, &g);
    check_tensor(&w, "projected", s->images[0].rows, 0);
    assert_int_equal(session_compute_logits(s, NULL), 0);
    check_states(&w, s);

    struct array logits;
    assert_true(find_array(&g, "logits", &logits));
    const float *got = session_logits(s),
                *want = logits.values + (size_t)(logits.rows - 1) * (size_t)logits.cols;
    struct sums sums = {0};
    compare(&sums, got, want, logits.cols);
    int best = 0, likeliest = 0;
    for (int i = 1; i < logits.cols; i++) {
        best = got[i] > got[best] ? i : best;
        likeliest = want[i] > want[likeliest] ? i : likeliest;
    }
    assert_int_equal(best, likeliest);
    /* 7 rows of each of 6 tower stages, 5 of the projector, 6 of each of 20 layers */
    assert_int_equal(w.rows, 167);
    check_note("%s %s: worst stage %s %.1e, logits %.1e, next token %d", engine_isa(engine),
               f32 ? "f32" : "bf16", w.at, w.worst, sqrt(sums.diff / sums.ref), best);
    double worst = fmax(w.worst, check_relative(sums.diff, sums.ref));
    session_free(s);
    engine_close(engine);
    close_golden(&g);
    return worst;
}

static void t_golden_f32(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 1; i < n; i++)
        assert_true(run_golden(names[i], true, getenv("HOLORUN_TEST_PRINT")) < 1e-4);
}

static void t_golden_bf16(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 1; i < n; i++)
        assert_true(run_golden(names[i], false, getenv("HOLORUN_TEST_PRINT")) < 5e-2);
}

/* Returns the largest difference of an image's pixels in the stored rows. */
static double pixels_of(const struct golden *g, const struct model_config *c, const char *name)
{
    static const struct {
        const char *name;
        int channel;
    } rows[] = {{"red", 0}, {"blue", 2}};
    struct err e = ERR_INIT;
    struct image seen = {0}, im = {0};
    char *path = xasprintf(GOLDEN "%s.png", name);
    assert_int_equal(image_read_png(&im, path, &e), 0);
    struct tile_grid grid = preprocess_grid(c, im.w, im.h);
    assert_int_equal(preprocess_native(c, &im, NULL, &seen, &e), 0);
    float *p = malloc(preprocess_image_floats(c, &grid) * sizeof *p);
    preprocess_image(c, &seen, &grid, false, NULL, p);
    double worst = 0;
    for (size_t k = 0; k < 2; k++) {
        struct array a;
        char *array = xasprintf("%s_%s", name, rows[k].name);
        assert_true(find_array(g, array, &a));
        assert_int_equal(a.cols, 16 * grid.patch_cols);
        for (int i = 0; i < a.rows; i++)
            for (int x = 0; x < a.cols; x++) {
                int y = a.index[i];
                size_t patch = (size_t)(y / 16 * grid.patch_cols + x / 16);
                size_t at = (patch * 3 + (size_t)rows[k].channel) * 256 + (size_t)(y % 16 * 16 + x % 16);
                worst = check_worse(worst, fabs((double)p[at] - a.values[i * a.cols + x]));
            }
        free(array);
    }
    check_note("%s: %dx%d seen as %dx%d, worst difference %.1e", name, im.w, im.h, 16 * grid.patch_cols,
               16 * grid.patch_rows, worst);
    free(p);
    free(path);
    image_free(&seen);
    image_free(&im);
    return worst;
}

static void t_pixels(void **state)
{
    struct golden g = open_golden();
    struct model_config c;
    assert_int_equal(config_load(&c, MODEL, NULL), 0);
    assert_true(pixels_of(&g, &c, "page") < 2e-5);
    assert_true(pixels_of(&g, &c, "long") < 2e-5);
    close_golden(&g);
}

static void t_step(void **state)
{
    struct err e = ERR_INIT;
    struct golden g = open_golden();
    int64_t start = clock_ns();
    struct engine_options o = {.dir = MODEL};
    struct engine *engine = engine_open(&o, &e);
    assert_non_null(engine);
    double load = clock_ms_since(start);
    struct session *s = session_new(engine, 1);
    start = clock_ns();
    append_golden(s, &g);
    session_logits(s);
    double see = clock_ms_since(start);
    struct sampling greedy = {0, 1, 40};
    struct generated out;
    assert_int_equal(generate(s, &(struct generation){.sampling = greedy}, &out, &e), 0);
    struct session_stats st = session_stats(s);
    check_note("%s, %d threads: open %.0f ms, see %.1f ms (pixels %.1f, vision %.1f, prefill %.1f), %d "
               "tokens %.1f ms",
               engine_isa(engine), engine_threads(engine), load, see, st.preprocess_ms, st.vision_ms,
               st.prefill_ms, out.n, out.ms);
    check_note("'%s'", out.text.data);
    assert_null(chat_template_warning(engine_chat(engine)));
    generated_free(&out);
    session_free(s);
    engine_close(engine);
    close_golden(&g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("f32: every stage on every instruction set agrees with the reference in double precision",
          t_golden_f32),
    CLAIM("bf16: every stage agrees within the rounding of activations", t_golden_bf16),
    CLAIM("pixels of an unscaled and of a reduced image agree with the reference", t_pixels),
    CLAIM("a whole step runs, and its template is the model's own", t_step),
};

CHECK_MAIN()
