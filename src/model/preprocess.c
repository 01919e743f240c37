/* preprocess.c - see preprocess.h.
 *
 * A pixel travels as four floats (R, G, B and one that is not used), so that both passes are plain
 * multiply-adds over whole vectors:
 *   across   image row -> floats in [0, 1] -> filtered to the new width, all rows   [h][W][4]
 *   down     for each new row: a weighted sum of some of those rows, then normalised and dealt out to
 *            the patches it crosses
 * Filter taps are computed once for each axis.
 */
#include "model/preprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tiles ------------------------------------------------------------------------------------------ */

/* Makes one side even: up where the limit allows it, else down. */
static double even_side(double side, double other, double most)
{
    if (fmod(side, 2) == 0)
        return side;
    return (side + 1) * other <= most ? side + 1 : fmax(2, side - 1);
}

/* The patches of an image, as the published processor counts them: Python's round() is to even, like rint. */
static struct tile_grid canvas(const struct model_config *c, int w, int h)
{
    double least = c->vit.min_patches, patch = c->vit.patch, most = 4.0 * (c->lm.max_tokens - 4.0);
    most = fmax(fmin(fmax(most, least), c->vit.max_patches), least);
    double rows = rint(h / patch + 0.5), cols = rint(w / patch + 0.5);
    double factor = fmin(sqrt(most / (rows * cols)), 1);
    rows = fmax(floor(factor * rows), 1);
    cols = fmax(floor(factor * cols), 1);
    if (most > least && rows * cols < least) {
        factor = sqrt(least / (rows * cols));
        rows = ceil(factor * rows);
        cols = ceil(factor * cols);
    }
    rows = even_side(rows, cols, most);
    cols = even_side(cols, rows, most);
    return (struct tile_grid){1, 1, 1, (int)cols, (int)rows};
}

struct tile_grid preprocess_grid(const struct model_config *c, int w, int h)
{
    if (c->vit.max_patches)
        return canvas(c, w, h);
    double ratio = (double)w / (double)h, best = INFINITY, area = (double)w * (double)h;
    double half_tile = 0.5 * c->vit.tile * c->vit.tile;
    int grid = config_grid(c);
    struct tile_grid g = {1, 1, 1, grid, grid};
    for (int n = 1; n <= c->max_tiles; n++) {
        for (int cols = 1; cols <= n; cols++) {
            if (n % cols)
                continue;
            int rows = n / cols;
            double diff = fabs(ratio - (double)cols / (double)rows);
            if (diff < best || (diff == best && area > half_tile * n)) {
                best = diff;
                g = (struct tile_grid){cols, rows, n + (n > 1 && c->thumbnail), grid, grid};
            }
        }
    }
    return g;
}

int preprocess_patch_size(const struct model_config *c)
{
    return 3 * c->vit.patch * c->vit.patch;
}

int64_t preprocess_tokens(const struct tile_grid *g)
{
    return (int64_t)g->tiles * g->patch_rows * g->patch_cols / 4;
}

size_t preprocess_image_floats(const struct model_config *c, const struct tile_grid *g)
{
    return (size_t)g->tiles * (size_t)(g->patch_rows * g->patch_cols) * (size_t)preprocess_patch_size(c);
}

size_t preprocess_floats(const struct model_config *c, int tiles)
{
    return (size_t)tiles * (size_t)c->vit.tile * (size_t)c->vit.tile * 3;
}

/* ---- filter ------------------------------------------------------------------------------------------- */

struct taps { /* out[o] = sum_k weight[o * most + k] * in[first[o] + k], k < count[o] */
    int most;
    int *first, *count;
    float *weight;
};

/* Keys' cubic convolution kernel with a = -1/2. */
static double cubic(double x)
{
    x = fabs(x);
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* A number as it is once it has been stored in f32, when it is. */
static double kept(double v, bool single)
{
    return single ? (double)(float)v : v;
}

/* single: coordinates are kept in f32, as torch does when it resizes floats; a centre at 3000 is then off by
 * up to 1e-4 of a pixel, which shows in the result.  Pillow, and torch for bytes, keep them in f64. */
static struct taps make_taps(int in, int out, bool single)
{
    double step = kept((double)in / (double)out, single), wide = step > 1 ? step : 1, support = 2 * wide;
    double narrow = kept(1 / wide, single);
    struct taps t = {.most = (int)ceil(2 * support) + 2};
    t.first = xmalloc((unsigned long)out, sizeof *t.first);
    t.count = xmalloc((unsigned long)out, sizeof *t.count);
    t.weight = xcalloc((unsigned long)out * (unsigned long)t.most, sizeof *t.weight);
    for (int o = 0; o < out; o++) {
        double centre = kept(step * (o + 0.5), single), sum = 0;
        int lo = (int)fmax(0, floor(kept(centre - support, single) + 0.5)),
            hi = (int)fmin(in, floor(kept(centre + support, single) + 0.5));
        for (int j = lo; j < hi; j++)
            sum += cubic((kept(j - centre, single) + 0.5) * narrow);
        for (int j = lo; j < hi; j++)
            t.weight[(size_t)o * (size_t)t.most + (size_t)(j - lo)] =
                (float)(cubic((kept(j - centre, single) + 0.5) * narrow) / sum);
        t.first[o] = lo;
        t.count[o] = hi - lo;
    }
    return t;
}

static void free_taps(struct taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weight);
}

/* ---- the two passes -------------------------------------------------------------------------------------- */

struct job {
    const struct model_config *c;
    const struct image *im;
    bool round8;
    int tile_w, tile_h; /* in pixels */
    int w, h;           /* new size: so many tiles */
    struct taps across, down;
    float value[256]; /* byte / 255 */
    float *wide;      /* [im->h][w][4] */
    float *patches;   /* of the first tile */
};

/* Rounds to the bytes Pillow would keep, as fractions of 255. */
static void round_row(float *p, int n)
{
    for (int i = 0; i < n; i++) {
        float v = floorf(p[i] * 255.0f + 0.5f);
        p[i] = (v < 0 ? 0 : v > 255 ? 255 : v) / 255.0f;
    }
}

static void across_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct job *k = arg;
    const struct taps *t = &k->across;
    float *row = xcalloc((unsigned long)k->im->w * 4, sizeof *row);
    for (int64_t y = begin; y < end; y++) {
        const uint8_t *rgb = k->im->rgb + 3 * (size_t)y * (size_t)k->im->w;
        for (int x = 0; x < k->im->w; x++)
            for (int ch = 0; ch < 3; ch++)
                row[4 * x + ch] = k->value[rgb[3 * x + ch]];
        float *to = k->wide + (size_t)y * (size_t)k->w * 4;
        for (int o = 0; o < k->w; o++) {
            const float *in = row + (size_t)t->first[o] * 4,
                        *weight = t->weight + (size_t)o * (size_t)t->most;
            float sum[4] = {0};
            for (int j = 0; j < t->count[o]; j++)
                for (int ch = 0; ch < 4; ch++)
                    sum[ch] += weight[j] * in[4 * j + ch];
            memcpy(to + 4 * (size_t)o, sum, sizeof sum);
        }
        if (k->round8)
            round_row(to, k->w * 4);
    }
    free(row);
}

/* One row of the new image to the patches of the tiles it crosses. */
static void deal_row(const struct job *k, int y, const float *row)
{
    const struct model_config *c = k->c;
    int patch = c->vit.patch, grid = k->tile_w / patch, area = patch * patch;
    for (int x0 = 0; x0 < k->w; x0 += patch) {
        int tile = y / k->tile_h * (k->w / k->tile_w) + x0 / k->tile_w;
        int line = tile * (k->tile_h / patch) + y % k->tile_h / patch;
        int index = line * grid + x0 % k->tile_w / patch;
        float *to = k->patches + (size_t)index * (size_t)(3 * area) + (size_t)(y % patch * patch);
        for (int ch = 0; ch < 3; ch++) {
            float mean = c->mean[ch], scale = 1.0f / c->std[ch];
            for (int x = 0; x < patch; x++)
                to[ch * area + x] = (row[4 * (x0 + x) + ch] - mean) * scale;
        }
    }
}

static void down_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct job *k = arg;
    int n = k->w * 4;
    float *row = xmalloc((unsigned long)n, sizeof *row);
    for (int64_t y = begin; y < end; y++) {
        const float *weight = k->down.weight + (size_t)y * (size_t)k->down.most;
        memset(row, 0, (size_t)n * sizeof *row);
        for (int j = 0; j < k->down.count[y]; j++) {
            const float *in = k->wide + (size_t)(k->down.first[y] + j) * (size_t)n;
            for (int i = 0; i < n; i++)
                row[i] += weight[j] * in[i];
        }
        if (k->round8)
            round_row(row, n);
        deal_row(k, (int)y, row);
    }
    free(row);
}

/* The image resized to cols x rows tiles. */
static void resize_tiles(struct job *k, int cols, int rows, struct pool *pool)
{
    k->w = cols * k->tile_w;
    k->h = rows * k->tile_h;
    k->across = make_taps(k->im->w, k->w, !k->round8);
    k->down = make_taps(k->im->h, k->h, !k->round8);
    k->wide = xmalloc((unsigned long)k->im->h * (unsigned long)k->w * 4, sizeof *k->wide);
    pool_for(pool, k->im->h, 16, across_rows, k);
    pool_for(pool, k->h, 16, down_rows, k);
    free(k->wide);
    free_taps(&k->across);
    free_taps(&k->down);
}

void preprocess_image(const struct model_config *c, const struct image *im, bool round8, struct pool *pool,
                      float *patches)
{
    struct tile_grid g = preprocess_grid(c, im->w, im->h);
    struct job k = {.c = c, .im = im, .round8 = round8, .patches = patches};
    k.tile_w = g.patch_cols * c->vit.patch;
    k.tile_h = g.patch_rows * c->vit.patch;
    for (int i = 0; i < 256; i++)
        k.value[i] = (float)i / 255.0f;
    resize_tiles(&k, g.cols, g.rows, pool);
    if (g.tiles > g.cols * g.rows) {
        k.patches = patches + preprocess_floats(c, g.cols * g.rows);
        resize_tiles(&k, 1, 1, pool);
    }
}
