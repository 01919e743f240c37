/* picture.h - pictures of a request: data URLs with a PNG or a JPEG. */
#ifndef HOLORUN_SERVE_PICTURE_H
#define HOLORUN_SERVE_PICTURE_H

#include "base/err.h"
#include "base/image.h"

#include <stddef.h>

/* Of one picture: as large as the largest that models of today are given. */
enum { PICTURE_MAX_PIXELS = 17 << 20, MESSAGE_MAX_PIXELS = 128 << 20 };

/* "data:image/png;base64,..." or "data:image/jpeg;base64,...".  Addresses are refused: the server fetches
 * nothing. */
int picture_check(const char *url, struct err *e);
int picture_decode(const char *url, struct image *out, struct err *e);

/* Bytes of base64 text[n], with or without padding at its end; -1: it is none.  out has 3 * n / 4 bytes. */
long base64_decode(const char *text, size_t n, unsigned char *out);

#endif
