/* preprocess.c - resizes an image and cuts it into normalized patches (preprocess.h).
 *
 * A pixel is four floats (R, G, B and one unused), so that both passes are plain multiply-adds over whole
 * vectors:
 *
 *     across   image row -> floats in [0, 1] -> filtered to the new width, all rows   [h][W][4]
 *     down     for each new row: a weighted sum of some of those rows, normalized and stored into the patches
 *              it crosses
 *
 * Filter taps are computed once per axis. */
#include "model/preprocess.h"

#include "model/preprocess_qwen.h"
#include "model/resize8.h"
#include "ops/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tiles --------------------------------------------------------------------------------------------- */

/* Makes one side even: rounds up if the limit allows it, else down. */
static double even_side(double side, double other, double most)
{
    if (fmod(side, 2) == 0)
        return side;
    return (side + 1) * other <= most ? side + 1 : fmax(2, side - 1);
}

/* Returns the patch grid of an image as the published processor computes it. Python's round() rounds to
 * even, like rint(). */
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

/* Returns the side of a native image in patches, rounded up to an even number. */
static int native_patches(const struct vit_config *v, int side, double scale)
{
    return 2 * (int)ceil(fmax(rint(side * scale), 1) / (2.0 * v->patch));
}

/* Computes the size of a native image with its margin. A small image has already been enlarged; a large
 * one is scaled down later, when its patches are cut, so its margin is in pixels of the original. */
static void native_size(const struct vit_config *v, int *w, int *h)
{
    double scale = image_native_scale(*w, *h, v->native_side), shrink = fmin(scale, 1);
    int cols = native_patches(v, *w, scale), rows = native_patches(v, *h, scale);
    *w = (int)fmax(rint(cols * v->patch / shrink), *w);
    *h = (int)fmax(rint(rows * v->patch / shrink), *h);
}

/* Copies im and repeats its last row and column. */
static void repeat_edge(const struct image *im, struct image *out)
{
    for (int y = 0; y < out->h; y++) {
        const uint8_t *from = im->rgb + 3 * (size_t)im->w * (size_t)(y < im->h ? y : im->h - 1);
        uint8_t *to = out->rgb + 3 * (size_t)out->w * (size_t)y;
        memcpy(to, from, 3 * (size_t)im->w);
        for (int x = im->w; x < out->w; x++)
            memcpy(to + 3 * (size_t)x, from + 3 * (size_t)(im->w - 1), 3);
    }
}

int preprocess_native(const struct model_config *c, const struct image *im, struct pool *pool,
                      struct image *out, struct err *e)
{
    double scale = image_native_scale(im->w, im->h, c->vit.native_side);
    int w = im->w, h = im->h;
    struct image larger = {0};
    native_size(&c->vit, &w, &h);
    if (scale > 1 && image_alloc(&larger, (int)rint(im->w * scale), (int)rint(im->h * scale), e))
        return -1;
    if (larger.rgb)
        resize8(im, larger.w, larger.h, pool, larger.rgb);
    int rc = image_alloc(out, w, h, e);
    if (!rc)
        repeat_edge(larger.rgb ? &larger : im, out);
    image_free(&larger);
    return rc;
}

struct tile_grid preprocess_grid(const struct model_config *c, int w, int h)
{
    if (family_is_qwen(c->family)) {
        struct canvas_size s = qwen_canvas(&c->vit, w, h);
        return (struct tile_grid){1, 1, 1, s.w / c->vit.patch, s.h / c->vit.patch};
    }
    if (c->vit.native_side) {
        double scale = image_native_scale(w, h, c->vit.native_side);
        return (struct tile_grid){1, 1, 1, native_patches(&c->vit, w, scale),
                                  native_patches(&c->vit, h, scale)};
    }
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
    return 3 * c->vit.patch * c->vit.patch * (c->vit.frames ? c->vit.frames : 1);
}

int64_t preprocess_tokens(const struct tile_grid *g)
{
    return (int64_t)g->tiles * g->patch_rows * g->patch_cols / 4;
}

size_t preprocess_image_floats(const struct model_config *c, const struct tile_grid *g)
{
    return (size_t)g->tiles * (size_t)(g->patch_rows * g->patch_cols) * (size_t)preprocess_patch_size(c);
}

/* ---- filter -------------------------------------------------------------------------------------------- */

/* Returns Keys' cubic convolution kernel with a = -1/2. */
static double cubic(double x)
{
    x = fabs(x);
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* Returns v, rounded to f32 if `single`. */
static double rounded(double v, bool single)
{
    return single ? (double)(float)v : v;
}

/* Computes filter taps. single: coordinates are kept in f32, as torch does for float tensors; a centre at
 * 3000 is then off by up to 1e-4 of a pixel, which affects the result. Pillow, and torch for bytes, use
 * f64. */
static struct resize_taps make_taps(int in, int out, bool single)
{
    double step = rounded((double)in / (double)out, single), wide = step > 1 ? step : 1, support = 2 * wide;
    double shrink = rounded(1 / wide, single);
    struct resize_taps t = {.out = out, .most = (int)ceil(2 * support) + 2};
    t.first = xmalloc((unsigned long)out, sizeof *t.first);
    t.count = xmalloc((unsigned long)out, sizeof *t.count);
    t.weight = xcalloc((unsigned long)out * (unsigned long)t.most, sizeof *t.weight);
    for (int o = 0; o < out; o++) {
        double centre = rounded(step * (o + 0.5), single), sum = 0;
        int lo = (int)fmax(0, floor(rounded(centre - support, single) + 0.5)),
            hi = (int)fmin(in, floor(rounded(centre + support, single) + 0.5));
        for (int j = lo; j < hi; j++)
            sum += cubic((rounded(j - centre, single) + 0.5) * shrink);
        for (int j = lo; j < hi; j++)
            t.weight[(size_t)o * (size_t)t.most + (size_t)(j - lo)] =
                (float)(cubic((rounded(j - centre, single) + 0.5) * shrink) / sum);
        t.first[o] = lo;
        t.count[o] = hi - lo;
    }
    return t;
}

static void free_taps(struct resize_taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weight);
}

/* ---- the two passes ------------------------------------------------------------------------------------ */

struct resize {
    const struct picture *p;
    const struct resize_taps *across, *down;
    float value[256]; /* byte / 255 */
    float *wide;      /* [p->h][across->out][4] */
    float *patches;   /* patches of the first tile of this size */
};

/* Rounds to Pillow's 8-bit values, as fractions of 255. */
static void round_row(float *p, int n)
{
    for (int i = 0; i < n; i++) {
        float v = floorf(p[i] * 255.0f + 0.5f);
        p[i] = (v < 0 ? 0 : v > 255 ? 255 : v) / 255.0f;
    }
}

static void across_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct resize *k = arg;
    const struct picture *p = k->p;
    const struct resize_taps *t = k->across;
    autofree float *row = xcalloc((unsigned long)p->w * 4, sizeof *row);
    for (int64_t y = begin; y < end; y++) {
        const uint8_t *rgb = p->rgb + 3 * (size_t)y * (size_t)p->w;
        for (int x = 0; x < p->w; x++)
            for (int ch = 0; ch < 3; ch++)
                row[4 * x + ch] = k->value[rgb[3 * x + ch]];
        float *to = k->wide + (size_t)y * (size_t)t->out * 4;
        for (int o = 0; o < t->out; o++) {
            const float *in = row + (size_t)t->first[o] * 4,
                        *weight = t->weight + (size_t)o * (size_t)t->most;
            float sum[4] = {0};
            for (int j = 0; j < t->count[o]; j++)
                for (int ch = 0; ch < 4; ch++)
                    sum[ch] += weight[j] * in[4 * j + ch];
            memcpy(to + 4 * (size_t)o, sum, sizeof sum);
        }
        if (p->round8)
            round_row(to, t->out * 4);
    }
}

/* Stores one row of the resized image into the patches it crosses. */
static void store_row(const struct resize *k, int y, const float *row)
{
    const struct picture *p = k->p;
    int patch = p->patch, grid = p->tile_w / patch, area = patch * patch;
    for (int x0 = 0; x0 < k->across->out; x0 += patch) {
        int tile = y / p->tile_h * (k->across->out / p->tile_w) + x0 / p->tile_w;
        int line = tile * (p->tile_h / patch) + y % p->tile_h / patch;
        int index = line * grid + x0 % p->tile_w / patch;
        float *to = k->patches + (size_t)index * (size_t)(3 * area) + (size_t)(y % patch * patch);
        for (int ch = 0; ch < 3; ch++) {
            float mean = p->mean[ch], scale = p->scale[ch];
            for (int x = 0; x < patch; x++)
                to[ch * area + x] = (row[4 * (x0 + x) + ch] - mean) * scale;
        }
    }
}

static void down_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct resize *k = arg;
    int n = k->across->out * 4;
    autofree float *row = xmalloc((unsigned long)n, sizeof *row);
    for (int64_t y = begin; y < end; y++) {
        const float *weight = k->down->weight + (size_t)y * (size_t)k->down->most;
        memset(row, 0, (size_t)n * sizeof *row);
        for (int j = 0; j < k->down->count[y]; j++) {
            const float *in = k->wide + (size_t)(k->down->first[y] + j) * (size_t)n;
            for (int i = 0; i < n; i++)
                row[i] += weight[j] * in[i];
        }
        if (k->p->round8)
            round_row(row, n);
        store_row(k, (int)y, row);
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void add_size(struct picture *p, int cols, int rows)
{
    p->size[p->sizes].across = make_taps(p->w, cols * p->tile_w, !p->round8);
    p->size[p->sizes++].down = make_taps(p->h, rows * p->tile_h, !p->round8);
}

static struct picture make_picture(const struct model_config *c, const struct image *im,
                                   const struct tile_grid *g, bool round8)
{
    struct picture p = {.rgb = im->rgb, .w = im->w, .h = im->h, .round8 = round8, .patch = c->vit.patch};
    p.tile_w = g->patch_cols * c->vit.patch;
    p.tile_h = g->patch_rows * c->vit.patch;
    for (int ch = 0; ch < 3; ch++) {
        p.mean[ch] = c->mean[ch];
        p.scale[ch] = 1.0f / c->std[ch];
    }
    add_size(&p, g->cols, g->rows);
    if (g->tiles > g->cols * g->rows)
        add_size(&p, 1, 1);
    return p;
}

static void free_picture(struct picture *p)
{
    for (int i = 0; i < p->sizes; i++) {
        free_taps(&p->size[i].across);
        free_taps(&p->size[i].down);
    }
}

void preprocess_image(const struct model_config *c, const struct image *im, const struct tile_grid *g,
                      bool round8, struct pool *pool, float *patches)
{
    if (family_is_qwen(c->family)) {
        qwen_patches(c, im, g->patch_rows, g->patch_cols, pool, patches);
        return;
    }
    struct picture p = make_picture(c, im, g, round8);
    struct resize k = {.p = &p, .patches = patches};
    for (int i = 0; i < 256; i++)
        k.value[i] = (float)i / 255.0f;
    for (int i = 0; i < p.sizes; i++) {
        k.across = &p.size[i].across;
        k.down = &p.size[i].down;
        k.wide = xmalloc((unsigned long)p.h * (unsigned long)k.across->out * 4, sizeof *k.wide);
        pool_for(pool, p.h, 16, across_rows, &k);
        pool_for(pool, k.down->out, 16, down_rows, &k);
        free(k.wide);
        k.patches += (size_t)k.across->out * (size_t)k.down->out * 3;
    }
    free_picture(&p);
}

int preprocess_on(struct backend *b, const struct model_config *c, const struct image *im,
                  const struct tile_grid *g, bool round8, struct tensor patches, uint64_t (*digest)[2],
                  struct err *e)
{
    struct picture p = make_picture(c, im, g, round8);
    int rc = b->ops->make_patches(b, patches, digest, &p, e);
    free_picture(&p);
    return rc;
}

size_t preprocess_work(const struct model_config *c, int w, int h)
{
    struct tile_grid g = preprocess_grid(c, w, h);
    if (c->vit.native_side)
        native_size(&c->vit, &w, &h);
    struct picture p = make_picture(c, &(struct image){.w = w, .h = h}, &g, false);
    size_t bytes = work_picture(&p, g.tiles);
    free_picture(&p);
    return bytes;
}
