/* window.h - the step window: a front end (step.h) in SDL.
 *
 * It runs in a thread of its own, so that it is drawn again, and Stop works, while the model thinks and the hands move;
 * then it shows the last view, dimmed.
 *
 * It shall not be in the picture that the model sees.  On another display (`display`) it cannot be.  On the same one it
 * stands beside what is captured where there is room, on another monitor or beside a captured window; where there is
 * none it is taken off the screen while the agent looks and acts, and says so.
 */
#ifndef HOLORUN_STEP_WINDOW_H
#define HOLORUN_STEP_WINDOW_H

#include "step/step.h"

struct window_options {
    const char *display; /* where it opens; NULL: `captured` */
    const char *captured;
    struct screen_rect view; /* what is captured of it, in root pixels */
    int w, h;                /* pixels; 0: as the display has room */
};

/* NULL with the reason: no display, one without room for a window. */
struct step_front *step_window(const struct window_options *o, struct err *e);

#endif
