/* focus.h - who has the keyboard of a display that a person and the agent share.
 *
 * A window of ours takes the keyboard when it asks something, and gives it back before the agent goes on: what the agent
 * types belongs to the window that had it when the screen was looked at.  With a window manager by its means
 * (_NET_ACTIVE_WINDOW), else with the X server's.
 */
#ifndef HOLORUN_STEP_FOCUS_H
#define HOLORUN_STEP_FOCUS_H

struct focus;

/* A connection of its own to `display`; NULL when that cannot be opened, which the other functions take too. */
struct focus *focus_open(const char *display);
void focus_close(struct focus *f);

/* Who has the keyboard now, if not `ours`, is who gets it back. */
void focus_remember(struct focus *f, unsigned long ours);

void focus_take(struct focus *f, unsigned long ours); /* `ours` is on the screen */

/* To who is remembered, if it is not there; waits for a short time until it is. */
void focus_give_back(struct focus *f, unsigned long ours);

#endif
