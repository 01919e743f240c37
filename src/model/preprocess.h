/* preprocess.h - a screenshot into the patches of its tiles.
 *
 * Tiling (InternVL's dynamic tiling): of all grids of at most max_tiles tiles the one whose proportions
 * come closest to the image's is taken, among equals the largest that the image has half the pixels for.
 * The whole image is resized to the grid, proportions not kept, and cut row by row; more than one tile
 * are followed by one of the whole image.
 *
 * Canvas (models whose config limits the patches of an image): the image's own patches, scaled into the
 * limits where they are outside, both sides made even; the image is resized to that, as one tile.
 *
 * Resizing: bicubic (a = -0.5) with the filter widened when it shrinks, half-pixel centres, horizontal
 * pass first: what torchvision does to a float tensor with antialias, nothing rounded or clamped.  With
 * `round8` both passes are rounded to 8 bits and clamped, as Pillow does to an image of bytes.
 */
#ifndef HOLORUN_MODEL_PREPROCESS_H
#define HOLORUN_MODEL_PREPROCESS_H

#include "base/image.h"
#include "base/pool.h"
#include "model/config.h"
#include "ops/ops.h"

struct tile_grid {
    int cols, rows;             /* of tiles */
    int tiles;                  /* cols * rows, and one more for the thumbnail */
    int patch_cols, patch_rows; /* of each */
};

struct tile_grid preprocess_grid(const struct model_config *c, int w, int h);

/* Rows that the language model gets for an image, and floats that its patches need. */
int64_t preprocess_tokens(const struct tile_grid *g);
size_t preprocess_image_floats(const struct model_config *c, const struct tile_grid *g);

/* Numbers in a patch (channel, row, column), and floats that the patches of n tiles need. */
int preprocess_patch_size(const struct model_config *c);
size_t preprocess_floats(const struct model_config *c, int tiles);

/* patches [tiles * patch_rows * patch_cols, 3 * patch^2]: (value / 255 - mean) / std; column ch * patch^2 + y * patch + x;
 * patches of a tile row by row, tiles in order.  The pool may be NULL. */
void preprocess_image(const struct model_config *c, const struct image *im, const struct tile_grid *g,
                      bool round8, struct pool *pool, float *patches);

/* The same by a backend that has the operation `cut`, into its own memory; and a digest of each tile.  -1: there is not
 * enough of it, which is so many bytes beside the patches. */
int preprocess_on(struct backend *b, const struct model_config *c, const struct image *im,
                  const struct tile_grid *g, bool round8, struct tensor patches, uint64_t (*digest)[2],
                  struct err *e);
size_t preprocess_work(const struct model_config *c, int w, int h);

#endif
