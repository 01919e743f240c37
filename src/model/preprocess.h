/* preprocess.h - a screenshot to normalised patches of its tiles.
 *
 * Tiling (InternVL's dynamic tiling): of all grids of at most max_tiles tiles, the one whose aspect
 * ratio is closest to the image's; among equals the largest for which the image has half the pixels. The
 * whole image is resized to the grid, aspect ratio not kept, and cut row by row; more than one tile are
 * followed by a thumbnail tile of the whole image.
 *
 * Canvas (dynamic resolution, for models whose config limits the patches of an image): the image's own
 * patch count, scaled into the limits, both sides made even; the image is resized to that, as one tile.
 *
 * Native (a canvas whose config says "cpe_crop"): the image at its own pixels, scaled down when a side is
 * longer than native_side, and up when it is small (image_native_scale); its edge pixels are repeated up to
 * multiples of two patches.
 *
 * Qwen's models have a canvas and a way of resizing of their own: preprocess_qwen.h.
 *
 * Resizing: bicubic (a = -0.5), antialiased, half-pixel centres, horizontal pass first: what torchvision
 * does to a float tensor with antialias, nothing rounded or clamped.  With `round8` both passes are
 * rounded to 8 bits and clamped, as Pillow does to 8-bit images.
 */
#ifndef HOLORUN_MODEL_PREPROCESS_H
#define HOLORUN_MODEL_PREPROCESS_H

#include "base/image.h"
#include "base/pool.h"
#include "model/config.h"
#include "ops/ops.h"

struct tile_grid {
    int cols, rows;             /* of tiles */
    int tiles;                  /* cols * rows, plus one for the thumbnail */
    int patch_cols, patch_rows; /* of each tile */
};

struct tile_grid preprocess_grid(const struct model_config *c, int w, int h);

/* For native pictures: a copy, enlarged if it is small, with the edge repeated up to what the grid of im
 * covers; the caller frees it.  The pool may be NULL. */
int preprocess_native(const struct model_config *c, const struct image *im, struct pool *pool,
                      struct image *out, struct err *e);

/* Language tokens of an image, and floats of its patches. */
int64_t preprocess_tokens(const struct tile_grid *g);
size_t preprocess_image_floats(const struct model_config *c, const struct tile_grid *g);

/* Elements of a patch (channel, row, column). */
int preprocess_patch_size(const struct model_config *c);

/* patches [tiles * patch_rows * patch_cols, 3 * patch^2]: (value / 255 - mean) / std; column ch *
 * patch^2 + y * patch + x; patches of a tile row by row, tiles in order.  The pool may be NULL. */
void preprocess_image(const struct model_config *c, const struct image *im, const struct tile_grid *g,
                      bool round8, struct pool *pool, float *patches);

/* The same with the backend's make_patches, into its memory, and a digest of each tile.  -1: out of
 * memory; preprocess_work is what it takes beside the patches. */
int preprocess_on(struct backend *b, const struct model_config *c, const struct image *im,
                  const struct tile_grid *g, bool round8, struct tensor patches, uint64_t (*digest)[2],
                  struct err *e);
size_t preprocess_work(const struct model_config *c, int w, int h);

#endif
