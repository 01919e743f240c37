/* reading.h - text on a screen, read line by line by the embedded model. */
#pragma once

#include "base/buf.h"
#include "base/image.h"

#include <stdbool.h>

/* Returns a text with single spaces for all white space, none at its ends; the caller frees it. */
char *reading_normalize(const char *text);

/* Searches a screen for a normalized text, and sets *found if one of its lines contains it.
 * Appends to *lines the lines that were read before that, up to 400 bytes and separated by " | ".  The model
 * overlooks and misreads lines, so *found = false proves nothing.  cancel may be NULL.  Returns -1 with e. */
int pocket_read_screen(const struct image *screen, const char *text, const volatile int *cancel, bool *found,
                       struct buf *lines, struct err *e);
