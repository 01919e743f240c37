/* picture.h - images of a request: data URLs with a PNG or JPEG file.
 *
 *   data:[type][;parameter ...][;base64],DATA
 *
 * The content determines the format; the type is ignored. Base64 may have white space, the URL-safe alphabet,
 * percent escapes, and padding or none. Base64 without "data:" is accepted, too. The image is rotated
 * according to its EXIF data (base/image_orient.h) and has the colours of Pillow's convert("RGB"). */
#pragma once

#include "base/err.h"
#include "base/image.h"

#include <stddef.h>

/* maximum pixels of one image (the largest size that current models get); of the images of one turn, which
 * are decoded at the same time; of all images of a request */
enum { PICTURE_MAX_PIXELS = 17 << 20, MESSAGE_MAX_PIXELS = 128 << 20, REQUEST_MAX_PIXELS = 1 << 30 };

/* Rejects URLs other than data URLs with ERR_USAGE: the server does not fetch them. The data are not
 * checked. */
int picture_check(const char *url, struct err *e);
/* Decodes an image within a CPU budget, which may be NULL. Returns -1 with ERR_USAGE if the budget is
 * exhausted, ERR_STOPPED if it is cancelled. */
int picture_decode(const char *url, struct effort *w, struct image *out, struct err *e);

/* Reads the size of the decoded image from its header. Returns -1 with e. */
int picture_size(const char *url, int *w, int *h, struct err *e);
/* Returns width x height from the header; 0 if the header has no valid size, so that decoding will fail. */
int64_t picture_pixels(const char *url);

/* Decodes base64 text[n] into out, which has 3 * n / 4 bytes. Returns the number of bytes, or -1 if the text
 * is not base64. */
long base64_decode(const char *text, size_t n, unsigned char *out);
