/* print.h - a view as text.  Private to step/. */
#ifndef HOLORUN_STEP_PRINT_H
#define HOLORUN_STEP_PRINT_H

#include "step/step.h"

enum {
    PRINT_COLOR = 1,
    PRINT_MORE = 2
}; /* more: the reply as it came, the action in JSON, all that is known */

void step_print(FILE *f, const struct step_view *v, unsigned flags);
void step_print_passed(FILE *f, const struct step_view *v,
                       unsigned flags); /* a step nobody is asked about: a line */
/* The surroundings of a place in the frame, in coloured half blocks: cols x rows characters. */
void step_print_crop(FILE *f, const struct image *frame, int x, int y, int cols, int rows);

#endif
