/* t_pocket_wide.c - tests a tiny random model as written by assets/pocket/pocket/publish.py: images at
 * native resolution, positions cut from a table, coordinates of two tokens per axis.
 * tests/golden/pocket-wide has its weights and, from torch, the rows of an image and the logits after a
 * step; its other files are those of the embedded model. */
#include "check.h"

#include "place.h"

#include "actions/dialect.h"
#include "base/file.h"
#include "model/preprocess.h"
#include "pocket/assist.h"
#include "pocket/heads.h"
#include "pocket/locate.h"
#include "session/chat.h"
#include "session/session_impl.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

#define GOLDEN   "tests/golden/pocket-wide"
#define EMBEDDED "assets/pocket/model"

/* Fills a folder with links to the files of the model. */
static void link_files(const char *dir)
{
    char *link =
        xasprintf("ln -sf \"$PWD\"/" EMBEDDED "/* '%s' && ln -sf \"$PWD\"/" GOLDEN "/* '%s'", dir, dir);
    assert_int_equal(system(link), 0);
    free(link);
}

/* Returns a folder with the model, made by the first call. */
static const char *model(void)
{
    static char dir[PLACE_PATH];
    if (!*dir) {
        assert_non_null(mkdtemp(place_template(dir)));
        link_files(dir);
    }
    return dir;
}

static json_t *open_golden(void)
{
    json_t *root = json_load_file(GOLDEN "/golden.json", 0, NULL);
    assert_non_null(root);
    return root;
}

static int number(const json_t *root, const char *name)
{
    return (int)json_integer_value(json_object_get(root, name));
}

/* Creates the image; each stored pixel becomes a square. */
static void make_picture(const json_t *root, struct image *im)
{
    struct err e = ERR_INIT;
    const json_t *rgb = json_object_get(root, "rgb");
    int cols = number(root, "columns"), side = number(root, "each_pixel_is");
    int rows = (int)json_array_size(rgb) / 3 / cols;
    assert_int_equal(image_alloc(im, cols * side, rows * side, &e), 0);
    for (int y = 0; y < im->h; y++)
        for (int x = 0; x < im->w; x++)
            for (int c = 0; c < 3; c++) {
                int from = (y / side * cols + x / side) * 3 + c;
                im->rgb[(y * im->w + x) * 3 + c] =
                    (uint8_t)json_integer_value(json_array_get(rgb, (size_t)from));
            }
}

/* Returns the root mean square of the difference relative to that of the expected values. */
static double relative(const float *got, const json_t *want)
{
    double diff = 0, ref = 0;
    for (size_t i = 0; i < json_array_size(want); i++) {
        double w = json_real_value(json_array_get(want, i)), d = (double)got[i] - w;
        diff += d * d;
        ref += w * w;
    }
    return check_relative(diff, ref + 1e-30);
}

static double compare_rows(struct engine *engine, struct tensor rows, const json_t *want)
{
    double worst = 0;
    float *row = malloc((size_t)rows.cols * sizeof *row);
    assert_int_equal(rows.rows, json_array_size(want));
    for (int64_t i = 0; i < rows.rows; i++) {
        engine->backend->ops->download(engine->backend, (struct tensor){row, DT_F32, 1, rows.cols, rows.cols},
                                       tensor_rows(rows, i, 1));
        worst = check_worse(worst, relative(row, json_array_get(want, (size_t)i)));
    }
    free(row);
    return worst;
}

/* Appends the task, an earlier step without its image, and the newest image. */
static void append(struct session *s, const json_t *root, const struct image *picture)
{
    struct err e = ERR_INIT;
    char *said = xasprintf("%s\n-", json_string_value(json_object_get(root, "said")));
    const struct chat_part first = {.text = said}, now = {.image = picture};
    assert_int_equal(chat_system(s, "", false, &e), 0);
    assert_int_equal(chat_user(s, &first, 1, CHAT_PLACE_INLINE, &e), 0);
    assert_int_equal(chat_reply(s, json_string_value(json_object_get(root, "step")), &e), 0);
    assert_int_equal(chat_user(s, &now, 1, CHAT_PLACE_INLINE, &e), 0);
    assert_int_equal(chat_open_reply(s, false, &e), 0);
    free(said);
}

static double run(const char *isa, bool f32)
{
    struct err e = ERR_INIT;
    struct image picture = {0};
    json_t *root = open_golden(), *ids = json_object_get(root, "ids");
    struct engine_options o = {.dir = model(), .isa = isa, .threads = 1, .f32 = f32};
    struct engine *engine = engine_open(&o, &e);
    if (!engine)
        fail_msg("%s", e.text);
    make_picture(root, &picture);
    struct session *s = session_new(engine, 1);
    append(s, root, &picture);
    assert_int_equal(session_length(s), json_array_size(ids));
    for (size_t i = 0; i < json_array_size(ids); i++)
        assert_int_equal(session_tokens(s)[i], json_integer_value(json_array_get(ids, i)));
    double rows = compare_rows(engine, s->images[0].rows, json_object_get(root, "rows"));
    assert_int_equal(session_compute_logits(s, NULL), 0);
    double logits = relative(session_logits(s), json_object_get(root, "logits"));
    check_note("%s %s: rows %.1e, logits %.1e", engine_isa(engine), f32 ? "f32" : "bf16", rows, logits);
    session_free(s);
    engine_close(engine);
    image_free(&picture);
    json_decref(root);
    return fmax(rows, logits);
}

static double worst_of_all(bool f32)
{
    const char *names[8];
    double worst = 0;
    int n = backend_cpu_list(names, 8);
    for (int i = 1; i < n; i++)
        worst = check_worse(worst, run(names[i], f32));
    return worst;
}

static void t_f32(void **state)
{
    assert_true(worst_of_all(true) < 1e-4);
}

static void t_bf16(void **state)
{
    assert_true(worst_of_all(false) < 5e-2);
}

/* Returns the largest difference between the heads' output for a patch and torch's; a different letter
 * counts 1. */
static double patch_differs(const struct patch_reading *p, const json_t *want)
{
    const float *parts[] = {p->present, p->shift, NULL, p->kind};
    double worst = 0;
    size_t at = 1; /* after the patch number */
    for (int part = 0; part < 4; part++)
        for (int i = 0; i < (part < 3 ? PATCH_SLOTS : ELEMENT_KINDS); i++, at++) {
            double w = json_number_value(json_array_get(want, at));
            worst = check_worse(worst,
                                parts[part] ? fabs((double)parts[part][i] - w) : (double)(p->letter[i] != w));
        }
    assert_int_equal(at, json_array_size(want));
    return worst;
}

/* Returns the largest difference of a patch's pointer probabilities. */
static double pointer_differs(const struct patch_map *map, int patch, const json_t *want)
{
    float got[12 * 10 + 1];
    double worst = 0;
    assert_int_equal(json_array_size(want), sizeof got / sizeof *got);
    pointer_read(map, patch, got);
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        worst =
            check_worse(worst, fabs(exp((double)got[i]) - exp(json_number_value(json_array_get(want, i)))));
    return worst;
}

static double run_heads(const char *isa)
{
    struct err e = ERR_INIT;
    struct image picture = {0};
    struct patch_map map;
    json_t *root = open_golden(), *want;
    struct engine_options o = {.dir = model(), .isa = isa, .threads = 1, .f32 = true};
    struct engine *engine = engine_open(&o, &e);
    struct session *s = session_new(engine, 1);
    double worst = 0;
    size_t i;
    make_picture(root, &picture);
    append(s, root, &picture);
    engine->vision.batch = 0; /* fails if a tile is encoded: the heads' output is cached with the rows */
    struct heads *heads = heads_open(engine, &e);
    assert_non_null(heads);
    assert_int_equal(heads_read(heads, &picture, NULL, &map, &e), 0);
    free(heads);
    assert_int_equal(map.cols, 12);
    assert_int_equal(map.rows, 10);
    assert_true(map.scale == 1.5);
    json_array_foreach(json_object_get(root, "patches"), i, want)
    {
        int patch = (int)json_integer_value(json_array_get(want, 0));
        worst = check_worse(worst, patch_differs(&map.patches[patch], want));
        want = json_array_get(json_object_get(root, "pointed"), i);
        worst = check_worse(worst, pointer_differs(&map, patch, want));
    }
    check_note("%s: %zu patches, %.1e", engine_isa(engine), i, worst);
    patch_map_free(&map);
    session_free(s);
    engine_close(engine);
    image_free(&picture);
    json_decref(root);
    return worst;
}

static void t_heads(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 1; i < n; i++)
        assert_true(run_heads(names[i]) < 1e-3);
}

/* Copies the model to `dir` and replaces the text `from` in the header of the weights by `to`. */
static void damaged(const char *dir, const char *from, const char *to)
{
    char *is = xasprintf("%s/model.safetensors", dir), *data;
    size_t len;
    assert_int_equal(strlen(from), strlen(to));
    assert_int_equal(file_read(GOLDEN "/model.safetensors", 1 << 20, &data, &len, NULL), 0);
    char *at = memmem(data, len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    link_files(dir);
    assert_int_equal(unlink(is), 0);
    assert_int_equal(file_write(is, data, len, NULL), 0);
    free(data), free(is);
}

static void t_damaged_heads(void **state)
{
#define HEAD(name, shape) "vision_model.heads." name "\":{\"dtype\":\"BF16\",\"shape\":[" shape "]"
    static const struct {
        const char *from, *to, *wrong;
    } cases[] = {
        {HEAD("find.inner.weight", "256,64"), HEAD("find.inner.weight", "64,256"), "find.inner.weight"},
        {HEAD("find.out.weight", "26,256"), HEAD("find.out.weight", "52,128"), "find.out.weight"},
        {HEAD("find.out.weight", "26,256"), HEAD("find.out.weight", "13,512"), "find.out.weight"},
        {HEAD("pointer.down", "127,32"), HEAD("pointer.down", "32,127"), "pointer.down"},
        {HEAD("pointer.key.weight", "64,64"), HEAD("pointer.key.weight", "4096 "), "pointer.key.weight"},
        {HEAD("norm.bias", "64"), HEAD("norm.bios", "64"), "norm.bias"},
        {HEAD("letter", "8,96,64"), HEAD("letter", "8,64,96"), "letter"},
        {HEAD("block.norm1.bias", "64"), HEAD("block.norm1.bios", "64"), "block.norm1.bias"},
        {HEAD("block.attn.qkv.weight", "192,64"), HEAD("black.attn.qkv.weight", "192,64"), "block."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        char dir[PLACE_PATH];
        assert_non_null(mkdtemp(place_template(dir)));
        damaged(dir, cases[i].from, cases[i].to);
        struct engine_options o = {.dir = dir, .threads = 1};
        struct engine *engine = engine_open(&o, &e);
        assert_true(!engine || !heads_open(engine, &e));
        if (e.kind != ERR_MODEL || !strstr(e.text, cases[i].wrong))
            fail_msg("%s: %s", cases[i].wrong, e.text);
        engine_close(engine);
    }
}

static void t_size(void **state)
{
    static const struct {
        int w, h, cols, rows;
    } sizes[] = {{640, 480, 40, 30}, {500, 480, 32, 30}, /* native resolution */
                 {120, 88, 12, 10},  {448, 304, 42, 30}, /* enlarged to at most 640 x 480 pixels */
                 {449, 305, 30, 20}, {682, 40, 64, 4},   /* enlarged up to the longest side, and above it */
                 {683, 40, 44, 4},   {2048, 1024, 64, 32}};
    struct model_config c;
    assert_int_equal(config_load(&c, model(), NULL), 0);
    c.vit.native_side = 1024;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tile_grid g = preprocess_grid(&c, sizes[i].w, sizes[i].h);
        assert_int_equal(g.tiles, 1);
        assert_int_equal(g.patch_cols, sizes[i].cols);
        assert_int_equal(g.patch_rows, sizes[i].rows);
    }
}

static void t_dialect(void **state)
{
    struct err e = ERR_INIT;
    char *name = dialect_for_model(model(), &e);
    assert_string_equal(name, "pocket-wide");
    free(name);
    struct engine_options o = {.dir = model(), .threads = 1};
    struct engine *engine = engine_open(&o, &e);
    assert_non_null(engine);
    assert_null(chat_template_warning(engine_chat(engine)));
    engine_close(engine);
}

static void t_places(void **state)
{
    static const struct {
        int w, h;
        double seen[2];
        int x, y;
    } places[] = {{640, 480, {30, 60}, 30, 60},
                  {120, 88, {30, 60}, 20, 40},
                  {448, 304, {671, 455}, 447, 303},
                  {2048, 1024, {30, 60}, 60, 120}};
    struct err e = ERR_INIT;
    struct dialect *d = dialect_load("pocket-wide", &e);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int32_t x = -1, y = -1;
        assert_int_equal(dialect_to_pixels(d, places[i].seen, places[i].w, places[i].h, &x, &y), 0);
        assert_int_equal(x, places[i].x);
        assert_int_equal(y, places[i].y);
    }
    int32_t x, y;
    assert_int_equal(dialect_to_pixels(d, (const double[]){195, 60}, 120, 88, &x, &y), -1);
    dialect_free(d);
}

/* Writes one letter for each supported operation of an assist, "-" for the others. */
static void operations(const struct assist *x, char out[8])
{
    snprintf(out, 8, "%c%c%c%c%c%c%c", ASSIST(x, read_task) ? 't' : '-', ASSIST(x, correct_reply) ? 'r' : '-',
             ASSIST(x, correct_action) ? 'a' : '-', ASSIST(x, find) ? 'f' : '-',
             ASSIST(x, answer) ? 'q' : '-', ASSIST(x, shows) ? 's' : '-', ASSIST(x, judge) ? 'j' : '-');
}

static void t_assist(void **state)
{
    static const struct {
        const char *dialect;
        bool engine;
        const char *operations;
    } cases[] = {{"pocket-wide", true, "trafqsj"},
                 {"pocket-wide", false, "t-----j"},
                 {"holo3", true, "-rafqs-"},
                 {"holo3", false, "-------"}};
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = model(), .threads = 1};
    struct engine *engine = engine_open(&o, &e);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dialect *d = dialect_load(cases[i].dialect, &e);
        struct assist *x;
        char got[8];
        assert_int_equal(pocket_assist_open(&x, cases[i].engine ? engine : NULL, d, NULL, &e), 0);
        operations(x, got);
        assert_string_equal(got, cases[i].operations);
        assert_int_equal(x != NULL, i < 3);
        assist_free(x);
        dialect_free(d);
    }
    engine_close(engine);
}

static const struct CMUnitTest tests[] = {
    CLAIM("f32: an image at native resolution and a step agree with torch on every instruction set", t_f32),
    CLAIM("bf16: the same within the rounding of activations", t_bf16),
    CLAIM("letters, kinds and pointers of each patch equal torch's, and are cached with the image's rows",
          t_heads),
    CLAIM("heads with a missing tensor or another shape are refused with the tensor's name", t_damaged_heads),
    CLAIM(
        "an image is used in its native size, in multiples of 32; small ones are enlarged, long ones reduced",
        t_size),
    CLAIM("coordinates are those of the scaled image; beyond its edge they are refused", t_places),
    CLAIM("an assist supports what heads and dialect of a model allow; a model with neither has none",
          t_assist),
    CLAIM("the directory alone determines the model's dialect and template", t_dialect),
};

CHECK_MAIN()
