/* preprocess_qwen.h - converts a screenshot to the patches of Qwen's vision encoders; called by
 * preprocess.c.
 *
 * The image is stretched to a canvas whose sides are multiples of patch * merge and whose pixel count is
 * within the limits of the config. A patch holds its pixels once per frame (a video would have different
 * frames): element ((channel * frames + frame) * patch + y) * patch + x.
 *
 * Patches are ordered in blocks: the merge^2 patches that become one row of the language model are
 * adjacent, and blocks follow row by row. */
#pragma once

#include "base/image.h"
#include "base/pool.h"
#include "model/config.h"

/* Returns the size of an image's canvas in pixels. Python's round() rounds to even, like rint(). */
struct canvas_size {
    int w, h;
};
struct canvas_size qwen_canvas(const struct vit_config *v, int w, int h);

/* Writes patches f32 [rows * cols, 3 * frames * patch^2] of a canvas of rows x cols patches. */
void qwen_patches(const struct model_config *c, const struct image *im, int rows, int cols, struct pool *pool,
                  float *patches);
