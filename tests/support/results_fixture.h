/* results_fixture.h - synthetic results of a suite, for tests of reports. */
#pragma once

#include "place.h"

#include "qa/report/report.h"

enum { FIXTURE_MAX = 64 };

/* All in one struct that a test may change; it owns the texts. */
struct fixture {
    char dir[PLACE_PATH]; /* a private folder */
    struct suite suite;
    struct test tests[FIXTURE_MAX];
    struct attempt attempts[FIXTURE_MAX][2];
    struct check_result checks[FIXTURE_MAX][2]; /* shell and judge; used by both attempts */
    struct result results[FIXTURE_MAX];
    struct results all;
};

struct fixture *fixture_new(int n); /* all passed */
void fixture_free(struct fixture *m);
void fixture_outcome(struct fixture *m, int i, const char *id, enum outcome o);
char *fixture_path(const struct fixture *m, const char *name); /* path in its folder; the caller frees it */

/* Makes a test of each outcome, named after it, then "flaky one" and "meant to fail", which passed. */
struct fixture *fixture_one_of_each(void);

/* Calls `look` with results whose texts are random bytes, many of them special in some format. */
void fixture_random(int rounds, void (*look)(const struct fixture *m));

/* Writes a report into the folder, checks that its mode is 0600, and returns its text; the caller frees
 * it. */
char *fixture_report(const struct fixture *m, const char *name, enum report which);
