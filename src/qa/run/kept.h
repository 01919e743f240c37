/* kept.h - desktops whose program stays open for the next test with reuse: program.
 *
 * A test takes a desktop that was opened with the same start, display, window manager, directory, variables
 * and elements; its setup then resets the program. Only a test that has passed gives its desktop back, and
 * each desktop is used by one test at a time. One that no further test can take is closed. The functions may
 * be called from any thread. */
#pragma once

#include "desk/desk.h"
#include "qa/report/report.h"

struct kept;

/* most: number of desktops that wait; the oldest is closed for another. r: the rows that have not begun are
 * of the tests that take a desktop. */
struct kept *kept_new(int most, const struct results *r);
/* Returns the variables of a desktop that several tests may use, ended by NULL: those of env, and of vars
 * those that start or wm names. The caller frees the list; the texts are those of the test. */
const char **kept_env(const struct test *t);
void kept_free(struct kept *k); /* closes those that wait */
/* Returns a desktop for this test, which the caller gives back or closes; NULL: none. *from: the test that
 * used it last. To be called once for each test. */
struct desk *kept_take(struct kept *k, const struct test *t, const struct test **from);
/* Keeps the desktop that was used by the test; takes ownership. */
void kept_give(struct kept *k, struct desk *d, const struct test *t);
