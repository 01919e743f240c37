/* workers.h - runs the tests of a suite on several worker threads.
 *
 * Each worker takes the next test when it has finished one. All share one model: while a test waits for its
 * page, others use the model. A test that does not pass is repeated, first up to `attempts` times, which
 * count as normal operation of the agent, then up to `retries` times. If it passes only on a retry it is
 * flaky, and the last two runs are compared to find out whether the application or the model differed. */
#pragma once

#include "base/secret.h"
#include "qa/report/report.h"
#include "qa/run/check.h"
#include "run/job.h"

/* ---- the secrets of a suite, read once for all of its tests (secret_store.c) -------------------------
 *
 * Reading a secret from the environment removes it there, so that programs started later do not inherit it;
 * each test that names it gets a copy.
 */

struct secret_store;

/* Reads the secrets of the selected tests and of `more` (the values of --secret, NULL-terminated). Call it
 * before desks_begin(). */
struct secret_store *secret_store_open(const struct suite *s, const char *const *more, struct err *e);
void secret_store_free(struct secret_store *s); /* s may be NULL */

/* Copies secrets for one run, which frees them; *out NULL: the list is empty. Any thread. */
int secret_store_copy(const struct secret_store *s, const char *const *specs, struct secrets **out,
                      struct err *e);

/* Returns the text with all secret values replaced by their names; the caller frees it. s may be NULL. */
char *secret_store_mask(const struct secret_store *s, const char *text);

/* ---- one attempt at a test (attempt.c) ---------------------------------------------------------------
 *
 *   desk_open -> setup -> start, window -> job_work -> checks_run -> teardown -> desk_close
 *
 * A failure before the agent starts, or of the desk itself, is an error: it says nothing about the program
 * under test.  A crash of that program is a failure of the test.
 */

struct suite_run {                       /* shared by all tests of a run and constant during it */
    const struct run_settings *settings; /* from the command line; a test's own keys override them */
    const char *build;                   /* version_build() */
    int argc;
    char **argv; /* of the command line, for the recording */
    const struct suite *suite;
    const struct job_model *model;
    const struct secret_store *secret_store;
    /* file of replies for all tests, or a directory with ID.txt; NULL: the model is used */
    const char *fake;
    const char *confirm; /* as in `run`; NULL: yes on private desktops, else the user is asked */
    const char *dir;     /* directory of runs and images */
    bool update_golden;
    const json_t *identity; /* of the results, for runs that are reused; NULL: none is */
    bool fresh;             /* no run is reused */
    bool freezes; /* sentences without steps are planned; a test that passes runs again with these steps */
    struct judge judge;
};

struct attempt_order {
    int number;                 /* from 1 */
    struct desk *desk;          /* opened ahead; taken over; NULL: the attempt opens one */
    struct kept *kept;          /* programs of earlier tests (kept.h); NULL: none is used or kept */
    void (*started)(void *arg); /* called when the program has started; may be NULL */
    void *arg;
    uint64_t seed_offset; /* added to the seed of the test */
    bool freezes;         /* sentences without steps are planned */
    int again;            /* line of a sentence whose steps are planned although it has some; 0: none */
    const struct attempt *planned; /* its planned steps are performed instead of planning; NULL: none */
};

/* Runs one attempt. Fills *out; the caller calls attempt_free(). */
void attempt_run(const struct suite_run *run, const struct test *t, const struct attempt_order *o,
                 struct attempt *out);

/* ---- the suite's own setup and teardown (setup.c) ------------------------------------------------------ */

/* Runs the setup. *desk: a desk without a display, or NULL. Returns -1 with e, with secrets masked. The
 * caller calls suite_teardown() in any case. */
int suite_setup(const struct suite_run *run, struct desk **desk, struct err *e);
/* Runs the teardown and closes the desk, which may be NULL. */
void suite_teardown(const struct suite_run *run, struct desk *desk);

/* ---- checks before the suite starts (preflight.c) -----------------------------------------------------
 *
 * Each becomes a key of `faults`.
 */

/* Warns about sizes of screens for which the dialect's model was not trained, once for all tests. */
void preflight_warn_sizes(const struct suite *s, const struct dialect *d);
/* Checks that the steps of a task belong to its sentences and that programs report their elements, and that
 * --fake is a file, or a directory with a file for each selected test, that has replies. freezes: steps of
 * another sentence are planned again. */
void preflight_first(const struct suite *s, const struct run_settings *settings, bool freezes,
                     json_t *faults);
/* Checks these, and replies, secrets, policies, dialects and reference images. Removes the secrets from the
 * environment. */
void preflight(const struct suite *s, const struct run_settings *settings, bool update_golden,
               json_t *faults);

/* ---- all tests (workers.c) --------------------------------------------------------------------------- */

struct workers_options {
    int jobs;
    bool paced; /* jobs is a limit: further tests start only while the machine has room for them (room.h) */
    int retries, attempts; /* for tests without these keys; attempts: from 1 */
    bool fail_fast;        /* no test starts after one that failed */
    double seconds;        /* time limit of the suite; 0: none */
    struct progress *progress;
    struct feed *feed; /* source of requests, which replaces the suite's order; or NULL */
    void (*saved)(void *arg, const struct results *r); /* called after each test, under a lock; or NULL */
    void *arg;
};

/* Returns why a test failed and then passed, from two run directories, which may be NULL. *where: "step 3:
 * ...", owned by the caller, or NULL. Never FLAKY_NOT (flaky.c). */
enum flaky flaky_cause(const char *failed, const char *passed, char **where);

/* Runs the tests of the rows made by results_begin(), in order; those that do not run stay skipped. The
 * process's stop flag ends it. With a feed, the rows are not changed. */
void workers_run(const struct suite_run *run, const struct workers_options *o, struct results *r);

/* ---- tests requested by another program over stdin and stdout (feed.c) --------------------------------- */

struct feed_request {
    const struct test *test;
    uint64_t sample; /* number of one of several runs of the same test, each with different random numbers */
    char *dir;       /* directory of its results */
};

/* Creates a feed. head: of the whole suite, borrowed; its directory gets a subdirectory for each request.
 * reload replaces the model by another model directory; it is called while no test runs, and returns -1 if
 * the old one stays. */
struct feed *feed_open(const struct results *head, int (*reload)(void *arg, const char *dir, struct err *e),
                       void *arg);
void feed_close(struct feed *f); /* f may be NULL */
/* Waits for the next request, to be ended by feed_done(). Returns false if there are no more. Any thread. */
bool feed_next(struct feed *f, struct feed_request *out);
/* Writes the results and answers with their directory; frees the texts of request and result. */
void feed_done(struct feed *f, struct feed_request *q, struct result *r);
