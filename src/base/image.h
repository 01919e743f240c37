/* image.h - RGB images, 8 bits per channel, rows without padding: pixel (x, y) starts at rgb + 3 * (y * w
 * + x).
 *
 * The owner calls image_free(); a borrowed image is const and never stored. */
#pragma once

#include "base/effort.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_MAX_SIDE = 16384, IMAGE_MAX_PIXELS = 64 << 20, IMAGE_TILE = 32 /* side of a tile */ };

struct image {
    uint8_t *rgb; /* [h][w][3], owned */
    int w, h;
};

int image_alloc(struct image *im, int w, int h, struct err *e); /* fails beyond the limits above */
void image_free(struct image *im);                              /* leaves it empty; an empty image is
                                                                 * allowed */
int image_copy(struct image *dst, const struct image *src, struct err *e);
uint64_t image_hash(const struct image *im); /* XXH3 of size and pixels */
bool image_equal(const struct image *a, const struct image *b);

/* Returns the three bytes of a pixel. */
static inline uint8_t *image_at(const struct image *im, int x, int y)
{
    return im->rgb + 3 * ((size_t)y * (size_t)im->w + (size_t)x);
}

struct image_limits {
    int64_t pixels;        /* checked before memory is allocated; 0: IMAGE_MAX_PIXELS */
    struct effort *effort; /* CPU time limit of decoding; may be NULL */
};

/* Reads the size from the header of a PNG or JPEG, without decoding. Returns -1 with ERR_ENV for other or
 * damaged data. */
int image_size(const void *data, size_t len, uint32_t *w, uint32_t *h, struct err *e);

/* Read PNG with libspng: any PNG as 8-bit RGB, without alpha, within the limits above. Ancillary chunks
 * are skipped, because a small colour profile or text can unpack to 128 MiB. */
int image_read_png(struct image *im, const char *path, struct err *e);
int image_parse_png(struct image *im, const void *data, uint64_t len, struct err *e);
int image_parse_png_within(struct image *im, const void *data, uint64_t len, const struct image_limits *l,
                           struct err *e);
/* Read JPEG with libjpeg (image_jpeg.c), within the same limits; CMYK is converted like Pillow's
 * convert("RGB"). */
int image_parse_jpeg(struct image *im, const void *data, uint64_t len, struct err *e);
int image_parse_jpeg_within(struct image *im, const void *data, uint64_t len, const struct image_limits *l,
                            struct err *e);
/* Returns the size from the frame header of a JPEG; false if it has none. */
bool image_jpeg_size(const uint8_t *jpeg, size_t n, uint32_t *w, uint32_t *h);
/* Returns the format of a file by its first bytes: "PNG", "JPEG", "GIF", ...; NULL: unknown. */
const char *image_format(const char *data, size_t len);
/* Encodes a PNG into memory that the caller frees. */
int image_encode_png(const struct image *im, void **png, uint64_t *len, struct err *e);
int image_write_png(const struct image *im, const char *path, struct err *e); /* mode 0600, atomic */

/* Returns the fraction of 32-px tiles whose mean absolute channel difference exceeds `level` (0..255); 1.0
 * if the sizes differ. IMAGE_EFFECT_LEVEL detects a screen change: a blinking caret or one typed character
 * stays below it. */
#define IMAGE_EFFECT_LEVEL 3.0
double image_tiles_changed(const struct image *a, const struct image *b, double level);
/* Returns the mean absolute channel difference of one tile of two images of the same size. */
double image_tile_difference(const struct image *a, const struct image *b, int tx, int ty);

/* Copies b with equal tiles faded to grey and different tiles framed; all are framed if the sizes differ. */
int image_difference(struct image *out, const struct image *a, const struct image *b, double level,
                     struct err *e);

/* Returns the fraction of pixels in which a channel differs by more than `tolerance`; 1.0 if the sizes
 * differ. */
double image_pixels_changed(const struct image *a, const struct image *b, int tolerance);

/* Copies b faded to grey with those pixels marked; the sizes must be equal. */
int image_mark_pixels(struct image *out, const struct image *a, const struct image *b, int tolerance,
                      struct err *e);

/* Copies a rectangle, which must lie inside im. */
int image_crop(struct image *out, const struct image *im, int x, int y, int w, int h, struct err *e);

/* Scales down to w x h: each pixel is the mean of the pixels it covers. */
int image_shrink(struct image *out, const struct image *in, int w, int h, struct err *e);

/* Returns the scale at which a native image (model/preprocess.h) is encoded: below 1 if a side is longer
 * than `side`; 1.5 if the enlarged image has at most 640 x 480 pixels, because small type is read better
 * enlarged; else 1. */
double image_native_scale(int w, int h, int side);

/* Draws a ring for overlays and reports, clipped to the image. */
void image_draw_ring(struct image *im, int cx, int cy, int r, int thick, const uint8_t rgb[3]);
