/* xtrap.h - traps: X errors as return values.
 *
 * Xlib's default error handler calls exit(). A trap catches the errors of the calls inside it:
 *
 *     struct xtrap t;
 *     xtrap_begin(&t, dpy);
 *     XGetWindowAttributes(dpy, w, &a);
 *     if (xtrap_end(&t)) ...            // X error code, 0 if there was none
 *
 * Traps can be nested and belong to the thread that opened them. The first error outside of all traps is
 * reported as a warning.
 *
 * A lost connection does not end the process either and does not affect other displays: every Display of this
 * program is created by xtrap_open(). */
#pragma once

#include <X11/Xlib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct xtrap {
    Display *dpy;
    unsigned long since; /* serial number of the first request inside */
    int code;            /* first error */
    struct xtrap *outer;
};

/* Errors of earlier requests are not attributed to t. */
void xtrap_begin(struct xtrap *t, Display *dpy);
/* Returns the first X error code, or 0. Syncs unless the last request has been answered. */
int xtrap_end(struct xtrap *t);

/* Makes Xlib thread-safe and installs the handlers. Call it before the first XOpenDisplay of the process. */
void xtrap_setup(void);

/* Opens a display like XOpenDisplay(). Also returns NULL if the server dies meanwhile or a local server does
 * not answer for 10 s (it would block every thread that opens a display). A local server that denies access
 * causes no message on stderr. A later loss of the connection sets *lost. */
Display *xtrap_open(const char *display, atomic_bool *lost);

/* Returns whether a local display accepts this MIT cookie (n 0: none), without Xlib: 1 yes, 0 no or no answer
 * within ms, -1 not local or no server. An accepted connection stays open until xtrap_open() has its own,
 * because a server without clients resets. */
int xtrap_knock(const char *display, const void *cookie, size_t n, int ms);
/* Returns the user id of a local display's server; -1: not local, or no server. The server is not
 * contacted. */
long xtrap_owner(const char *display);

/* Closes a display like XCloseDisplay(); of a lost display only the socket, because libXext queries the
 * server during the close and without a reply uses a pointer that it has freed. */
void xtrap_close(Display *dpy, const atomic_bool *lost);

/* Calls fn(arg), which queries the extensions of a display. Returns XTRAP_LOST at once if the connection is
 * lost meanwhile, because libXi and libXext continue with data that they have not read and damage memory. fn
 * must not hold a lock. */
enum { XTRAP_LOST = -2 };
int xtrap_asking(int (*fn)(void *), void *arg);

/* Reports that a display was lost before it was fully open: libXext's lists are damaged, so from now on no
 * display of this process is closed completely. */
void xtrap_half_open(void);

/* Makes a lost connection set *lost instead of ending the process. */
void xtrap_watch(Display *dpy, atomic_bool *lost);
