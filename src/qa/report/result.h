/* result.h - results of a suite: written by qa/run, read by the reports.
 *
 *   passed        all steps were performed and all checks passed; `judged`: only checks by a model
 *   failed        a step or a check failed; or the agent answers that the task is infeasible and the test
 *                 does not expect it, or reports success for a task that should be; or no check decides and
 *                 its validator rejects its answer
 *   claimed       the agent reports success, and no check confirms it
 *   inconclusive  a judge did not know, or the agent did not finish and its checks were therefore not run
 *   error         no verdict on the program under test: no display, model, disk
 *   skipped       not run: the suite ran out of time, was stopped earlier, or --fail-fast ended it
 *   stopped       by the user
 *
 * All except passed and failed leave a test undecided. CI must not treat that as success: each of them is an
 * error there, or as set by --undecided. Only a test that --fail-fast omitted is skipped, because the suite
 * has failed anyway.
 *
 * result.c lists the rules in the order in which they apply. */
#pragma once

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

enum ci { CI_PASSED, CI_FAILURE, CI_ERROR, CI_SKIPPED }; /* the outcomes in JUnit, TAP and the exit code */
const char *ci_name(enum ci c);                          /* "failure" */
enum undecided { UNDECIDED_ERROR, UNDECIDED_FAILURE, UNDECIDED_SKIPPED }; /* --undecided */
const char *undecided_name(enum undecided u);                             /* "failure" */

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_UNKNOWN, ANSWER_ERROR, ANSWER_NOT_ASKED };

struct check_result {
    const struct check *check;
    enum answer answer; /* with `absent` applied: YES means success */
    char *detail;       /* one line: expected and actual; or NULL */
    char *output;       /* output of a command, or a judge's reason; may be long; or NULL */
    char *pictures[3];  /* paths: expected, actual, difference image; or NULL */
    double ms;
};

/* How a step of a task in steps ended. */
enum step_end {
    STEP_NOT_RUN, /* not reached, or not finished when the attempt ended */
    STEP_DONE,
    STEP_NOT_FOUND, /* its element is not there */
    STEP_FAILED,
    STEP_UNREAD, /* an error: the program's elements cannot be read */
};
enum { STEP_ENDS = STEP_UNREAD + 1 };
const char *step_end_name(enum step_end e); /* "not found" */

struct step_result {
    int line;
    char *text;    /* the step as a sentence */
    char *planned; /* plain steps that were planned for the sentence, a line each; or NULL */
    char *said;    /* the action and its effect, or the reason why it failed; or NULL */
    enum step_end end;
    bool proof; /* it verifies the result, as a check does: test_step_proves() */
    double seconds;
};

struct attempt { /* the first attempt, and each retry */
    enum outcome outcome;
    const char *status; /* agent_status_name() of the agent; "" if it did not start */
    char *answer;       /* of the agent; or NULL */
    char *did;          /* the agent's actions in one line; or NULL */
    char *error;        /* one line: the reason of an error, or of a failure of agent or step; or NULL */
    char *error_kind;   /* only for an error: "display", "program", "model", "disk" ...; or NULL */
    char *run_dir;      /* directory with events.jsonl, frames/, report.html; or NULL */
    char *log;          /* the end of the output of the program under test; or NULL */
    /* path: the final screen if the test did not pass, unless a frame of its run shows it */
    char *picture;
    bool crashed; /* the program under test crashed while the agent ran; see `error` */
    int steps;
    int cancelled;     /* turns, because the screen changed while the model was thinking */
    int reused;        /* replies of an earlier run that were repeated instead of asking a model */
    char *reused_from; /* directory of that run's record, if it was followed; or NULL */
    char *program_of;  /* id of the test before, whose program stayed open for this one; or NULL */
    double seconds, start_seconds; /* of the agent; of starting desktop, setup and program */
    struct step_result *script;    /* of the steps of the test, all of them */
    int n_script;
    struct check_result *checks;
    int n_checks;
};
/* Returns the step that failed, was not found or could not be read; NULL: none. */
const struct step_result *attempt_failed_step(const struct attempt *a);

enum flaky { FLAKY_NOT, FLAKY_MODEL, FLAKY_APPLICATION, FLAKY_UNKNOWN };
/* FLAKY_MODEL: other actions on the same screens; FLAKY_APPLICATION: other screens. */
const char *flaky_name(enum flaky f);        /* "model" */
const char *flaky_description(enum flaky f); /* "the application showed different screens" */

struct result {
    const struct test *test;
    enum outcome outcome; /* of the last attempt, with expect_fail applied */
    enum flaky flaky;     /* cause if it passed only on a retry */
    char *flaky_where;    /* "step 3: ..."; or NULL */
    const char *reason;   /* why it was not run, borrowed; NULL while it may still run */
    bool excused;         /* skipped by --fail-fast: the suite has failed because of another test */
    bool judged;          /* passed, but only by models */
    bool lacking;         /* not a test, but a part of the suite without results (merge.h): an error for CI */
    struct attempt *attempts;
    int n;
    int worker; /* from 0 */
    /* seconds since the start of the suite; duration of all attempts, with their desktops */
    double began, seconds;
};

enum { RESULTS_SCHEMA = 2 }; /* schema_version of results.json */

struct results { /* The results of the selected tests of a suite, in their order. */
    const struct suite *suite;
    struct result *results;
    int n, jobs;
    enum undecided undecided;
    bool accept_claims;    /* claimed tests count as skipped for CI */
    bool time_over;        /* --max-time was exceeded: some tests were skipped */
    bool stopped;          /* by the user: some tests were skipped */
    bool complete;         /* the run has finished; false: it was cut off while the report was written */
    enum err_kind aborted; /* why no test could run, which determines the exit code: results_abort() */
    char *abort_reason;
    char started[28]; /* UTC, "2026-11-21T05:45:00Z" */
    double seconds;
    const json_t *identity; /* everything that can change an outcome, see identity.h; borrowed */
    const char *dir;        /* directory of reports and runs; mode 0700 */
    const char *model, *dialect, *version, *host;
    const char *const *notes; /* of `qa merge --note`, NULL-terminated; borrowed; NULL: none */
    size_t memory_weights, memory_state,
        memory_peak; /* bytes: weights, peak of session states, peak of the process */
};

/* Returns the outcome of an attempt from its checks and its agent's end status, and whether it is `judged`.
 * expect_fail swaps passed and failed only if checks decide. Not determined here: skipped, and a stop by the
 * user during the checks (returned by checks_run()). */
enum outcome result_outcome(const struct test *t, const struct attempt *a, bool *judged);

/* Creates a row for each selected test, skipped until it is done. */
void results_begin(struct results *r, const struct suite *s);
/* Sets all results to an error with this reason, or to stopped if the user stopped the suite, because no test
 * can run. */
void results_abort(struct results *r, const struct err *why);

int results_count(const struct results *r, enum outcome o);
int results_flaky(const struct results *r);
enum ci results_ci(const struct results *r, const struct result *x);
/* Returns the exit code: the reason of results_abort(), else the first that applies: 130 stopped, 1 a failure
 * for CI, 3 error (4: all of them by the model; 2: by the suite, its files or --fake), 124 time exceeded, 5
 * another error for CI, or more flaky tests than the suite allows; else 0. */
int results_exit_code(const struct results *r);

/* Free all texts except `status`, `reason` and those of the suite. */
void attempt_free(struct attempt *a);
void results_free(struct results *r);
