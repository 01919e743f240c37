/* person.h - a user at a display: keys and mouse through XTEST, for tests of the program's own windows. */
#pragma once

#include <X11/Xlib.h>
#include <stdbool.h>

enum gesture { G_KEY, G_WORDS, G_PRESS, G_MOVE, G_RELEASE, G_CLICK, G_AIM };
struct deed {
    enum gesture what;
    KeySym key;
    const char *words;
    double x, y; /* in units of the scene */
};

#define KEY(k)                                                                                               \
    {                                                                                                        \
        G_KEY, k, NULL, 0, 0                                                                                 \
    }
#define TEXT(w)                                                                                              \
    {                                                                                                        \
        G_WORDS, 0, w, 0, 0                                                                                  \
    }
#define AT(g, x, y)                                                                                          \
    {                                                                                                        \
        g, 0, NULL, x, y                                                                                     \
    }

/* Waits for a window whose title begins with `title`; returns None if it does not appear. person_finds() also
 * returns its position on the root. */
Window person_window(Display *d, const char *title);
bool person_finds(Display *d, const char *title, int *x, int *y);
/* Waits for a step window that has the focus and does not move. */
bool person_is_asked(Display *d, const char *title, int *x, int *y);
void person_does(Display *d, int x0, int y0, const struct deed *a); /* x0, y0: origin of the window */
