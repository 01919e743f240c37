/* window_impl.h - placement of the step window, and the input focus that it shares with the agent;
 * private to step/window*.c and step/focus.c.
 *
 * The step window takes the focus when it asks, and gives it back before the agent acts: the agent types
 * into the window that had the focus in the screenshot.  Uses _NET_ACTIVE_WINDOW with a window manager,
 * else XSetInputFocus.
 */
#ifndef HOLORUN_STEP_WINDOW_IMPL_H
#define HOLORUN_STEP_WINDOW_IMPL_H

#include "step/step.h"

#include <SDL.h>
#include <cairo.h>

enum { WIDTH = 1280, HEIGHT = 820, WIDTH_MIN = 640, HEIGHT_MIN = 400 };

/* The rectangle to open in: on the captured display (same_display) the largest free side of a monitor,
 * else a monitor. *covers: there is no such side, and the window lies over the view. */
SDL_Rect window_place(const struct window_options *o, bool same_display, bool *covers);

/* The outcome of the run, shown over the last view. */
struct outcome_box {
    const char *head, *text;
    bool pressed, seen; /* a key or button went down in the window, and up again */
    int64_t shown;      /* clock_ns() */
};
struct scene;
void outcome_draw(const struct outcome_box *o, const struct scene *s, cairo_surface_t *on);
/* Handles an event: the person has seen the outcome after a press and its release, so that no key reaches the
 * next window. */
void outcome_event(struct outcome_box *o, const SDL_Event *ev);

/* Opens its own connection to `display`; NULL when it cannot, which the other functions accept. */
struct focus *focus_open(const char *display);
void focus_close(struct focus *f);
void focus_remember(struct focus *f, unsigned long ours); /* the focused window, unless it is `ours` */
void focus_take(struct focus *f, unsigned long ours);     /* `ours` must be mapped */
/* Focuses the remembered window, and waits a short time until it has the focus. */
void focus_give_back(struct focus *f, unsigned long ours);

#endif
