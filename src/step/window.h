/* window.h - the step window: a front end (step.h) in SDL.
 *
 * It runs in a thread of its own, so that it is redrawn and Stop works while the model generates and the
 * agent acts; then it shows the last view, dimmed.
 *
 * It must not be in the screenshots.  On the captured display it opens outside the captured view, on
 * another monitor or beside a captured window.  When there is no room, it is hidden while the agent
 * captures and acts, and says so.
 */
#ifndef HOLORUN_STEP_WINDOW_H
#define HOLORUN_STEP_WINDOW_H

#include "step/step.h"

struct window_options {
    const char *display; /* where it opens; NULL: on `captured` */
    const char *captured;
    struct screen_rect view; /* captured part, in root pixels */
    int w, h;                /* pixels; 0: by the display */
};

/* NULL with e: the display cannot be opened. */
struct step_front *step_window(const struct window_options *o, struct err *e);

#endif
