/* checking.h - checks of a test, one at a time, on a desk of its own.
 *
 *     checking_open(&t);
 *     SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt"), ANSWER_NO, "there is none");
 *     checking_close(&t);
 */
#ifndef HOLORUN_TESTS_CHECKING_H
#define HOLORUN_TESTS_CHECKING_H

#include "check.h"
#include "qa/run/check.h"

#include <X11/Xlib.h>

enum { CHECKING_PATIENCE = 60 }; /* s: machines are loaded */

struct checking {
    struct desk *desk;
    struct test test;
    struct attempt a;
    struct check_scene s;
    Display *dpy; /* the test's own */
    char out[300];
};

void checking_open(struct checking *t); /* skips the test where there is no Xvfb */
void checking_close(struct checking *t);

/* One check; its result stays until the next. */
const struct check_result *checking_ask(struct checking *t, struct check c);
#define ASK(t, ...) checking_ask(t, (struct check){__VA_ARGS__})

/* Fails the test unless it was answered so, in one line with this in it. */
void checking_says(const struct check_result *r, enum answer a, const char *detail, const char *file,
                   int line);
#define SAYS(result, answer, detail) checking_says(result, answer, detail, __FILE__, __LINE__)

void checking_file(const struct checking *t, const char *name, const char *text, size_t len); /* at home */
Window checking_window(Display *dpy, const char *title, const char *class, int x, int y, int w, int h,
                       unsigned long color);

/* check_main, with desks begun before there are threads. */
int checking_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);

#endif
