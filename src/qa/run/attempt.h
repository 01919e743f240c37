/* attempt.h - one attempt at a test: open a desk, run the program and the agent on it, check, tear down.
 *
 *   desk_open -> setup -> start, window -> job_work -> checks_run -> teardown -> desk_close
 *
 * A failure before the agent starts, or of the desk itself, is an error: it says nothing about the program
 * under test. A crash of that program is a failure of the test.
 */
#ifndef HOLORUN_QA_RUN_ATTEMPT_H
#define HOLORUN_QA_RUN_ATTEMPT_H

#include "qa/report/result.h"
#include "qa/run/check.h"
#include "qa/run/secret_store.h"
#include "run/job.h"

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

#endif
