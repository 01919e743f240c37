/* place.h - where a command works: an existing display or a private desktop.
 *
 * Every command that looks at or acts on a screen by the settings of a run opens it through these two
 * functions, so that --on means the same for run, step, resume, mcp and acp.
 */
#ifndef HOLORUN_RUN_PLACE_H
#define HOLORUN_RUN_PLACE_H

#include "run/job.h"
#include "run/on_desk.h"

/* Settles the place before there are threads and before screen_guard(): opens the private desktop of --on and
 * makes it the settings' display, or finds the cookie of an existing display.  *desk: NULL without --on; the
 * caller closes it after the last screen.  -1 with e. */
int place_settle(struct run_settings *s, struct on_desk **desk, struct err *e);

/* Opens the screen of the settled place.  o: further options; display, view and cursor are filled
 * in.  NULL with e. */
struct screen *place_screen(const struct run_settings *s, struct screen_options o, struct err *e);

/* Returns the name of the settled place: a display, or "" without one. */
const char *place_name(const struct run_settings *s);
/* Returns whether a display's name, in any spelling, means the settled place. */
bool place_is(const struct run_settings *s, const char *name);

#endif
