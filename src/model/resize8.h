/* resize8.h - bicubic resizing of 8-bit images, bit-identical to PyTorch's for uint8 tensors with
 * antialias. */
#pragma once

#include "base/image.h"
#include "base/pool.h"

/* Resizes im to out [h][w][3], which must not overlap it. The pool may be NULL. */
void resize8(const struct image *im, int w, int h, struct pool *pool, uint8_t *out);
