/* vision_impl.h - what differs between towers; private to vision*.c.
 *
 *   vision.c         which tiles are computed, their cache, scratch memory
 *   vision_radio.c   C-RADIO's tower
 *   vision_qwen.c    the tower of Qwen3.5 and Qwen3-VL
 *   vision_qwen25.c  Qwen2.5-VL's tower
 */
#ifndef HOLORUN_MODEL_VISION_IMPL_H
#define HOLORUN_MODEL_VISION_IMPL_H

#include "model/vision.h"

struct tower {
    void (*open)(struct vision *v); /* or NULL */
    /* Makes v->position, and what else depends on the size of a canvas.  -1: out of memory. */
    int (*place)(struct vision *v, int rows, int cols, struct err *e);
    /* v->patches to v->x, one block of v->x, v->x to v->rows; of so many tiles. */
    void (*embed)(struct vision *v, int tiles);
    void (*block)(struct vision *v, const struct vit_block *w, int tiles);
    void (*project)(struct vision *v, int tiles);
    bool cut_on_device; /* the backend's make_patches makes its patches, where there is one */
};
extern const struct tower tower_radio, tower_qwen, tower_qwen25;

/* v->rotary for merged cells in v->order, or where that is NULL line by line.  -1: out of memory. */
int vision_make_rotary(struct vision *v, int rows, int cols, struct err *e);

/* The same memory, `by` rows as one. */
static inline struct tensor joined_rows(struct tensor t, int64_t by)
{
    return (struct tensor){t.data, t.dtype, t.rows / by, t.cols * by, t.stride * by};
}

/* The last part of a block, a few rows at a time: x += fc2(act(fc1(u))), or of the gated form where there
 * is a gate.  v->m has as many rows as stay in a processor's cache; on a device all of them. */
void vision_mlp(struct vision *v, const struct vit_block *w, struct tensor x, struct tensor u,
                enum epilogue activation);

/* Allocates t anew, evicting cached tiles while memory is short; the old one is freed even when that fails.
 * */
int vision_replace(struct vision *v, struct tensor *t, enum dtype type, int64_t rows, int64_t cols,
                   struct err *e);

/* Patches and language tokens of a tile, and rows of it in the tower. */
static inline int64_t vision_patches(const struct vision *v)
{
    return (int64_t)v->patch_rows * v->patch_cols;
}

static inline int64_t vision_tokens(const struct vision *v)
{
    return vision_patches(v) / 4;
}

static inline int64_t vision_sequence(const struct vision *v)
{
    return v->weights->prefix.rows + vision_patches(v);
}

#endif
