/* focus.h - the input focus of a display that a person and the agent share.
 *
 * The step window takes the focus when it asks, and gives it back before the agent acts: the agent types
 * into the window that had the focus in the screenshot.  Uses _NET_ACTIVE_WINDOW with a window manager,
 * else XSetInputFocus.
 */
#ifndef HOLORUN_STEP_FOCUS_H
#define HOLORUN_STEP_FOCUS_H

struct focus;

/* Opens its own connection to `display`; NULL when it cannot, which the other functions accept. */
struct focus *focus_open(const char *display);
void focus_close(struct focus *f);

/* Remembers the focused window, unless it is `ours`. */
void focus_remember(struct focus *f, unsigned long ours);

void focus_take(struct focus *f, unsigned long ours); /* `ours` must be mapped */

/* Focuses the remembered window, and waits a short time until it has the focus. */
void focus_give_back(struct focus *f, unsigned long ours);

#endif
