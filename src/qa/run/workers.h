/* workers.h - tests at work, up to so many at a time, each from a thread of its own.
 *
 * The threads take the next test when they have done one.  All share one model; who waits for a page keeps nobody from
 * thinking.  A test that did not pass is done again, first up to its `attempts`, which are part of how the agent works, then up to its
 * `retries`: when it passes only then it is flaky, and the two runs are compared to say whether the program or the model was
 * another.
 */
#ifndef HOLORUN_QA_RUN_WORKERS_H
#define HOLORUN_QA_RUN_WORKERS_H

#include "qa/report/live.h"
#include "qa/run/attempt.h"

struct workers_options {
    int jobs;
    int retries,
        attempts;   /* of tests that do not say; attempts: tries that are no sign of flakiness, from 1 */
    bool fail_fast; /* no new test begins after one that failed */
    double seconds; /* for all of them; 0: no limit */
    struct live *live;
    void (*saved)(void *arg, const struct results *r); /* after each test, one at a time; may be NULL */
    void *arg;
};

/* Runs the tests of the rows that results_begin() made, in order; those that did not run stay skipped.  The stop flag of
 * the process ends it. */
void workers_run(const struct workers *c, const struct workers_options *o, struct results *r);

#endif
