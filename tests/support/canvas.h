/* canvas.h - private X server on which a test draws through its own connection and reads back through
 * screen.h.
 */
#pragma once

#include "screen/screen.h"
#include "xvfb.h"

#include <X11/Xlib.h>

struct canvas {
    struct xvfb x;
    Display *other;
    Window root;
    GC gc;
};

extern struct err canvas_why; /* reason of the last failure */

/* Parameters as in xvfb_start(); skips the test without Xvfb. */
void canvas_open(struct canvas *t, const char *screen, const char *const *extra);
void canvas_close(struct canvas *t);

/* Opens a screen; fails the test on an error. */
struct screen *canvas_view(const char *view, bool no_shm, bool cursor);
