/* vision_impl.h - interface of the vision encoders; private to vision*.c.
 *
 *   vision.c         which tiles are computed, their cache, scratch memory
 *   vision_radio.c   C-RADIO's tower
 *   vision_qwen.c    the tower of Qwen3.5 and Qwen3-VL
 *   vision_qwen25.c  Qwen2.5-VL's tower
 */
#pragma once

#include "model/vision.h"

struct tower {
    void (*open)(struct vision *v); /* may be NULL */
    /* Computes v->position and whatever else depends on the size of a canvas. Returns -1 with e if out of
     * memory. */
    int (*place)(struct vision *v, int rows, int cols, struct err *e);
    /* The three stages for `tiles` tiles: v->patches to v->x, one block of v->x, v->x to v->rows. */
    void (*embed)(struct vision *v, int tiles);
    void (*block)(struct vision *v, const struct vit_block *w, int tiles);
    void (*project)(struct vision *v, int tiles);
    bool cut_on_device; /* make_patches of the backend, if available, makes its patches */
};
extern const struct tower tower_radio, tower_qwen, tower_qwen25;

/* Computes v->rotary for merged cells in the order of v->order, or line by line if that is NULL. Returns
 * -1 with e if out of memory. */
int vision_make_rotary(struct vision *v, int rows, int cols, struct err *e);

/* Returns a view of the same memory in which `by` rows are one. */
static inline struct tensor joined_rows(struct tensor t, int64_t by)
{
    return (struct tensor){t.data, t.dtype, t.rows / by, t.cols * by, t.stride * by};
}

/* Computes the MLP of a block, v->m.rows rows at a time: x += fc2(act(fc1(u))), or the gated form if the
 * block has a gate. On a CPU v->m has as many rows as stay in cache, on a device all. */
void vision_mlp(struct vision *v, const struct vit_block *w, struct tensor x, struct tensor u,
                enum epilogue activation);

/* Reallocates t, evicting cached tiles while memory is short; the old tensor is freed even if that fails.
 * Returns -1 with e. */
int vision_replace(struct vision *v, struct tensor *t, enum dtype type, int64_t rows, int64_t cols,
                   struct err *e);

/* Return the patches and language tokens of a tile, and its rows in the encoder. */
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
