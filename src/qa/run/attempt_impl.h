/* attempt_impl.h - shared by attempt.c and attempt_steps.c. */
#pragma once

#include "qa/run/workers.h"

/* frames of the run for a judge, whose last frame is the current screen */
enum { MAX_FRAMES = SUITE_MAX_FRAMES - 1 };

struct attempt_state {
    const struct suite_run *run;
    const struct test *test;
    struct attempt *out;
    struct desk *desk;
    struct job job;
    bool job_begun, ended;  /* ended: the agent finished without being stopped */
    struct redact *covered; /* fields that hold secrets, for all jobs of a task in steps; NULL: one job */
    char *runs, *fake;      /* owned paths, borrowed by job.s */
    char *said;             /* the model's own words, if the answer is worded differently */
    char *pictures;         /* directory; created for the first image */
    const struct attempt_order *order;
    char *passed;      /* record of the last run that passed (passed.c), to be repeated; NULL: none */
    int passed_dir;    /* its folder, while passed is not NULL */
    char *passed_from; /* directory of that run */
    bool news;         /* a run of this attempt was not as in that record */
    char **job_dirs;   /* [n_jobs] directories of the runs of this attempt; an entry may be NULL */
    int n_jobs;
    struct image frames[MAX_FRAMES];
    int n_frames;
};

/* Records the first error of an attempt, which is the cause of later ones. */
void attempt_error(struct attempt *a, const char *kind, const char *text);
/* Runs the agent once: with a model, on given steps, or on steps that are planned for the task. */
void attempt_job(struct attempt_state *s, const char *task, const struct plain_steps *given, bool plans);
/* Opens the desktop of a test. Returns NULL with e. Any thread. */
struct desk *attempt_open_desk(const struct suite_run *run, const struct test *t, struct err *e);
/* Performs the task of the test (attempt_steps.c). */
void attempt_task(struct attempt_state *s);

/* Sets s->passed if the test wants to repeat its last run that passed, and nothing has changed since. */
void passed_find(struct attempt_state *s);
/* Frees what passed_find() has set. */
void passed_forget(struct attempt_state *s);
/* Keeps the record of an attempt that has passed, and removes one that did not pass again.  All files of the
 * attempt must be closed. */
void passed_keep(const struct attempt_state *s);
