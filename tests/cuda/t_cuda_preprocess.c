/* t_cuda_preprocess.c - tests that patches made on the device, and their cache, equal those of the host bit
 * by bit. */
#include "lab.h"
#include "tiny_check.h"

#include "model/preprocess.h"
#include "src/ops/cuda.h"

#include <math.h>

/* ---- patches --------------------------------------------------------------------------------- */

enum { MOST_TILES = 13 };

static struct model_config config(bool canvas)
{
    struct model_config c = {.vision = true, .max_tiles = lab_between(1, 12), .thumbnail = lab_between(0, 1)};
    c.vit.patch = canvas ? 16 : 8 * lab_between(1, 2);
    c.vit.tile = c.vit.patch * 2 * lab_between(1, 3);
    if (canvas) {
        c.vit.min_patches = 4;
        c.vit.max_patches = lab_between(4, 60);
        c.lm.max_tokens = 4096;
        c.max_tiles = 1;
    }
    for (int i = 0; i < 3; i++) {
        c.mean[i] = (float)check_random(&lab_random);
        c.std[i] = 0.2f + (float)check_random(&lab_random);
    }
    return c;
}

static struct image random_image(int w, int h)
{
    struct image im;
    assert_int_equal(image_alloc(&im, w, h, NULL), 0);
    for (size_t i = 0; i < (size_t)w * (size_t)h * 3; i++)
        im.rgb[i] = (uint8_t)lab_between(0, 255);
    return im;
}

struct cut {
    struct tile_grid grid;
    size_t each;    /* floats per tile */
    float *patches; /* made on the device */
    uint64_t digest[MOST_TILES][2];
};

/* Cuts an image into patches on the host and on the device, and compares them. */
static struct cut cut(struct backend *gpu, const struct model_config *c, const struct image *im, bool round8)
{
    struct cut k = {.grid = preprocess_grid(c, im->w, im->h)};
    size_t floats = preprocess_image_floats(c, &k.grid);
    int64_t size = preprocess_patch_size(c), rows = (int64_t)floats / size;
    float *host = malloc(floats * sizeof *host);
    k.patches = malloc(floats * sizeof *k.patches);
    k.each = floats / (size_t)k.grid.tiles;
    preprocess_image(c, im, &k.grid, round8, NULL, host);
    struct tensor t = gpu->ops->alloc(gpu, DT_F32, rows, size);
    assert_int_equal(preprocess_on(gpu, c, im, &k.grid, round8, t, k.digest, NULL), 0);
    gpu->ops->download(gpu, (struct tensor){k.patches, DT_F32, rows, size, size}, t);
    gpu->ops->free(gpu, &t);
    assert_memory_equal(k.patches, host, floats * sizeof *host);
    free(host);
    return k;
}

/* Checks that digests are equal if and only if patches are; returns the number of equal pairs. */
static int compare_digests(const struct cut *a, const struct cut *b)
{
    int same = 0;
    assert_int_equal(a->each, b->each);
    for (int i = 0; i < a->grid.tiles; i++)
        for (int j = 0; j < b->grid.tiles; j++) {
            bool alike = !memcmp(a->patches + (size_t)i * a->each, b->patches + (size_t)j * b->each,
                                 a->each * sizeof(float));
            assert_int_equal(alike, !memcmp(a->digest[i], b->digest[j], sizeof a->digest[i]));
            same += alike;
        }
    return same;
}

static void t_patches(void **state)
{
    struct backend *gpu = lab_gpu();
    int tiles = 0, same = 0;
    for (int k = 0; k < 36; k++) {
        struct model_config c = config(k % 4 == 3);
        struct image im = random_image(lab_between(1, 160), lab_between(1, 120));
        if (k % 3 == 0) /* a single colour in a part, so that some tiles are equal */
            memset(im.rgb, 90, (size_t)im.w * (size_t)im.h * 3 / 2 / 3 * 3);
        bool round8 = lab_between(0, 1);
        struct cut before = cut(gpu, &c, &im, round8);
        im.rgb[lab_between(0, im.w * im.h * 3 - 1)] ^= (uint8_t)(1 << lab_between(0, 7));
        struct cut after = cut(gpu, &c, &im, round8);
        same += compare_digests(&before, &before) - before.grid.tiles;
        int kept = compare_digests(&before, &after);
        same += kept;
        tiles += before.grid.tiles;
        free(before.patches);
        free(after.patches);
        image_free(&im);
    }
    check_note("%d tiles, %d equal pairs", tiles, same);
    assert_true(same > 0);
    backend_free(gpu);
}

/* The digest changes if numbers of a tile are reordered, or if two are replaced by others with the same
 * sum. */
static void t_digest(void **state)
{
    struct backend *gpu = lab_gpu();
    struct model_config c = config(false);
    c.vit.patch = 16;
    c.vit.tile = 32;
    c.max_tiles = 1;
    struct image im = random_image(32, 32), moved = random_image(32, 32);
    memcpy(moved.rgb, im.rgb + 3, 32 * 32 * 3 - 3);
    memcpy(moved.rgb + 32 * 32 * 3 - 3, im.rgb, 3);
    struct cut a = cut(gpu, &c, &im, false), b = cut(gpu, &c, &moved, false);
    assert_true(a.digest[0][0] != b.digest[0][0] && a.digest[0][1] != b.digest[0][1]);
    assert_true(a.digest[0][0] != a.digest[0][1]);
    free(a.patches);
    free(b.patches);
    image_free(&im);
    image_free(&moved);
    backend_free(gpu);
}

/* ---- a whole model --------------------------------------------------------------------------- */

static void see(struct session *s, const struct image *im)
{
    struct err e = ERR_INIT;
    if (session_append_image(s, im, &e))
        fail_msg("%s", e.text);
}

static void t_cache(void **state)
{
    struct engine *engines[] = {tiny_open_on(&tiny, "cpu", "ref", true),
                                tiny_open_on(&tiny, "cuda", NULL, true),
                                tiny_open_on(&tiny, "cuda", NULL, true)};
    struct image im = tiny_image(192, 128, lab_random), other = tiny_image(192, 128, lab_random + 1);
    struct session_stats st[2][3];
    for (int y = 0; y < 64; y++) /* one common tile */
        memcpy(other.rgb + (size_t)y * 576, im.rgb + (size_t)y * 576, 64 * 3);
    struct session *cold = session_new(engines[2], 1);
    float *all[2];
    int vocab = engine_vocab(engines[0]);
    for (int k = 0; k < 2; k++) {
        struct session *a = session_new(engines[k], 1), *b = session_new(engines[k], 1);
        see(a, &im);
        st[k][0] = session_stats(a);
        see(b, &other);
        st[k][1] = session_stats(b);
        float *logits = malloc((size_t)vocab * sizeof *logits);
        all[k] = memcpy(logits, session_logits(b), (size_t)vocab * sizeof *logits);
        if (k == 1) {
            see(cold, &other);
            assert_memory_equal(session_logits(b), session_logits(cold),
                                (size_t)engine_vocab(engines[1]) * sizeof(float));
        }
        struct image plain = tiny_image(192, 128, 3);
        memset(plain.rgb, 200, 192 * 128 * 3);
        see(a, &plain);
        st[k][2] = session_stats(a);
        image_free(&plain);
        session_free(a);
        session_free(b);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(st[0][i].tiles_computed, st[1][i].tiles_computed);
        assert_int_equal(st[0][i].tiles_cached, st[1][i].tiles_cached);
    }
    double off = 0, size = 0;
    for (int i = 0; i < vocab; i++) {
        off = check_worse(off, fabsf(all[0][i] - all[1][i]));
        size = fmax(size, fabsf(all[0][i]));
    }
    assert_true(off < 1e-4 * size);
    check_note("%d tiles, then %d and %d from the cache, then %d more for one colour",
               (int)st[1][0].tiles_computed, (int)st[1][1].tiles_computed, (int)st[1][1].tiles_cached,
               (int)(st[1][2].tiles_computed - st[1][0].tiles_computed));
    assert_int_equal(st[1][0].tiles_computed, 7);
    assert_int_equal(st[1][1].tiles_cached, 1);
    free(all[0]);
    free(all[1]);
    session_free(cold);
    image_free(&im);
    image_free(&other);
    for (int k = 0; k < 3; k++)
        engine_close(engines[k]);
}

static const struct CMUnitTest tests[] = {
    CLAIM("patches equal those of the host to the bit, and digests are equal where patches are", t_patches),
    CLAIM("a digest depends on the position of each number", t_digest),
    CLAIM("logits equal those of the host; cached tiles have the same bits as computed ones", t_cache),
};

TINY_MAIN(lab_random = check_seed())
