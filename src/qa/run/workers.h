/* workers.h - runs the tests of a suite on several worker threads.
 *
 * Each worker takes the next test when it is done with one.  All share one model, so a test that waits for
 * its page leaves the model to the others.  A test that does not pass is tried again: up to `attempts`
 * times, which are part of how the agent works, then up to `retries` times.  If it passes only on a retry
 * it is flaky, and the last two runs are compared to tell whether the application or the model differed.
 */
#ifndef HOLORUN_QA_RUN_WORKERS_H
#define HOLORUN_QA_RUN_WORKERS_H

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

/* Secrets of the selected tests and of `more` (as `run` has them, ended by NULL).  Call it before
 * desks_begin(). */
struct secret_store *secret_store_open(const struct suite *s, const char *const *more, struct err *e);
void secret_store_free(struct secret_store *s); /* NULL is fine */

/* Copies for one run, which frees them; *out NULL: the list is empty.  Any thread. */
int secret_store_copy(const struct secret_store *s, const char *const *specs, struct secrets **out,
                      struct err *e);

/* text with all secret values replaced by their names; owned by the caller.  s may be NULL. */
char *secret_store_mask(const struct secret_store *s, const char *text);

/* ---- one attempt at a test (attempt.c) ---------------------------------------------------------------
 *
 *   desk_open -> setup -> start, window -> job_work -> checks_run -> teardown -> desk_close
 *
 * A failure before the agent starts, or of the desk itself, is an error: it says nothing about the program
 * under test.  A crash of that program is a failure of the test.
 */

struct suite_run {                       /* shared by all tests of a run and constant while they run */
    const struct run_settings *settings; /* of the command line; a test's own keys override them */
    const char *build;                   /* version_build() */
    int argc;
    char **argv; /* of the command line, for the record */
    const struct suite *suite;
    const struct job_model *model;
    const struct secret_store *secret_store;
    const char *fake;    /* file of replies for all tests, or a folder with ID.txt; NULL: the model */
    const char *confirm; /* as in `run`; NULL: yes on private desktops, else a person is asked */
    const char *dir;     /* of runs and pictures */
    bool update_golden;
    struct judge judge;
};

/* number: of the attempt, from 1; seed_offset: added to the seed of the test.  Fills *out; attempt_free()
 * it. */
void attempt_run(const struct suite_run *run, const struct test *t, int number, uint64_t seed_offset,
                 struct attempt *out);

/* ---- mistakes that show before anything starts (preflight.c) ------------------------------------------
 *
 * Each becomes a key of `faults`.
 */

/* Of --fake: a file, or folder with a file for each selected test, that has replies. */
void preflight_fake(const struct suite *s, const char *fake, json_t *faults);
/* Also what replies, secrets, policies, a dialect and images to compare with have to be.  It takes the
 * secrets out of the environment. */
void preflight(const struct suite *s, const struct run_settings *settings, bool update_golden,
               json_t *faults);

/* ---- all tests (workers.c) --------------------------------------------------------------------------- */

struct workers_options {
    int jobs;
    int retries, attempts; /* of tests that do not say; attempts: from 1 */
    bool fail_fast;        /* start no test after one that failed */
    double seconds;        /* time limit of the suite; 0: none */
    struct progress *progress;
    struct feed *feed; /* asked for here, not in the order of the suite; or NULL */
    void (*saved)(void *arg, const struct results *r); /* after each test, under a lock; or NULL */
    void *arg;
};

/* Why a test failed and then passed, from two run directories or NULL.  *where: "step 3: ...", owned by the
 * caller, or NULL.  Never FLAKY_NOT (flaky.c). */
enum flaky flaky_cause(const char *failed, const char *passed, char **where);

/* Runs the tests of the rows that results_begin() made, in order; those that do not run stay skipped.  The
 * stop flag of the process ends it.  With a feed the rows stay as they are. */
void workers_run(const struct suite_run *run, const struct workers_options *o, struct results *r);

/* ---- tests that another program asks for, by lines on stdin and stdout (feed.c) ------------------------ */

struct feed_request {
    const struct test *test;
    uint64_t sample; /* which of several runs of the same test: each has random numbers of its own */
    char *dir;       /* of its results */
};

/* head: of the whole suite, borrowed; its folder gets a folder for each request.  reload puts another model
 * directory in the place of the model; it is called while no test runs, and -1 leaves the old one. */
struct feed *feed_open(const struct results *head, int (*reload)(void *arg, const char *dir, struct err *e),
                       void *arg);
void feed_close(struct feed *f); /* NULL is fine */
/* Waits for the next request; feed_done() it.  false: there are no more.  Any thread. */
bool feed_next(struct feed *f, struct feed_request *out);
/* Writes the results and tells where they are; frees what the request and the result own. */
void feed_done(struct feed *f, struct feed_request *q, struct result *r);

#endif
