/* arena.h - X server with windows in which stray input does harm (terminal, browser, launcher, dialog).
 *
 * A thread, the actor, moves the focus, owns both selections and counts the key events of each window.
 */
#pragma once

#include "screen/screen.h"
#include "xvfb.h"

#include <X11/Xlib.h>
#include <pthread.h>

enum arena_window { EDITOR, BROWSER, PANEL, LAUNCHER, DIALOG, ARENA_WINDOWS };

struct arena {
    struct xvfb x;
    struct screen *s;
    pthread_t actor;
    pthread_mutex_t lock; /* guards all members below, and the actor's connection */
    Display *dpy;
    bool ends;
    Window of[ARENA_WINDOWS];
    Window terminal, disguised; /* xterm, and one with the class of an editor */
    int keys[ARENA_WINDOWS];
    char *primary, *clipboard;
    Window press_gives_to; /* a press in PANEL sets the focus to it */
    int keys_left;         /* key events, in any of these windows, until ... */
    Window then_focus;     /* ... the focus is set to it */
    bool then_launch;      /* ... or the launcher opens */
};

enum { ARENA_W = 1280, ARENA_H = 800 };

void arena_open(struct arena *a); /* skips the test if Xvfb or xterm is missing */
void arena_close(struct arena *a);
/* Clears the selections, hides launcher and dialog, resets all counters and sets the focus. */
void arena_reset(struct arena *a, Window focus);
/* Sets the selections; copies the texts. NULL: no owner. */
void arena_select(struct arena *a, const char *primary, const char *clipboard);
void arena_show(struct arena *a, enum arena_window w, bool yes);
void arena_title(struct arena *a, enum arena_window w, const char *title);
void arena_focus(struct arena *a, Window w);
/* Returns whether a terminal or the launcher has got input within 160 ms. */
bool arena_harmed(struct arena *a);
/* Returns the centre of a window on the root. */
void arena_middle(struct arena *a, Window w, int *x, int *y);
