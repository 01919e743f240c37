/* arena.h - a display with programs that would do harm with what they get: a terminal, a browser, a launcher; and an
 * actor that moves the keyboard, answers for selections and writes down who got keys.
 */
#ifndef HOLORUN_TESTS_ARENA_H
#define HOLORUN_TESTS_ARENA_H

#include "screen/screen.h"
#include "xvfb.h"

#include <X11/Xlib.h>
#include <pthread.h>

enum arena_window { EDITOR, BROWSER, PANEL, LAUNCHER, DIALOG, ARENA_WINDOWS };

struct arena {
    struct xvfb x;
    struct screen *s;
    pthread_t actor;
    pthread_mutex_t lock; /* of all below; the actor's connection too */
    Display *dpy;
    bool ends;
    Window of[ARENA_WINDOWS];
    Window terminal, disguised; /* xterm, and one that calls itself an editor */
    int keys[ARENA_WINDOWS];
    char *primary, *clipboard;
    Window press_gives_to; /* a press in PANEL moves the keyboard there */
    int keys_left;         /* until the next one, in any window of ours, does ... */
    Window then_focus;     /* ... this, */
    bool then_launch;      /* ... or this */
};

enum { ARENA_W = 1280, ARENA_H = 800 };

void arena_open(struct arena *a); /* skips the test where Xvfb or xterm is missing */
void arena_close(struct arena *a);
/* Nothing is selected, the launcher and the dialog are away, nobody has got anything, and the window has the keyboard. */
void arena_reset(struct arena *a, Window focus);
/* Texts are copied; NULL: nobody owns it. */
void arena_select(struct arena *a, const char *primary, const char *clipboard);
void arena_show(struct arena *a, enum arena_window w, bool yes);
void arena_title(struct arena *a, enum arena_window w, const char *title);
void arena_focus(struct arena *a, Window w);
/* Whether the terminals or the launcher have got any character; waits a little. */
bool arena_harmed(struct arena *a);
/* The middle of a window. */
void arena_middle(struct arena *a, Window w, int *x, int *y);

#endif
