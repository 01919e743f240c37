/* window_impl.h - sizes and placement of the step window; private to step/window*.c. */
#ifndef HOLORUN_STEP_WINDOW_IMPL_H
#define HOLORUN_STEP_WINDOW_IMPL_H

#include "step/window.h"

#include <SDL.h>

enum {
    WIDTH = 1280,
    HEIGHT = 820,
    WIDTH_MIN = 760,
    HEIGHT_MIN = 520,
    WAIT_MS = 20,
    HIDE_MS = 120,
    GONE_MS = 2000
};

/* The rectangle to open in: on the captured display (same_display) the largest free side of a monitor,
 * else a monitor. *covers: there is no such side, and the window lies over the view. */
SDL_Rect window_place(const struct window_options *o, bool same_display, bool *covers);

#endif
