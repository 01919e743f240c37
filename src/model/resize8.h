/* resize8.h - bicubic resizing of bytes, as PyTorch resizes uint8 images with antialias: bit for bit. */
#ifndef HOLORUN_MODEL_RESIZE8_H
#define HOLORUN_MODEL_RESIZE8_H

#include "base/image.h"
#include "base/pool.h"

/* out [h][w][3], not overlapping the image.  The pool may be NULL. */
void resize8(const struct image *im, int w, int h, struct pool *pool, uint8_t *out);

#endif
