/* xtrap.h - X errors as values.
 *
 * Xlib's default answer to an error is exit().  Here an error is caught around the exact calls it can
 * come from:
 *
 *     struct xtrap t;
 *     xtrap_begin(&t, dpy);
 *     XGetWindowAttributes(dpy, w, &a);
 *     if (xtrap_end(&t)) ...            // X error code, 0 when all went well
 *
 * Traps nest, and belong to the thread that opened them.  An error outside every trap is counted and
 * told once.
 *
 * A lost connection never ends the process either, nor does it touch other displays: every Display of this program is
 * made by xtrap_open(), and fails on its own from then on.
 */
#ifndef HOLORUN_SCREEN_XTRAP_H
#define HOLORUN_SCREEN_XTRAP_H

#include <X11/Xlib.h>
#include <stdatomic.h>
#include <stdbool.h>

struct xtrap {
    Display *dpy;
    int code; /* first error */
    struct xtrap *outer;
};

void xtrap_begin(struct xtrap *t, Display *dpy); /* syncs, so that older errors are not blamed on t */
int xtrap_end(struct xtrap *t);                  /* syncs; returns the first X error code, or 0 */

/* Must be called before the process's first XOpenDisplay: makes Xlib thread-safe, installs handlers. */
void xtrap_setup(void);

/* XOpenDisplay(), but NULL as well when the server dies meanwhile, or does not answer for 10 s (a local one; others
 * would hold up every thread that opens a display).  A connection that is lost later sets *lost. */
Display *xtrap_open(const char *display, atomic_bool *lost);

/* From now on a lost connection sets *lost instead of ending the process. */
void xtrap_watch(Display *dpy, atomic_bool *lost);

#endif
