/* result.h - what came of tests: filled by who runs them, read by reports.
 *
 *   passed        every check said yes, at least one of them no model (or a judge of its own: `judged`)
 *   failed        a check said no; or there is none, and the agent says that it cannot be done, or its validator
 *                 does not believe it
 *   claimed       the agent says it is done, and nothing confirms it
 *   inconclusive  a judge did not know, or the agent did not come to an end of its own and checks were not asked for that
 *   error         no verdict about the program under test: no display, model, disk
 *   skipped       not run (--fail-fast, time over)
 *   stopped       by a person
 *
 * result.c has the order in which these are decided.
 */
#ifndef HOLORUN_QA_REPORT_RESULT_H
#define HOLORUN_QA_REPORT_RESULT_H

#include "qa/suite/suite.h"

#include <stdbool.h>
#include <stdint.h>

enum outcome {
    OUTCOME_PASSED,
    OUTCOME_FAILED,
    OUTCOME_CLAIMED,
    OUTCOME_INCONCLUSIVE,
    OUTCOME_ERROR,
    OUTCOME_SKIPPED,
    OUTCOME_STOPPED,
};
enum { OUTCOMES = OUTCOME_STOPPED + 1 };
const char *outcome_name(enum outcome o); /* "passed" */

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_UNKNOWN, ANSWER_ERROR, ANSWER_NOT_ASKED };

struct check_result {
    const struct check *check;
    enum answer answer; /* after `absent` has been taken into account: YES is good */
    char *detail;       /* one line: what was expected and what was there; NULL: nothing to say */
    char *output;       /* of a command, or a judge's reason; may be long; or NULL */
    char *pictures[3];  /* paths: expected, actual, difference; NULL: none */
    double ms;
};

struct attempt { /* the first, and each retry */
    enum outcome outcome;
    const char *status; /* of the agent, agent_status_name(); "" when it did not begin */
    char *answer;       /* final, or NULL */
    char *error;        /* one line of ERROR and of an agent that broke off; NULL */
    char *error_kind; /* of an ERROR, and of nothing else: "display", "program", "model", "disk" ...; NULL */
    char *run_dir;    /* with events.jsonl, frames/, report.html; NULL */
    char *log;        /* end of what the program under test has written; NULL */
    char *
        picture; /* path: the screen at the end of one that has not passed, where no screenshot shows it; NULL */
    bool crashed; /* the program under test did, in the middle of it: `error` says how */
    int steps;
    double seconds, start_seconds; /* of the agent; of the desk and the program before it */
    struct check_result *checks;
    int n_checks;
};

enum flaky { FLAKY_NOT, FLAKY_MODEL, FLAKY_APPLICATION, FLAKY_UNKNOWN };
/* FLAKY_MODEL: same frames and different tokens; FLAKY_APPLICATION: different frames. */
const char *flaky_meaning(enum flaky f); /* "the application showed something else" */

struct result {
    const struct test *test;
    enum outcome outcome; /* of the last attempt, expect_fail taken into account */
    enum flaky flaky;     /* passed after a retry */
    char *flaky_where;    /* "step 3: ..."; or NULL */
    const char *
        reason; /* of one that never began: "--fail-fast: 'login' has failed"; not owned, or NULL: there is no end yet */
    bool judged; /* passed, by nothing but models */
    struct attempt *attempts;
    int n;
    int worker;            /* from 0 */
    double began, seconds; /* since the suite began; all attempts, with their desks */
};

struct results { /* of a suite, in the order of its tests; those that were not chosen are not there */
    const struct suite *suite;
    struct result *results;
    int n, jobs;
    bool time_over;     /* of the suite: some were skipped for that */
    enum err_kind kept; /* why none could begin, which is the exit code then: results_kept() */
    char *why_kept;
    char started[28]; /* UTC, "2026-11-21T05:45:00Z" */
    double seconds;
    char *dir; /* where reports and runs are; 0700 */
    const char *model, *dialect, *version, *host;
    size_t memory_weights, memory_state,
        memory_most; /* bytes: weights, the sessions' states at most, the process at most */
};

/* From checks and the agent's end; expect_fail turns passed and failed round and nothing else.  *judged is set.  What a
 * verdict cannot see is whether a person stopped the attempt after its agent had ended (checks_run says so), and whether it
 * was skipped. */
enum outcome result_verdict(const struct test *t, const struct attempt *a, bool *judged);

/* A row for each chosen test, skipped until it has ended. */
void results_begin(struct results *r, const struct suite *s);
/* Nothing has begun, and nothing will: errors for this reason, or skipped when a person stopped it. */
void results_kept(struct results *r, const struct err *why);

int results_count(const struct results *r, enum outcome o);
/* What kept all of them from beginning, else the first that applies: 130 stopped, 1 failed, 3 error (4: all of them about the model), 124 time over, 5 inconclusive,
 * claimed unless these are accepted, or more flaky ones than the suite allows; else 0. */
int results_exit_code(const struct results *r, bool accept_claims);

/* What it owns, which is all texts but `status` and those of the suite, and empties it. */
void attempt_free(struct attempt *a);
void results_free(struct results *r);

#endif
