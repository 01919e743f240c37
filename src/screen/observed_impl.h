/* observed_impl.h - the observation of a screen, and what its files share.  Private to observed*.c. */
#ifndef HOLORUN_SCREEN_OBSERVED_IMPL_H
#define HOLORUN_SCREEN_OBSERVED_IMPL_H

#include "screen/private.h"

enum { OBSERVED_TOPS = 256, OBSERVED_PRESSED = 8 };

struct observed_top { /* a visible child of the root */
    Window id;
    struct screen_rect rect;
};

struct observed_now { /* result of compare_windows() */
    struct observed_top tops[OBSERVED_TOPS];
    int n;
    Window hit;
    int dx, dy; /* movement of the view since the observation */
};

struct observed {
    struct image frame; /* the view, without the pointer */
    struct screen_rect view;
    int64_t taken; /* clock_ns() */
    struct observed_top tops[OBSERVED_TOPS];
    int n;
    Window focus, focus_top; /* as the server has it, None: the pointer's window; the child of the root */
    Window client;           /* the program's window that has the keyboard */
    struct screen_rect client_rect;
    char title[512];
    int held; /* keys that were down */

    /* since then */
    struct observed_aim { /* the place that the pointer was sent to */
        bool valid;
        int x, y;
        Window top;
        struct observed_change change;
    } aim;
    struct observed_press {
        int x, y;
        Window top;
    } pressed[OBSERVED_PRESSED]; /* a ring */
    int n_pressed, presses;      /* own presses of buttons; all, with keys */
    Window typed_into;           /* the focus that keys were last allowed for */
    struct observed_change change;
    struct observed_now now;

    /* from one observation to the next, and before the first: places that change by themselves */
    struct observed_cell {
        int64_t changed, busy; /* clock_ns() of the last change; ... until which it does not count */
        int64_t stopped;       /* last refusal because of it */
        int stops;
        bool differs; /* in the last comparison that refused */
    } * cells;
    int columns, rows;
};

/* The observation to compare with; NULL: there is none. */
struct observed *observed_active(const struct screen *s);
/* Fills o->frame with the last capture; false: that is not possible. */
bool observed_keep_frame(struct screen *s, struct observed *o, const struct image *frame);
/* Whether the pixels around a place differ; waits up to a second to see whether they keep changing.  -1:
 * stopped, or the display is lost. */
int observed_pixels_changed(struct screen *s, const struct observed_now *now, int x, int y, bool *changed,
                            struct err *e);
/* The same just before the press, with the pointer there, without waiting. */
int observed_under_changed(struct screen *s, const struct observed_now *now, int x, int y, bool *changed,
                           struct err *e);
/* Whether more than CONTENT_SHARE of a window's tiles differ. */
bool observed_window_changed(struct screen *s, struct screen_rect r);
/* An event was refused because of the cells that differ; those that refuse repeatedly become busy. */
void observed_note_stop(struct observed *o);

#endif
