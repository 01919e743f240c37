/* window_none.c - the step window of a build without SDL2 or Pango: it cannot be opened (base/feature.h). */
#include "step/step.h"

#include "base/feature.h"

#include <stddef.h>

struct step_front *step_window(const struct window_options *o, struct err *e)
{
    feature_require(FEATURE_WINDOW, e);
    return NULL;
}
