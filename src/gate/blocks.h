/* blocks.h - a picture in a terminal: two pixels per character cell. */
#ifndef HOLORUN_GATE_BLOCKS_H
#define HOLORUN_GATE_BLOCKS_H

#include "base/image.h"

#include <stdio.h>

/* At most `columns` wide.  Prints nothing when the terminal has fewer than 256 colours or NO_COLOR is set. */
void blocks_print(FILE *f, const struct image *im, int columns);

#endif
