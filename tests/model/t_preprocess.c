/* t_preprocess.c - tests of tiling, resizing and patches. */
#include "check.h"

#include "base/clock.h"
#include "model/preprocess.h"

#include <math.h>

static size_t tile_floats(const struct model_config *c, int tiles)
{
    return (size_t)tiles * (size_t)c->vit.tile * (size_t)c->vit.tile * 3;
}

static struct model_config config(int tile, int max_tiles)
{
    struct model_config c = {.vision = true, .max_tiles = max_tiles, .thumbnail = true};
    c.vit.tile = tile;
    c.vit.patch = 16;
    for (int i = 0; i < 3; i++) {
        c.mean[i] = 0.1f * (float)(i + 3);
        c.std[i] = 0.25f + 0.01f * (float)i;
    }
    return c;
}

static void t_grid(void **state)
{
    static const struct {
        int w, h, cols, rows, tiles;
    } known[] = {
        {1920, 1080, 4, 2, 9},  {2560, 1440, 4, 2, 9}, {3840, 2160, 4, 2, 9},  {1600, 900, 4, 2, 9},
        {1536, 864, 4, 2, 9},   {1366, 768, 4, 2, 9},  {1280, 720, 2, 1, 3},   {1920, 1200, 3, 2, 7},
        {1440, 900, 3, 2, 7},   {1280, 800, 3, 2, 7},  {2880, 1800, 3, 2, 7},  {1024, 768, 4, 3, 13},
        {800, 600, 4, 3, 13},   {640, 480, 4, 3, 13},  {1280, 1024, 4, 3, 13}, {2048, 1536, 4, 3, 13},
        {1080, 1920, 2, 4, 9},  {390, 844, 1, 2, 3},   {512, 512, 1, 1, 1},    {300, 300, 1, 1, 1},
        {725, 725, 2, 2, 5},    {1024, 1024, 2, 2, 5}, {481, 202, 5, 2, 11},   {1178, 1779, 2, 3, 7},
        {100, 1300, 1, 12, 13},
    };
    struct model_config c = config(512, 12);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct tile_grid g = preprocess_grid(&c, known[i].w, known[i].h);
        if (g.cols != known[i].cols || g.rows != known[i].rows || g.tiles != known[i].tiles)
            printf("%dx%d gives %dx%d, %d tiles\n", known[i].w, known[i].h, g.cols, g.rows, g.tiles);
        assert_int_equal(g.cols, known[i].cols);
        assert_int_equal(g.rows, known[i].rows);
        assert_int_equal(g.tiles, known[i].tiles);
    }
    c.max_tiles = 1;
    assert_int_equal(preprocess_grid(&c, 640, 480).tiles, 1);
    c.max_tiles = 12;
    c.thumbnail = false;
    assert_int_equal(preprocess_grid(&c, 1920, 1080).tiles, 8);
}

static void fill(struct image *im, int w, int h, uint64_t seed)
{
    assert_int_equal(image_alloc(im, w, h, NULL), 0);
    for (size_t i = 0; i < (size_t)w * (size_t)h * 3; i++)
        im->rgb[i] = (uint8_t)(check_random(&seed) * 256);
}

/* Computes the filter from its definition, in double precision, one output at a time. */
static double keys(double x)
{
    x = fabs(x);
    if (x < 1)
        return 1.5 * x * x * x - 2.5 * x * x + 1;
    return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

static double sample(const struct image *im, int ch, int ox, int oy, int w, int h)
{
    double sx = (double)im->w / w, sy = (double)im->h / h, fx = fmax(sx, 1), fy = fmax(sy, 1);
    double cx = (ox + 0.5) * sx, cy = (oy + 0.5) * sy, sum = 0, weights = 0;
    for (int y = 0; y < im->h; y++) {
        for (int x = 0; x < im->w; x++) {
            double k = keys((x + 0.5 - cx) / fx) * keys((y + 0.5 - cy) / fy);
            sum += k * im->rgb[3 * (y * im->w + x) + ch] / 255.0;
            weights += k;
        }
    }
    return sum / weights;
}

/* Returns the index of (tile, ch, y, x) in the patches. */
static size_t place(const struct model_config *c, int tile, int ch, int y, int x)
{
    int side = c->vit.tile, grid = side / 16;
    return ((size_t)(tile * grid * grid + y / 16 * grid + x / 16) * 3 + (size_t)ch) * 256 +
           (size_t)(y % 16 * 16 + x % 16);
}

static void make_patches(const struct model_config *c, const struct image *im, bool round8, struct pool *pool,
                         float *patches)
{
    struct tile_grid g = preprocess_grid(c, im->w, im->h);
    preprocess_image(c, im, &g, round8, pool, patches);
}

static void check_size(int w, int h, const struct model_config *c)
{
    struct image im;
    fill(&im, w, h, check_seed() + (uint64_t)w);
    struct tile_grid g = preprocess_grid(c, w, h);
    float *p = malloc(tile_floats(c, g.tiles) * sizeof *p);
    preprocess_image(c, &im, &g, false, NULL, p);
    uint64_t rng = check_seed();
    double worst = 0;
    int side = c->vit.tile;
    for (int i = 0; i < 300; i++) {
        int tile = (int)(check_random(&rng) * g.tiles), ch = i % 3;
        int x = (int)(check_random(&rng) * side), y = (int)(check_random(&rng) * side);
        bool thumb = tile == g.cols * g.rows;
        int ox = thumb ? x : tile % g.cols * side + x, oy = thumb ? y : tile / g.cols * side + y;
        double want = sample(&im, ch, ox, oy, thumb ? side : g.cols * side, thumb ? side : g.rows * side);
        want = (want - c->mean[ch]) / c->std[ch];
        worst = check_worse(worst, fabs(want - p[place(c, tile, ch, y, x)]));
    }
    check_note("%dx%d to %dx%d tiles: worst difference %.1e", w, h, g.cols, g.rows, worst);
    assert_true(worst < 2e-5);
    free(p);
    image_free(&im);
}

static void t_resize(void **state)
{
    struct model_config c = config(32, 12);
    check_size(40, 30, &c);
    check_size(7, 5, &c);
    check_size(1, 1, &c);
    check_size(200, 90, &c);
    check_size(33, 150, &c);
    check_size(64, 64, &c);
}

static void t_identity(void **state)
{
    struct model_config c = config(64, 1);
    struct image im;
    fill(&im, 64, 64, check_seed());
    float *p = malloc(tile_floats(&c, 1) * sizeof *p), *q = malloc(tile_floats(&c, 1) * sizeof *q);
    make_patches(&c, &im, false, NULL, p);
    make_patches(&c, &im, true, NULL, q);
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++)
            for (int ch = 0; ch < 3; ch++) {
                float want = ((float)im.rgb[3 * (y * 64 + x) + ch] / 255.0f - c.mean[ch]) / c.std[ch];
                assert_true(fabsf(want - p[place(&c, 0, ch, y, x)]) < 1e-5f);
                assert_true(fabsf(want - q[place(&c, 0, ch, y, x)]) < 1e-5f);
            }
    free(p);
    free(q);
    image_free(&im);
}

/* A 5x4 image enlarged to 32x32 and a 48x40 one reduced, by Pillow 13.0.0
 * (tests/reference/pillow_resize.py): the sum of all bytes, and some of them. */
static void t_pillow(void **state)
{
    static const struct {
        int w, h;
        long sum;
        int at[6][4]; /* x, y, channel, byte */
    } cases[] = {
        {5,
         4,
         373902,
         {{0, 0, 0, 0}, {31, 31, 2, 81}, {5, 17, 1, 91}, {16, 16, 0, 255}, {30, 2, 1, 255}, {9, 26, 2, 170}}},
        {48,
         40,
         389965,
         {{0, 0, 0, 25},
          {31, 31, 2, 54},
          {5, 17, 1, 129},
          {16, 16, 0, 144},
          {30, 2, 1, 144},
          {9, 26, 2, 123}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_config c = config(32, 1);
        struct image im;
        assert_int_equal(image_alloc(&im, cases[i].w, cases[i].h, NULL), 0);
        for (int k = 0; k < im.w * im.h * 3; k++)
            im.rgb[k] = (uint8_t)((k * 73 + k * k * 11) % 256);
        float *p = malloc(tile_floats(&c, 1) * sizeof *p);
        make_patches(&c, &im, true, NULL, p);
        long sum = 0;
        for (int k = 0; k < 32 * 32 * 3; k++) {
            int ch = k % 3, x = k / 3 % 32, y = k / 96;
            sum += lrintf((p[place(&c, 0, ch, y, x)] * c.std[ch] + c.mean[ch]) * 255.0f);
        }
        for (int k = 0; k < 6; k++) {
            const int *a = cases[i].at[k];
            long byte = lrintf((p[place(&c, 0, a[2], a[1], a[0])] * c.std[a[2]] + c.mean[a[2]]) * 255.0f);
            assert_true(labs(byte - a[3]) <= 1); /* Pillow's weights have 22 bits */
        }
        check_note("%dx%d: sum of bytes %ld, Pillow's %ld", im.w, im.h, sum, cases[i].sum);
        assert_true(labs(sum - cases[i].sum) <= 6);
        free(p);
        image_free(&im);
    }
}

static void t_threads(void **state)
{
    struct model_config c = config(512, 12);
    struct image im;
    fill(&im, 640, 480, check_seed());
    c.max_tiles = 1;
    size_t n = tile_floats(&c, 1);
    float *p = malloc(n * sizeof *p), *q = malloc(n * sizeof *q);
    struct pool *pool = pool_new(3);
    make_patches(&c, &im, false, NULL, p);
    make_patches(&c, &im, false, pool, q);
    assert_memory_equal(p, q, n * sizeof *p);
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        int64_t start = clock_ns();
        make_patches(&c, &im, false, NULL, p);
        best = fmin(best, clock_ms_since(start));
    }
    check_note("640x480 to one tile of 512: %.2f ms on one thread", best);
    pool_free(pool);
    free(p);
    free(q);
    image_free(&im);
}

static const struct CMUnitTest tests[] = {
    CLAIM("every screen size gets the published grid of tiles", t_grid),
    CLAIM("resized tiles equal the filter's definition, tile by tile, thumbnail last", t_resize),
    CLAIM("a tile that needs no resizing does not change, in the order of patches", t_identity),
    CLAIM("the 8-bit variant gives Pillow's bytes", t_pillow),
    CLAIM("the number of threads changes nothing", t_threads),
};

CHECK_MAIN()
