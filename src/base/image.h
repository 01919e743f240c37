/* image.h - the one thing that screen and model share: pixels.
 *
 * RGB, 8 bits a channel, rows packed without padding: pixel (x, y) starts at rgb + 3 * (y * w + x).
 * The owner calls image_free; a borrowed image is passed as const and never kept.
 */
#ifndef HOLORUN_BASE_IMAGE_H
#define HOLORUN_BASE_IMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { IMAGE_MAX_SIDE = 16384, IMAGE_MAX_PIXELS = 64 << 20 };

struct image {
    uint8_t *rgb; /* [h][w][3], owned */
    int w, h;
};

int image_alloc(struct image *im, int w, int h, struct err *e); /* refuses sizes over the limits */
void image_free(struct image *im);                              /* leaves it empty; empty is fine */
int image_copy(struct image *dst, const struct image *src, struct err *e);
uint64_t image_hash(const struct image *im); /* XXH3 of size and pixels */
bool image_equal(const struct image *a, const struct image *b);

/* PNG through libspng: 8-bit RGB out; any PNG in, alpha dropped, limits above enforced. */
int image_read_png(struct image *im, const char *path, struct err *e);
int image_parse_png(struct image *im, const void *data, uint64_t len, struct err *e);
/* The same bytes in memory; the caller frees them. */
int image_encode_png(const struct image *im, void **png, uint64_t *len, struct err *e);
int image_write_png(const struct image *im, const char *path, struct err *e); /* 0600, atomic */

/* Fraction of 32-px tiles whose mean absolute channel difference exceeds `level` (0..255); 1.0 when the sizes
 * differ.  "Did the screen change" is IMAGE_EFFECT_LEVEL: a blinking caret or one typed character stays below. */
#define IMAGE_EFFECT_LEVEL 3.0
double image_tiles_changed(const struct image *a, const struct image *b, double level);

/* b with what is the same in both faded to grey, and the tiles that differ framed; of the size of b.  Sizes that differ:
 * all of b is framed. */
int image_difference(struct image *out, const struct image *a, const struct image *b, double level,
                     struct err *e);

/* Fraction of pixels of which some channel is off by more than `tolerance`; 1.0 when the sizes differ. */
double image_pixels_changed(const struct image *a, const struct image *b, int tolerance);

/* b faded to grey, and those pixels in colour; of images of one size. */
int image_mark_pixels(struct image *out, const struct image *a, const struct image *b, int tolerance,
                      struct err *e);

/* A copy of a part, which lies inside of im. */
int image_crop(struct image *out, const struct image *im, int x, int y, int w, int h, struct err *e);

/* `in` at w x h pixels, no larger than it is: each the mean of those that it covers. */
int image_shrink(struct image *out, const struct image *in, int w, int h, struct err *e);

/* Drawing for overlays and reports; clipped to the image. */
void image_draw_ring(struct image *im, int cx, int cy, int r, int thick, const uint8_t rgb[3]);

#endif
