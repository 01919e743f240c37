/* ahead.h - opens the desktop of the next test (X server, window manager, bus) while the current one runs.
 *
 * At most one desktop waits. It belongs to its test alone, so tests share nothing. A test with a home folder
 * opens its desktop itself: that folder is copied when its turn has come. */
#pragma once

#include "desk/desk.h"
#include "qa/run/workers.h"

struct ahead;

struct ahead *ahead_new(const struct suite_run *run); /* run is borrowed */
void ahead_free(struct ahead *a);                     /* closes a desktop that no test has taken */

/* Begins to open the desktop of a test, unless one waits already or memory is short. The test must not have
 * begun: the desktop waits until ahead_take() is called for it. Any thread. */
void ahead_begin(struct ahead *a, const struct test *t);
/* Returns the desktop of this test, which the caller closes; NULL: none was opened. Any thread. */
struct desk *ahead_take(struct ahead *a, const struct test *t);
