/* print.h - a view as text.  Private to step/. */
#ifndef HOLORUN_STEP_PRINT_H
#define HOLORUN_STEP_PRINT_H

#include "step/step.h"

enum {
    PRINT_COLOR = 1,
    PRINT_MORE = 2
}; /* MORE: also the raw reply, the action as JSON, the whole history */

char *step_describe(const struct action *a); /* for people; the caller frees it */
void step_print(FILE *f, const struct step_view *v, unsigned flags);
void step_print_passed(FILE *f, const struct step_view *v,
                       unsigned flags); /* a step that runs without being asked about: one line */
/* The surroundings of a point of the frame in coloured half blocks, cols x rows characters. */
void step_print_crop(FILE *f, const struct image *frame, int x, int y, int cols, int rows);

#endif
