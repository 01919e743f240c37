/* copies.h - where the same characters stand in a picture a second time: the page was scrolled, repeats them
 * on the next line, inverts them under a selection, or prints them in bold.
 */
#ifndef HOLORUN_GATE_COPIES_H
#define HOLORUN_GATE_COPIES_H

#include "base/image.h"

struct copy {
    int x, y; /* of its top left corner */
    int w;    /* as wide as it was found: bold letters need more room */
};

/* All places in im; the caller frees *out.  glyphs: the characters on one background. */
int copies_find(const struct image *im, const struct image *glyphs, struct copy **out);

#endif
