/* far_run.h - `holorun run` on a stage of its own, with a far server in place of a model: it presses, types, and
 * answers.  Before the second reply a server may do something else. */
#ifndef HOLORUN_TESTS_FAR_RUN_H
#define HOLORUN_TESTS_FAR_RUN_H

#include "driven.h"
#include "far.h"

#define FAR_KEY "sk-tests-0123456789abcdef"

struct far_run {
    struct stage stage;
    struct far_server server;
    struct outcome o;
    char *url, *key, *runs;
    const char *fault; /* in place of the second reply, so many times */
    int times, given, next;
};

void far_run_open(struct far_run *f);
void far_run_close(struct far_run *f);

/* From the beginning; the profile is a file. */
void far_run(struct far_run *f, const char *profile);
/* Goes on with the newest run. */
void far_run_resume(struct far_run *f, const char *profile);
/* Mouse buttons and keys that have gone down on the stage. */
int far_run_presses(struct far_run *f);
int far_run_keys(struct far_run *f);

#endif
