/* workers.h - runs the tests of a suite on several worker threads.
 *
 * Each worker takes the next test when it is done with one.  All share one model, so a test that waits for
 * its page leaves the model to the others.  A test that does not pass is tried again: up to `attempts`
 * times, which are part of how the agent works, then up to `retries` times.  If it passes only on a retry
 * it is flaky, and the last two runs are compared to tell whether the application or the model differed.
 */
#ifndef HOLORUN_QA_RUN_WORKERS_H
#define HOLORUN_QA_RUN_WORKERS_H

#include "qa/report/progress.h"
#include "qa/run/attempt.h"

struct workers_options {
    int jobs;
    int retries, attempts; /* of tests that do not say; attempts: from 1 */
    bool fail_fast;        /* start no test after one that failed */
    double seconds;        /* time limit of the suite; 0: none */
    struct progress *progress;
    void (*saved)(void *arg, const struct results *r); /* after each test, under a lock; or NULL */
    void *arg;
};

/* Runs the tests of the rows that results_begin() made, in order; those that do not run stay skipped.  The
 * stop flag of the process ends it. */
void workers_run(const struct suite_run *run, const struct workers_options *o, struct results *r);

#endif
