/* results_fixture.h - results of a suite that nobody ran, for tests of what is told about results. */
#ifndef HOLORUN_TESTS_RESULTS_FIXTURE_H
#define HOLORUN_TESTS_RESULTS_FIXTURE_H

#include "qa/report/result.h"

enum { FIXTURE_MAX = 64 };

/* Everything in one piece, to be changed at will; texts stay the test's own. */
struct fixture {
    char dir[64]; /* a folder of its own */
    struct suite suite;
    struct test tests[FIXTURE_MAX];
    struct attempt attempts[FIXTURE_MAX][2];
    struct check_result checks[FIXTURE_MAX][2]; /* shell and judge; of both attempts */
    struct result results[FIXTURE_MAX];
    struct results all;
};

struct fixture *fixture_new(int n); /* all passed */
void fixture_free(struct fixture *m);
void fixture_outcome(struct fixture *m, int i, const char *id, enum outcome o);
char *fixture_path(const struct fixture *m, const char *name); /* path in its folder; the caller frees it */

/* One of each outcome, named by it, then "flaky one" and "meant to fail", which did not. */
struct fixture *fixture_one_of_each(void);

/* `look` at results whose texts are random bytes, with much of what means something to some reader. */
void fixture_random(int rounds, void (*look)(const struct fixture *m));

/* The text of a file that a report has written in its folder, 0600; the caller frees it. */
char *fixture_report(const struct fixture *m, const char *name,
                     int (*write)(const struct results *r, const char *path, struct err *e));

int text_count(const char *text, const char *what);
void text_has(const char *text, const char *what); /* or the test fails */

#endif
