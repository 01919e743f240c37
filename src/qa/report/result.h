/* result.h - results of a suite: qa/run fills them in, the reports read them.
 *
 *   passed        all checks passed; `judged`: no check but by a model
 *   failed        a check failed; or the agent answers that the task is infeasible and the test does not
 *                 expect it, or is done with a task that should be; or no check decides and its validator
 *                 rejects its answer
 *   claimed       the agent says it is done, and no check confirms it
 *   inconclusive  a judge did not know, or the agent did not finish and its checks were therefore not run
 *   error         no verdict on the program under test: no display, model, disk
 *   skipped       not run: the suite ran out of time or was stopped before it, or --fail-fast ended it
 *   stopped       by a person
 *
 * All but passed and failed leave a test undecided.  CI must not take that for a success: to CI each of them
 * is an error, or what `undecided` says, and only a test that --fail-fast left out is skipped, since then
 * the suite is red anyway.
 *
 * result.c lists the rules in the order in which they apply.
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

enum ci { CI_PASSED, CI_FAILURE, CI_ERROR, CI_SKIPPED }; /* what JUnit, TAP and the exit code know */
const char *ci_name(enum ci c);                          /* "failure" */
enum undecided { UNDECIDED_ERROR, UNDECIDED_FAILURE, UNDECIDED_SKIPPED }; /* --undecided */
const char *undecided_name(enum undecided u);                             /* "failure" */

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_UNKNOWN, ANSWER_ERROR, ANSWER_NOT_ASKED };

struct check_result {
    const struct check *check;
    enum answer answer; /* with `absent` applied: YES is good */
    char *detail;       /* one line: expected and actual; or NULL */
    char *output;       /* of a command, or a judge's reason; may be long; or NULL */
    char *pictures[3];  /* paths: expected, actual, difference; or NULL */
    double ms;
};

struct attempt { /* the first, and each retry */
    enum outcome outcome;
    const char *status; /* of the agent, agent_status_name(); "" if it did not start */
    char *answer;       /* the agent's; or NULL */
    char *did;          /* its actions in one line; or NULL */
    char *error;        /* one line: why the attempt is an error, or why the agent failed; or NULL */
    char *error_kind;   /* of an error only: "display", "program", "model", "disk" ...; or NULL */
    char *run_dir;      /* with events.jsonl, frames/, report.html; or NULL */
    char *log;          /* the end of what the program under test wrote; or NULL */
    char *picture;      /* path: the final screen if it did not pass, unless a frame of its run shows it */
    bool crashed;       /* the program under test did, while the agent ran: `error` says how */
    int steps;
    double seconds, start_seconds; /* of the agent; of desk, setup and program start */
    struct check_result *checks;
    int n_checks;
};

enum flaky { FLAKY_NOT, FLAKY_MODEL, FLAKY_APPLICATION, FLAKY_UNKNOWN };
/* FLAKY_MODEL: other actions on the same screens; FLAKY_APPLICATION: other screens. */
const char *flaky_name(enum flaky f);        /* "model" */
const char *flaky_description(enum flaky f); /* "the application showed something else" */

struct result {
    const struct test *test;
    enum outcome outcome; /* of the last attempt, with expect_fail applied */
    enum flaky flaky;     /* passed only on a retry */
    char *flaky_where;    /* "step 3: ..."; or NULL */
    const char *reason;   /* why it was not run, borrowed; NULL while it may still run */
    bool excused;         /* skipped by --fail-fast: another test has made the suite red */
    bool judged;          /* passed, by models alone */
    bool lacking;         /* no test, but a part of the suite without results (merge.h): an error to CI */
    struct attempt *attempts;
    int n;
    int worker;            /* from 0 */
    double began, seconds; /* since the suite began; all attempts, with their desks */
};

struct results { /* of the selected tests of a suite, in their order */
    const struct suite *suite;
    struct result *results;
    int n, jobs;
    enum undecided undecided;
    bool accept_claims;    /* claimed tests are skipped to CI */
    bool time_over;        /* --max-time: some were skipped */
    bool stopped;          /* by a person: some were skipped */
    bool complete;         /* the run has come to its end; else it was cut off while this was written */
    enum err_kind aborted; /* why no test could run, which is the exit code then: results_abort() */
    char *abort_reason;
    char started[28]; /* UTC, "2026-11-21T05:45:00Z" */
    double seconds;
    uint64_t suite_hash; /* suite_hash() */
    const char *dir;     /* of reports and runs; 0700 */
    const char *model, *dialect, *version, *host;
    size_t memory_weights, memory_state,
        memory_peak; /* bytes: weights, peak of session states, peak of the process */
};

/* The outcome of an attempt from its checks and its agent's end, and whether it is `judged`; expect_fail
 * swaps passed and failed by checks only.  Not decided here: skipped, and a stop by a person while the
 * checks ran (checks_run() tells). */
enum outcome result_outcome(const struct test *t, const struct attempt *a, bool *judged);

/* A row for each selected test, skipped until it is done. */
void results_begin(struct results *r, const struct suite *s);
/* No test can run: all become errors for this reason, or stopped if a person stopped the suite. */
void results_abort(struct results *r, const struct err *why);

int results_count(const struct results *r, enum outcome o);
int results_flaky(const struct results *r);
enum ci results_ci(const struct results *r, const struct result *x);
/* The reason of results_abort(), else the first that applies: 130 stopped, 1 a failure to CI, 3 error (4:
 * all of them about the model; 2: about the suite, its files or --fake), 124 time over, 5 another error to
 * CI, or more flaky tests than the suite allows; else 0. */
int results_exit_code(const struct results *r);

/* They free all texts but `status`, `reason` and the suite's. */
void attempt_free(struct attempt *a);
void results_free(struct results *r);

#endif
