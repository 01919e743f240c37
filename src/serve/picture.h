/* picture.h - pictures of a request: data URLs with a PNG or a JPEG.
 *
 *   data:[type][;parameter ...][;base64],DATA
 *
 * The content decides the format, the type is not read.  Base64 may have white space, the URL-safe
 * alphabet, percent escapes, and padding or none.  Base64 without "data:" is accepted, too.
 * The picture is turned as its EXIF data say (base/image_orient.h) and has the colours that Pillow's
 * convert("RGB") gives it.
 */
#ifndef HOLORUN_SERVE_PICTURE_H
#define HOLORUN_SERVE_PICTURE_H

#include "base/err.h"
#include "base/image.h"

#include <stddef.h>

/* Of one picture: as large as the largest that models of today are given; of the pictures of one turn, which
 * are decoded at once; of all pictures of a request. */
enum { PICTURE_MAX_PIXELS = 17 << 20, MESSAGE_MAX_PIXELS = 128 << 20, REQUEST_MAX_PIXELS = 1 << 30 };

/* Refuses addresses, with ERR_USAGE: the server fetches nothing.  The data are not looked at. */
int picture_check(const char *url, struct err *e);
int picture_decode(const char *url, struct image *out, struct err *e);
/* The same within an effort, which may be NULL: ERR_USAGE when its time is used up, ERR_STOPPED when it is
 * cancelled. */
int picture_decode_within(const char *url, struct effort *w, struct image *out, struct err *e);

/* Reads the size that the decoded picture will have, from its header. */
int picture_size(const char *url, int *w, int *h, struct err *e);
/* Returns width x height from the header; 0 when the data have none, which decoding will refuse. */
int64_t picture_pixels(const char *url);

/* Bytes of base64 text[n]; -1: it is not base64.  out has 3 * n / 4 bytes. */
long base64_decode(const char *text, size_t n, unsigned char *out);

#endif
