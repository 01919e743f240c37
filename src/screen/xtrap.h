/* xtrap.h - X errors as values.
 *
 * Xlib's default error handler calls exit().  A trap catches the errors of the calls inside it:
 *
 *     struct xtrap t;
 *     xtrap_begin(&t, dpy);
 *     XGetWindowAttributes(dpy, w, &a);
 *     if (xtrap_end(&t)) ...            // X error code, 0 when all went well
 *
 * Traps nest, and belong to the thread that opened them.  The first error outside every trap is reported.
 *
 * A lost connection does not end the process either, and affects no other display: every Display of this
 * program is made by xtrap_open().
 */
#ifndef HOLORUN_SCREEN_XTRAP_H
#define HOLORUN_SCREEN_XTRAP_H

#include <X11/Xlib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct xtrap {
    Display *dpy;
    int code; /* first error */
    struct xtrap *outer;
};

void xtrap_begin(struct xtrap *t, Display *dpy); /* syncs, so that older errors are not blamed on t */
int xtrap_end(struct xtrap *t);                  /* syncs; returns the first X error code, or 0 */

/* Makes Xlib thread-safe and installs the handlers; before the process's first XOpenDisplay. */
void xtrap_setup(void);

/* XOpenDisplay(), but NULL also when the server dies meanwhile or a local server does not answer for 10
 * s (it would block every thread that opens a display); a refusing local server costs no line on stderr.
 * A connection that is lost later sets *lost. */
Display *xtrap_open(const char *display, atomic_bool *lost);

/* Whether a local display lets in who has this MIT cookie (n 0: none), asked without Xlib: 1, 0 (also: no
 * answer within ms), -1: not local, or no server.  A connection that was let in stays until xtrap_open() has
 * one: a server without clients begins anew. */
int xtrap_knock(const char *display, const void *cookie, size_t n, int ms);
/* The user of a local display's server; -1: not local, or no server.  It notices nothing. */
long xtrap_owner(const char *display);

/* XCloseDisplay(), but of a lost display only the socket: libXext asks the server while it closes, and
 * without an answer follows a pointer that it has freed. */
void xtrap_close(Display *dpy, const atomic_bool *lost);

/* fn(arg), which asks a display for its extensions: when the connection is lost meanwhile, XTRAP_LOST at
 * once, for libXi and libXext go on with what they have not read, and damage memory.  fn must not hold a
 * lock. */
enum { XTRAP_LOST = -2 };
int xtrap_asking(int (*fn)(void *), void *arg);

/* A display was lost before it was fully open: libXext's lists are damaged, and from now on no display of
 * this process is closed in full. */
void xtrap_half_open(void);

/* From now on losing the connection sets *lost instead of ending the process. */
void xtrap_watch(Display *dpy, atomic_bool *lost);

#endif
