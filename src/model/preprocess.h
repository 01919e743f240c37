/* preprocess.h - converts a screenshot to normalized patches for the vision encoder.
 *
 * Tiling (InternVL's dynamic tiling): of all grids of at most max_tiles tiles, the one whose aspect ratio
 * is closest to the image's; on a tie, the largest for which the image has at least half the pixels. The
 * whole image is resized to the grid without keeping its aspect ratio and cut row by row. If there is more
 * than one tile, a thumbnail tile of the whole image follows.
 *
 * Canvas (dynamic resolution, for models whose config limits the patches of an image): the image's own
 * patch count, scaled into the limits, with both sides made even. The image is resized to that, as one
 * tile.
 *
 * Native (a canvas whose config has "cpe_crop"): the image at its own resolution, scaled down if a side is
 * longer than native_side and up if it is small (image_native_scale). Its edge pixels are repeated up to
 * multiples of two patches.
 *
 * Qwen's models have their own canvas and resizing: preprocess_qwen.h.
 *
 * Resizing: bicubic (a = -0.5), antialiased, half-pixel centres, horizontal pass first, as torchvision
 * resizes a float tensor with antialias: nothing is rounded or clamped. With `round8` both passes are
 * rounded to 8 bits and clamped, as Pillow does for 8-bit images. */
#pragma once

#include "base/image.h"
#include "base/pool.h"
#include "model/config.h"
#include "ops/ops.h"

struct tile_grid {
    int cols, rows;             /* number of tiles */
    int tiles;                  /* cols * rows, plus one for the thumbnail */
    int patch_cols, patch_rows; /* patches of each tile */
};

struct tile_grid preprocess_grid(const struct model_config *c, int w, int h);

/* Copies a native image, enlarged if it is small, with the edge repeated up to the grid of im; the caller
 * frees it. The pool may be NULL. Returns -1 with e. */
int preprocess_native(const struct model_config *c, const struct image *im, struct pool *pool,
                      struct image *out, struct err *e);

/* Return the language tokens of an image, and the floats of its patches. */
int64_t preprocess_tokens(const struct tile_grid *g);
size_t preprocess_image_floats(const struct model_config *c, const struct tile_grid *g);

/* Returns the number of elements of a patch (channel, row, column). */
int preprocess_patch_size(const struct model_config *c);

/* Writes patches [tiles * patch_rows * patch_cols, 3 * patch^2]: (value / 255 - mean) / std in column ch *
 * patch^2 + y * patch + x; the patches of a tile row by row, tiles in order. The pool may be NULL. */
void preprocess_image(const struct model_config *c, const struct image *im, const struct tile_grid *g,
                      bool round8, struct pool *pool, float *patches);

/* Preprocesses on the backend with make_patches, into its memory, and computes a digest of each tile.
 * Returns -1 with e if out of memory. preprocess_work() returns the bytes needed in addition to the
 * patches. */
int preprocess_on(struct backend *b, const struct model_config *c, const struct image *im,
                  const struct tile_grid *g, bool round8, struct tensor patches, uint64_t (*digest)[2],
                  struct err *e);
size_t preprocess_work(const struct model_config *c, int w, int h);
