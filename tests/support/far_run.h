/* far_run.h - `holorun run` on its own stage against a scripted server: it clicks, types and answers. A fault
 * can precede the second reply.
 */
#pragma once

#include "driven.h"
#include "far.h"

#define FAR_KEY "sk-tests-0123456789abcdef"

struct far_run {
    struct stage stage;
    struct far_server server;
    struct outcome o;
    char *url, *key, *runs;
    const char *fault; /* response sent instead of the second reply, this many times */
    int times, given, next;
};

void far_run_open(struct far_run *f);
void far_run_close(struct far_run *f);

/* Starts a run; the profile is written to a file. */
void far_run(struct far_run *f, const char *profile);
/* Resumes the newest run. */
void far_run_resume(struct far_run *f, const char *profile);
/* Returns how many mouse buttons and keys were pressed on the stage. */
int far_run_presses(struct far_run *f);
int far_run_keys(struct far_run *f);
