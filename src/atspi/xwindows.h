/* xwindows.h - windows of an X display and their processes, through XCB.
 *
 * The child process of elements.c uses it: after fork() the locks of Xlib may be held by another thread. */
#pragma once

#include "screen/screen.h"

#include <stdbool.h>
#include <stdint.h>

enum { XWINDOWS_MAX = 128 };

struct xwindow {
    uint32_t id;
    int pid; /* 0: unknown */
    char title[256];
    struct screen_rect rect, frame; /* in root pixels; frame: with the window manager's frame */
    struct screen_rect inner;       /* rect without the shadow that GTK programs draw (_GTK_FRAME_EXTENTS) */
    bool popup;                     /* bypasses the window manager */
    bool active;
};

struct xdisplay;

/* Connects to a display; NULL: $DISPLAY. Returns NULL if that is not possible. */
struct xdisplay *xdisplay_open(const char *name);
/* Reads the address of the accessibility bus that belongs to the display; "": none. */
void xdisplay_bus(struct xdisplay *x, char *out, size_t size);
/* Lists the visible windows of programs, topmost first; at most one is active. Returns their number. */
int xdisplay_windows(struct xdisplay *x, struct xwindow out[XWINDOWS_MAX]);
