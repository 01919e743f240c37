/* t_tiling.c - compares tiles made of screenshots with torchvision, transformers and timm's constants
 * (tests/reference/make_tiling.py).
 *
 * Both sides resize in f32 with the same filter, so only the order of sums differs: fewer than 60 products
 * per pass, each within [-0.2, 1.2] after division by 255, and normalization divides by 0.26 or more.
 * 1e-5 allows for 40 roundings of 6e-8.
 */
#include "check.h"
#include "golden.h"

#include "model/preprocess.h"

#include <math.h>

static size_t tile_floats(const struct model_config *c, int tiles)
{
    return (size_t)tiles * (size_t)c->vit.tile * (size_t)c->vit.tile * 3;
}

static struct golden g;
static struct model_config config;

static int setup(void **state)
{
    struct err e = ERR_INIT;
    golden_open(&g, "tiling");
    if (config_load(&config, g.dir, &e)) /* without mean and deviation: uses those of CLIP */
        fail_msg("%s", e.text);
    return 0;
}

static int teardown(void **state)
{
    golden_close(&g);
    return 0;
}

/* Returns the index of number i of [tile][channel][y][x] in the patches. */
static size_t place(int64_t i)
{
    int side = config.vit.tile, grid = config_grid(&config);
    int64_t x = i % side, y = i / side % side, ch = i / side / side % 3, tile = i / side / side / 3;
    int64_t patch = tile * grid * grid + y / 16 * grid + x / 16;
    return (size_t)((patch * 3 + ch) * 256 + y % 16 * 16 + x % 16);
}

static double check_image(const json_t *image, bool round8)
{
    int w = (int)json_integer_value(json_object_get(image, "w")),
        h = (int)json_integer_value(json_object_get(image, "h"));
    char name[32], at_name[40];
    snprintf(name, sizeof name, "%dx%d", w, h);
    snprintf(at_name, sizeof at_name, "at %s", name);
    struct tile_grid t = preprocess_grid(&config, w, h);
    assert_int_equal(t.cols, json_integer_value(json_object_get(image, "cols")));
    assert_int_equal(t.rows, json_integer_value(json_object_get(image, "rows")));
    assert_int_equal(t.tiles, json_integer_value(json_object_get(image, "tiles")));

    struct image im;
    assert_int_equal(image_alloc(&im, w, h, NULL), 0);
    for (int64_t i = 0; i < (int64_t)w * h * 3; i++)
        im.rgb[i] = (uint8_t)(golden_mixed(g.seed, name, i) >> 56);
    size_t n = tile_floats(&config, t.tiles);
    float *patches = malloc(n * sizeof *patches);
    preprocess_image(&config, &im, &t, round8, NULL, patches);

    struct golden_array want = golden_find(&g, name);
    double worst = 0;
    for (int64_t i = 0; i < want.rows; i++) {
        int64_t at = (int64_t)((golden_mixed(g.seed, at_name, i) >> 20) % n);
        double d = fabs((double)patches[place(at)] - (double)((const float *)want.data)[i]);
        worst = d <= worst ? worst : d;
    }
    free(patches);
    image_free(&im);
    return worst;
}

static void t_images(void **state)
{
    double worst = 0;
    size_t i;
    json_t *image;
    const json_t *images = json_object_get(g.root, "images");
    json_array_foreach(images, i, image) worst = fmax(worst, check_image(image, false));
    check_note("%zu sizes: worst difference %.1e", json_array_size(images), worst);
    assert_true(json_array_size(images) > 20 && worst < 1e-5);
}

/* Rounding to bytes changes the result by up to half a byte. */
static void t_rounded(void **state)
{
    double worst = 0;
    for (size_t i = 10; i < 14; i++)
        worst = fmax(worst, check_image(json_array_get(json_object_get(g.root, "images"), i), true));
    check_note("rounded to bytes: worst difference %.1e", worst);
    assert_true(worst > 1e-3);
}

static void t_grids(void **state)
{
    struct golden_array want = golden_find(&g, "grids");
    const int32_t *grid = want.data;
    for (int64_t i = 0; i < want.rows; i++) {
        int w = (int)((golden_mixed(g.seed, "grids", 2 * i) >> 33) % 4000) + 1,
            h = (int)((golden_mixed(g.seed, "grids", 2 * i + 1) >> 33) % 4000) + 1;
        struct tile_grid t = preprocess_grid(&config, w, h);
        if (t.cols != grid[2 * i] || t.rows != grid[2 * i + 1])
            fail_msg("%dx%d gives %dx%d, not %dx%d", w, h, t.cols, t.rows, grid[2 * i], grid[2 * i + 1]);
    }
    check_note("%lld sizes", (long long)want.rows);
    assert_true(want.rows >= 4000);
}

static const struct CMUnitTest tests[] = {
    CLAIM_WITH("tiles of 26 sizes equal torchvision's to 1e-5, normalized with the constants of CLIP",
               t_images, setup, teardown),
    CLAIM_WITH("tiles are rounded to bytes only on request", t_rounded, setup, teardown),
    CLAIM_WITH("4000 sizes get the grid that transformers chooses", t_grids, setup, teardown),
};

CHECK_MAIN()
