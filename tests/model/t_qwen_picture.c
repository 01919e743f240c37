/* t_qwen_picture.c - compares the image preprocessing of Qwen's models with transformers' processor and
 * PyTorch's byte resize (tests/golden/qwen_picture, tests/reference/make_qwen_picture.py): sizes, and
 * hashes of resized bytes and patches, which must be bit-identical. */
#include "check.h"
#include "golden.h"

#include "actions/dialect.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "model/preprocess.h"
#include "model/preprocess_qwen.h"
#include "model/resize8.h"

#include <jansson.h>

static json_t *golden; /* reference values for an encoder with patches of this width */
static int patch;

static void open_golden(int wide)
{
    json_decref(golden);
    patch = wide;
    golden = json_load_file(wide == 14 ? "tests/golden/qwen_picture/pictures28.json"
                                       : "tests/golden/qwen_picture/pictures.json",
                            0, NULL);
    assert_non_null(golden);
}

static int number(const json_t *row, const char *key)
{
    return (int)json_integer_value(json_object_get(row, key));
}

static struct model_config config(int least, int most)
{
    struct model_config c = {
        .family = FAMILY_QWEN35, .vision = true, .mean = {.5f, .5f, .5f}, .std = {.5f, .5f, .5f}};
    if (patch == 14) {
        static const float mean[] = {0.48145466f, 0.4578275f, 0.40821073f},
                           std[] = {0.26862954f, 0.26130258f, 0.27577711f};
        c.family = FAMILY_QWEN25VL;
        memcpy(c.mean, mean, sizeof mean);
        memcpy(c.std, std, sizeof std);
    }
    c.vit =
        (struct vit_config){.patch = patch, .merge = 2, .frames = 2, .min_pixels = least, .max_pixels = most};
    c.vit.max_patches = most / (patch * patch);
    return c;
}

static void check_sizes(int wide)
{
    open_golden(wide);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(golden, "sizes"), i, row)
    {
        int v[6];
        for (size_t k = 0; k < 6; k++)
            v[k] = (int)json_integer_value(json_array_get(row, k));
        struct model_config c = config(v[2], v[3]);
        struct tile_grid g = preprocess_grid(&c, v[0], v[1]);
        if (g.patch_cols * patch != v[4] || g.patch_rows * patch != v[5])
            fail_msg("%dx%d up to %d: %dx%d, expected %dx%d", v[0], v[1], v[3], g.patch_cols * patch,
                     g.patch_rows * patch, v[4], v[5]);
        assert_int_equal(preprocess_tokens(&g), v[4] * v[5] / (4 * patch * patch));
        struct dialect d = {.coords = COORD_PX28, .least_pixels = v[2], .most_pixels = v[3]};
        int w = v[0], h = v[1];
        dialect_shown_size(&d, &w, &h);
        assert_true(wide != 14 || (w == v[4] && h == v[5]));
    }
    check_note("%zu sizes for patches of %d", i, wide);
}

static void t_sizes(void **state)
{
    check_sizes(16);
    check_sizes(14);
}

static void has_hash(const void *data, size_t n, const json_t *row, const char *what)
{
    char hex[65];
    sha256(data, n, hex);
    if (strcmp(hex, json_string_value(json_object_get(row, what))) != 0)
        fail_msg("%dx%d, kind %d: %s differ", number(row, "w"), number(row, "h"), number(row, "kind"), what);
}

static void check_pictures(int patch_side)
{
    open_golden(patch_side);
    struct pool *pool = pool_new(3);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(golden, "pictures"), i, row)
    {
        struct image im;
        int wide = number(row, "wide"), high = number(row, "high");
        size_t n = (size_t)wide * (size_t)high;
        golden_picture(&im, number(row, "w"), number(row, "h"), number(row, "kind"));
        has_hash(im.rgb, 3 * (size_t)im.w * (size_t)im.h, row, "drawn");
        uint8_t *resized = xmalloc(3, n);
        resize8(&im, wide, high, i % 2 ? pool : NULL, resized);
        has_hash(resized, 3 * n, row, "resized");
        struct model_config c = config(number(row, "least"), number(row, "most"));
        struct tile_grid g = preprocess_grid(&c, im.w, im.h);
        float *patches = xmalloc(preprocess_image_floats(&c, &g), sizeof *patches);
        assert_int_equal(preprocess_image_floats(&c, &g), n * 6);
        preprocess_image(&c, &im, &g, false, i % 2 ? NULL : pool, patches);
        has_hash(patches, n * 6 * sizeof *patches, row, "patches");
        free(patches);
        free(resized);
        image_free(&im);
    }
    pool_free(pool);
}

static void t_pictures(void **state)
{
    check_pictures(16);
    check_pictures(14);
}

static void t_speed(void **state)
{
    struct image im;
    patch = 16;
    golden_picture(&im, 1920, 1080, 2);
    struct model_config c = config(65536, 16777216);
    struct tile_grid g = preprocess_grid(&c, im.w, im.h);
    assert_int_equal(preprocess_tokens(&g), 2040);
    float *patches = xmalloc(preprocess_image_floats(&c, &g), sizeof *patches);
    int64_t start = clock_ns();
    preprocess_image(&c, &im, &g, false, NULL, patches);
    check_note("1920x1080 to 8160 patches in %.0f ms on one thread", clock_ms_since(start));
    free(patches);
    image_free(&im);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the canvas of an image is that of smart_resize, rounded to even; Qwen2.5-VL's coordinates are its "
          "pixels",
          t_sizes),
    CLAIM("resized bytes and patches equal those of the published processor, bit for bit", t_pictures),
    CLAIM("a full screen is preprocessed in a fraction of a second", t_speed),
};

CHECK_MAIN_WITH(, json_decref(golden))
