/* place.h - the display of a command: an existing display or a private desktop.
 *
 * Every command that reads or controls a screen according to the settings of a run opens it with these two
 * functions, so that --on has the same meaning for run, step, resume, mcp and acp. */
#pragma once

#include "run/job.h"
#include "run/on_desk.h"

/* Determines the place; call before there are threads and before screen_guard().  Opens the private desktop
 * of --on and makes it the settings' display, or finds the cookie of an existing display.  *desk: NULL
 * without --on; the caller closes it after the last screen.  Returns -1 with e. */
int place_settle(struct run_settings *s, struct on_desk **desk, struct err *e);

/* Opens the screen of the place.  o: further options; display, view and cursor are filled in.  Returns NULL
 * with e. */
struct screen *place_screen(const struct run_settings *s, struct screen_options o, struct err *e);

/* Returns the name of the place: a display, or "" without one. */
const char *place_name(const struct run_settings *s);
/* Returns whether a display's name, in any spelling, denotes the place. */
bool place_is(const struct run_settings *s, const char *name);
