/* canvas.h - a private X server on which a test draws through a connection of its own, to be looked at
 * by screen.h. */
#ifndef HOLORUN_TESTS_CANVAS_H
#define HOLORUN_TESTS_CANVAS_H

#include "screen/screen.h"
#include "xvfb.h"

#include <X11/Xlib.h>

struct canvas {
    struct xvfb x;
    Display *other;
    Window root;
    GC gc;
};

extern struct err canvas_why; /* of what was refused last */

/* screen, extra: as of xvfb_start; skips the test where there is no Xvfb */
void canvas_open(struct canvas *t, const char *screen, const char *const *extra);
void canvas_close(struct canvas *t);

/* Fails the test when it cannot be opened. */
struct screen *canvas_view(const char *view, bool no_shm, bool cursor);

#endif
