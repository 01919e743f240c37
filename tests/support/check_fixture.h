/* check_fixture.h - runs checks of a test one at a time on a private desktop.
 *
 *     check_fixture_open(&t);
 *     EXPECT(RUN_CHECK(&t, .kind = CHECK_FILE, .text = "a.txt"), ANSWER_NO, "it does not exist");
 *     check_fixture_close(&t);
 */
#pragma once

#include "check.h"
#include "qa/run/check.h"

#include <X11/Xlib.h>

enum { CHECK_FIXTURE_PATIENCE = 60 }; /* seconds; loaded machines are slow */

struct check_fixture {
    struct desk *desk;
    struct test test;
    struct attempt a;
    struct check_context s;
    Display *dpy; /* the test's own connection */
    char out[300];
};

void check_fixture_open(struct check_fixture *t); /* skips the test without Xvfb */
void check_fixture_close(struct check_fixture *t);

/* Runs one check; its result is valid until the next. */
const struct check_result *check_fixture_run(struct check_fixture *t, struct check c);
#define RUN_CHECK(t, ...) check_fixture_run(t, (struct check){__VA_ARGS__})

/* Fails the test unless the answer is `a` and the detail is one line that contains `detail`. */
void check_fixture_expect(const struct check_result *r, enum answer a, const char *detail, const char *file,
                          int line);
#define EXPECT(result, answer, detail) check_fixture_expect(result, answer, detail, __FILE__, __LINE__)

void check_fixture_file(const struct check_fixture *t, const char *name, const char *text,
                        size_t len); /* writes into HOME */
Window check_fixture_window(Display *dpy, const char *title, const char *class, int x, int y, int w, int h,
                            unsigned long color);

/* Calls check_main() after desks_begin(), which must precede threads. */
int check_fixture_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
