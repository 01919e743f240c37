/* made_results.h - results of a suite that nobody ran, for tests of what is told about results. */
#ifndef HOLORUN_TESTS_MADE_RESULTS_H
#define HOLORUN_TESTS_MADE_RESULTS_H

#include "place.h"

#include "report/result.h"

enum { MADE_MAX = 64 };

/* Everything in one piece, to be changed at will; texts stay the test's own. */
struct made {
    char dir[PLACE_PATH]; /* a folder of its own */
    struct suite suite;
    struct test tests[MADE_MAX];
    struct attempt attempts[MADE_MAX][2];
    struct check_result checks[MADE_MAX][2]; /* shell and judge; of both attempts */
    struct result results[MADE_MAX];
    struct results all;
};

struct made *made_new(int n); /* all passed */
void made_free(struct made *m);
void made_outcome(struct made *m, int i, const char *id, enum outcome o);
char *made_place(const struct made *m, const char *name); /* path in its folder; the caller frees it */

/* One of each outcome, named by it, then "flaky one" and "meant to fail", which did not. */
struct made *made_one_of_each(void);

/* `look` at results whose texts are random bytes, with much of what means something to some reader. */
void made_random(int rounds, void (*look)(const struct made *m));

/* The text of a file that a report has written in its folder, 0600; the caller frees it. */
char *made_written(const struct made *m, const char *name,
                   int (*write)(const struct results *r, const char *path, struct err *e));

int text_count(const char *text, const char *what);
void text_has(const char *text, const char *what); /* or the test fails */

#endif
