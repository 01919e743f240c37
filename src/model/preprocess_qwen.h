/* preprocess_qwen.h - a screenshot to the patches of Qwen's tower; preprocess.c calls these for that family.
 *
 * The picture is stretched to a canvas whose sides are multiples of patch * merge and whose pixels are
 * within the bounds of the config.  A patch holds its pixels as often as the tower has frames (a video
 * would have another frame in each): element ((channel * frames + frame) * patch + y) * patch + x.
 *
 * Patches come block by block: the merge^2 patches that become one row of the language model are neighbours,
 * blocks row by row.
 */
#ifndef HOLORUN_MODEL_PREPROCESS_QWEN_H
#define HOLORUN_MODEL_PREPROCESS_QWEN_H

#include "base/image.h"
#include "base/pool.h"
#include "model/config.h"

/* The sides of the canvas of a picture.  Python's round() is to even, like rint. */
struct canvas_size {
    int w, h;
};
struct canvas_size qwen_canvas(const struct vit_config *v, int w, int h);

/* patches f32 [rows * cols, 3 * frames * patch^2] of a canvas of so many patches. */
void qwen_patches(const struct model_config *c, const struct image *im, int rows, int cols, struct pool *pool,
                  float *patches);

#endif
