/* attempt.h - one test, once: a desk, the program on it, the agent at work, the checks, and all of it away again.
 *
 *   desk_open -> setup -> start, window -> job_work -> checks_run -> teardown -> desk_close
 *
 * What goes wrong before the agent begins, or with the desk under it, is an error: nothing is known about the program then.
 * A program that crashes is a failure.
 */
#ifndef HOLORUN_QA_RUN_ATTEMPT_H
#define HOLORUN_QA_RUN_ATTEMPT_H

#include "qa/report/result.h"
#include "qa/run/check.h"
#include "qa/run/secret_store.h"
#include "run/job.h"

struct workers { /* what all tests of a run share; it does not change while they run */
    const struct run_settings *settings; /* of the command line; what a test says comes before them */
    const char *build;                   /* version_build() */
    int argc;
    char **argv; /* of the command line, for the record */
    const struct suite *suite;
    const struct job_model *model;
    const struct secret_store *secret_store;
    const char *fake; /* file of replies for each test, or a folder with ID.txt; NULL: the model */
    const char
        *confirm;    /* as `run` has it; NULL: all is done on a desktop of our own, else somebody is asked */
    const char *dir; /* for runs and pictures */
    bool update_golden;
    struct judge judge;
};

/* number: of the attempt, from 1; dice: 0 for the test's own, else others.  Fills *out, whose parts are the caller's: attempt_free(). */
void attempt_run(const struct workers *c, const struct test *t, int number, uint64_t rng,
                 struct attempt *out);

#endif
