/* check.h - whether a test's desk is as it should be: its checks, one after the other.
 *
 * All are asked, so that a report shows all that is wrong.  A check of the desk waits for its yes up to its `seconds`,
 * looking again; a model is asked once.
 */
#ifndef HOLORUN_QA_RUN_CHECK_H
#define HOLORUN_QA_RUN_CHECK_H

#include "base/image.h"
#include "desk/desk.h"
#include "gate/gate.h"
#include "qa/report/result.h"
#include "screen/screen.h"

struct question {
    const char *text;
    const struct image *frames; /* oldest first, borrowed */
    int n;
    int pass;       /* which asking of several in a row, from 0: those behind the first are to throw dice */
    double seconds; /* that an answer may take; 0: no limit */
    const volatile int *cancel; /* NULL: none */
};

/* A model that is asked about pictures, in a session of its own.  NULL ask: nobody; such checks are not answered
 * (ANSWER_UNKNOWN). */
struct judge {
    /* YES, NO or UNKNOWN with *reason (owned by the caller, NULL: none), or ANSWER_ERROR with e. */
    enum answer (*ask)(void *arg, const struct question *q, char **reason, struct err *e);
    void *arg;
};

struct check_scene {
    const struct test *test;
    struct desk *desk;            /* NULL: it is lost */
    struct screen *screen;        /* open on the desk; NULL: it is lost */
    struct gate *gate;            /* of the run: hides in pictures what the run hid; NULL: nothing */
    const char *answer, *run_dir; /* of the agent; NULL: none */
    const char *golden_dir;       /* relative png paths begin here */
    const char *out_dir;          /* pictures of differences go here: "check-2-actual.png"; NULL: nowhere */
    const struct image
        *frames; /* the last of the run, oldest first, for a judge, who sees the screen of now behind them */
    int n_frames;
    bool ended;         /* the agent came to an end of its own */
    bool update_golden; /* regions are written instead of compared */
    struct judge judge;
    const volatile int *cancel; /* NULL: none */
};

/* Fills a->checks of an attempt that has none.  -1: *cancel was set, and the rest was not asked. */
int checks_run(const struct check_scene *s, struct attempt *a);

#endif
