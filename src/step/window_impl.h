/* window_impl.h - placement of the step window, and the input focus that it shares with the agent; private to
 * step/window*.c and step/focus.c.
 *
 * The step window takes the focus when it asks and returns it before the agent acts: the agent types into the
 * window that had the focus in the screenshot. Uses _NET_ACTIVE_WINDOW with a window manager, otherwise
 * XSetInputFocus. */
#pragma once

#include "step/step.h"

#include <SDL.h>
#include <cairo.h>

enum { WIDTH = 1280, HEIGHT = 820, WIDTH_MIN = 640, HEIGHT_MIN = 400 };

/* Returns the rectangle to open in: on the captured display (same_display) the largest free side of a
 * monitor, otherwise a monitor. *covers: no side is free, and the window overlaps the view. */
SDL_Rect window_place(const struct window_options *o, bool same_display, bool *covers);

/* outcome of the run, drawn over the last view */
struct outcome_box {
    const char *head, *text;
    bool pressed, seen; /* a key or button was pressed in the window, and released */
    int64_t shown;      /* clock_ns() */
};
struct scene;
void outcome_draw(const struct outcome_box *o, const struct scene *s, cairo_surface_t *on);
/* Handles an event: the outcome counts as seen after a press and its release, so that no key reaches the next
 * window. */
void outcome_event(struct outcome_box *o, const SDL_Event *ev);

/* Opens its own connection to `display`. Returns NULL if that fails, which the other functions accept. */
struct focus *focus_open(const char *display);
void focus_close(struct focus *f);
/* Stores the focused window, unless it is `ours`. */
void focus_remember(struct focus *f, unsigned long ours);
void focus_take(struct focus *f, unsigned long ours); /* Focuses `ours`, which must be mapped. */
/* Focuses the stored window and waits up to 500 ms until it has the focus. */
void focus_give_back(struct focus *f, unsigned long ours);
