/* image.h - RGB images, 8 bits a channel, rows without padding: pixel (x, y) starts at rgb + 3 * (y * w + x).
 *
 * The owner calls image_free; a borrowed image is const and never stored.
 */
#ifndef HOLORUN_BASE_IMAGE_H
#define HOLORUN_BASE_IMAGE_H

#include "base/effort.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_MAX_SIDE = 16384, IMAGE_MAX_PIXELS = 64 << 20 };

struct image {
    uint8_t *rgb; /* [h][w][3], owned */
    int w, h;
};

int image_alloc(struct image *im, int w, int h, struct err *e); /* refuses sizes over the limits */
void image_free(struct image *im);                              /* leaves it empty; an empty one is fine */
int image_copy(struct image *dst, const struct image *src, struct err *e);
uint64_t image_hash(const struct image *im); /* XXH3 of size and pixels */
bool image_equal(const struct image *a, const struct image *b);

/* Returns the three bytes of a pixel. */
static inline uint8_t *image_at(const struct image *im, int x, int y)
{
    return im->rgb + 3 * ((size_t)y * (size_t)im->w + (size_t)x);
}

struct image_limits {
    int64_t pixels;        /* checked before the pixels get memory; 0: IMAGE_MAX_PIXELS */
    struct effort *effort; /* CPU time of decoding; may be NULL */
};

/* Reads the size from the header of a PNG or JPEG, without decoding.  ERR_ENV for other or damaged data. */
int image_size(const void *data, size_t len, uint32_t *w, uint32_t *h, struct err *e);

/* PNG by libspng: reads any PNG as 8-bit RGB, without alpha, within the limits above.  Ancillary chunks are
 * skipped, because a small colour profile or text can unpack to 128 MiB. */
int image_read_png(struct image *im, const char *path, struct err *e);
int image_parse_png(struct image *im, const void *data, uint64_t len, struct err *e);
int image_parse_png_within(struct image *im, const void *data, uint64_t len, const struct image_limits *l,
                           struct err *e);
/* JPEG by libjpeg (image_jpeg.c), within the same limits; CMYK as Pillow's convert("RGB") has it. */
int image_parse_jpeg(struct image *im, const void *data, uint64_t len, struct err *e);
int image_parse_jpeg_within(struct image *im, const void *data, uint64_t len, const struct image_limits *l,
                            struct err *e);
/* Returns the size that the frame header of a JPEG gives; false without one. */
bool image_jpeg_size(const uint8_t *jpeg, size_t n, uint32_t *w, uint32_t *h);
/* The format of a file by its first bytes, "PNG", "JPEG", "GIF", ...; NULL: unknown. */
const char *image_format(const char *data, size_t len);
/* Encodes into memory that the caller frees. */
int image_encode_png(const struct image *im, void **png, uint64_t *len, struct err *e);
int image_write_png(const struct image *im, const char *path, struct err *e); /* 0600, atomic */

/* Fraction of 32-px tiles whose mean absolute channel difference exceeds `level` (0..255); 1.0 when the
 * sizes differ.  "Did the screen change" is IMAGE_EFFECT_LEVEL: a blinking caret or one typed character
 * stays below. */
#define IMAGE_EFFECT_LEVEL 3.0
double image_tiles_changed(const struct image *a, const struct image *b, double level);

/* b with equal tiles faded to grey and different tiles framed; all are framed when the sizes differ. */
int image_difference(struct image *out, const struct image *a, const struct image *b, double level,
                     struct err *e);

/* Fraction of pixels with a channel that differs by more than `tolerance`; 1.0 when the sizes differ. */
double image_pixels_changed(const struct image *a, const struct image *b, int tolerance);

/* b faded to grey with those pixels marked; the sizes must be equal. */
int image_mark_pixels(struct image *out, const struct image *a, const struct image *b, int tolerance,
                      struct err *e);

/* A copy of a rectangle, which must lie inside im. */
int image_crop(struct image *out, const struct image *im, int x, int y, int w, int h, struct err *e);

/* Scales down to w x h: each pixel is the mean of those it covers. */
int image_shrink(struct image *out, const struct image *in, int w, int h, struct err *e);

/* Pixels that a model of native pictures sees for one of a picture: below 1 where a side is longer than
 * `side`, 1.5 where what it then sees has at most 640 x 480: small type is read better enlarged. */
double image_native_scale(int w, int h, int side);

/* Drawing for overlays and reports; clipped to the image. */
void image_draw_ring(struct image *im, int cx, int cy, int r, int thick, const uint8_t rgb[3]);

#endif
