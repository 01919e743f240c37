/* preprocess_qwen.c - canvas and patches of Qwen's vision encoders (preprocess_qwen.h). */
#include "model/preprocess_qwen.h"

#include "model/resize8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct canvas_size qwen_canvas(const struct vit_config *v, int w, int h)
{
    double cell = (double)v->patch * v->merge, most = v->max_pixels, least = v->min_pixels;
    double high = rint(h / cell) * cell, wide = rint(w / cell) * cell;
    if (high * wide > most) {
        double shrink = sqrt((double)h * w / most);
        high = fmax(cell, floor(h / shrink / cell) * cell);
        wide = fmax(cell, floor(w / shrink / cell) * cell);
    } else if (high * wide < least) {
        double grow = sqrt(least / ((double)h * w));
        high = ceil(h * grow / cell) * cell;
        wide = ceil(w * grow / cell) * cell;
    }
    return (struct canvas_size){(int)wide, (int)high};
}

struct cut { /* the task of cutting a canvas into patches */
    const struct vit_config *v;
    const uint8_t *rgb;
    int cols; /* patches per row */
    float value[3][256];
    float *patches;
};

static void cut_patch(const struct cut *k, int row, int col, float *to)
{
    int patch = k->v->patch;
    size_t line = 3 * (size_t)k->cols * (size_t)patch, area = (size_t)patch * (size_t)patch;
    const uint8_t *from = k->rgb + (size_t)row * (size_t)patch * line + 3 * (size_t)col * (size_t)patch;
    for (int ch = 0; ch < 3; ch++) {
        float *first = to;
        for (int y = 0; y < patch; y++)
            for (int x = 0; x < patch; x++)
                *to++ = k->value[ch][from[(size_t)y * line + 3 * (size_t)x + (size_t)ch]];
        for (int frame = 1; frame < k->v->frames; frame++, to += area)
            memcpy(to, first, area * sizeof *to);
    }
}

/* Cuts rows of blocks. */
static void cut_blocks(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct cut *k = arg;
    int merge = k->v->merge, blocks = k->cols / merge;
    size_t size = 3 * (size_t)k->v->frames * (size_t)k->v->patch * (size_t)k->v->patch;
    float *to = k->patches + (size_t)begin * (size_t)(merge * k->cols) * size;
    for (int64_t row = begin; row < end; row++)
        for (int block = 0; block < blocks; block++)
            for (int i = 0; i < merge * merge; i++, to += size)
                cut_patch(k, (int)row * merge + i / merge, block * merge + i % merge, to);
}

void qwen_patches(const struct model_config *c, const struct image *im, int rows, int cols, struct pool *pool,
                  float *patches)
{
    struct cut k = {.v = &c->vit, .cols = cols, .patches = patches};
    int w = cols * c->vit.patch, h = rows * c->vit.patch;
    autofree uint8_t *canvas = xmalloc(3 * (unsigned long)w, (unsigned long)h);
    resize8(im, w, h, pool, canvas);
    k.rgb = canvas;
    for (int ch = 0; ch < 3; ch++)
        for (int i = 0; i < 256; i++)
            k.value[ch][i] = ((float)i - c->mean[ch] * 255) / (c->std[ch] * 255);
    pool_for(pool, rows / c->vit.merge, 1, cut_blocks, &k);
}
