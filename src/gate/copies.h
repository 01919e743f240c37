/* copies.h - finds further occurrences of the same text in an image: after scrolling, on the next line,
 * inverted by a selection, or in bold. */
#pragma once

#include "base/image.h"

struct copy {
    int x, y; /* top left corner */
    int w;    /* width as found: bold letters are wider */
};

/* Finds all occurrences in im. Returns their number; the caller frees *out. glyphs: the characters on one
 * background colour. */
int copies_find(const struct image *im, const struct image *glyphs, struct copy **out);
