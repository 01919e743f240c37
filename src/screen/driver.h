/* driver.h - which process drives a display, as the X server itself knows it.
 *
 * The process that presses keys on a display owns the selection _HOLORUN_DRIVER there, with a window whose
 * property of the same name says who it is.  Two spellings of a display, two runtime folders or two machines
 * meet at the server, and the server takes the selection back when its owner's connection ends.
 */
#ifndef HOLORUN_SCREEN_DRIVER_H
#define HOLORUN_SCREEN_DRIVER_H

#include "base/err.h"

#include <X11/Xlib.h>
#include <stdint.h>
#include <sys/types.h>

struct driver {
    pid_t pid;
    uint64_t born;   /* start time of the process in clock ticks since boot */
    char where[128]; /* machine and process namespace: its id means something only there */
};

/* Takes the display for this connection, unless *own says that it has it.  -1: another process has it. */
int driver_take(Display *dpy, const char *display, Window *own, struct err *e);

/* The driver of a display: 1, and `here` whether it runs where this process does; 0: none, or no such
 * display. */
int driver_find(const char *display, struct driver *out, bool *here);

uint64_t driver_born(pid_t pid); /* start time of a process; 0: there is none */

#endif
