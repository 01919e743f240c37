/* observed_impl.h - the observation of a screen and functions shared by observed*.c. */
#pragma once

#include "screen/private.h"

enum { OBSERVED_PRESSED = 8 };

struct observed_now { /* result of compare_windows() */
    struct screen_top tops[SCREEN_TOPS];
    int n;
    unsigned long hit;
    int dx, dy; /* movement of the view since the observation */
};

struct observed {
    struct image frame; /* the view without the pointer */
    struct screen_rect view;
    int64_t taken; /* clock_ns() */
    struct screen_top tops[SCREEN_TOPS];
    int n;
    /* input focus, 0: the window under the pointer; the top-level window that receives keys */
    unsigned long focus, focus_top;
    unsigned long client; /* focused application window */
    struct screen_rect client_rect;
    char title[512];
    int held; /* number of keys that were down */

    /* since the observation */
    struct observed_aim { /* the position to which the pointer was sent */
        bool valid;
        int x, y;
        unsigned long top;
        struct observed_change change;
    } aim;
    struct observed_press {
        int x, y;
        unsigned long top;
    } pressed[OBSERVED_PRESSED]; /* ring buffer */
    int n_pressed, presses;      /* button presses; all presses including keys */
    unsigned long typed_into;    /* focus for which keys were last allowed */
    struct observed_change change;
    struct observed_now now;

    /* kept across observations, and present before the first: areas that change by themselves */
    struct observed_cell {
        int64_t changed, busy; /* clock_ns() of the last change; of the end of the busy time */
        int64_t stopped;       /* clock_ns() of the last refusal because of this cell */
        int stops;
        int times;    /* changes in a row during one settling */
        bool differs; /* in the last comparison that refused an event */
    } * cells;
    int columns, rows;
    int64_t learns_since; /* clock_ns() of the last observed_begin_learning() */
};

/* Returns the observation to compare with, or NULL. */
struct observed *observed_active(const struct screen *s);
/* Fills o->frame with the last screenshot. Returns false if that is not possible. */
bool observed_keep_frame(struct screen *s, struct observed *o, const struct image *frame);
/* Returns in *changed whether the pixels around a position differ. Monitors a difference for up to 4 s
 * (WATCH_MS, then CLOCK_MS for a clock). Returns -1 with e if stopped or the display is lost. */
int observed_pixels_changed(struct screen *s, const struct observed_now *now, int x, int y, bool *changed,
                            struct err *e);
/* Checks just before the press, with the pointer at the target, without waiting. */
int observed_under_changed(struct screen *s, const struct observed_now *now, int x, int y, bool *changed,
                           struct err *e);
/* Returns whether more than content_share (30 %) of a window's tiles differ. */
bool observed_window_changed(struct screen *s, struct screen_rect r);
/* Returns whether the pixel of the root is in an area that changes by itself at this time (clock_ns()). */
bool observed_busy_at(const struct observed *o, int x, int y, int64_t time);
/* Notes that an event was refused because of the differing cells; cells that refuse repeatedly become
 * busy. */
void observed_note_stop(struct observed *o);
