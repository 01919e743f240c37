/* check.h - whether a test's desk is as it should be: its checks, one after the other.
 *
 * All are asked, so that a report shows all that is wrong.  A check waits for its yes up to its `seconds`, looking again.
 */
#ifndef HOLORUN_QA_CHECK_H
#define HOLORUN_QA_CHECK_H

#include "base/image.h"
#include "desk/desk.h"
#include "qa/result.h"
#include "screen/screen.h"

/* A model that is asked about pictures, in a session of its own.  NULL ask: nobody; such checks are not answered
 * (ANSWER_UNKNOWN). */
struct judge {
    /* YES, NO or UNKNOWN with *reason (owned by the caller), or ANSWER_ERROR with e. */
    enum answer (*ask)(void *arg, const char *question, const struct image *frames, int n, char **reason,
                       struct err *e);
    void *arg;
};

struct check_scene {
    const struct test *test;
    struct desk *desk;
    struct screen *screen;        /* open on the desk; NULL: it is lost */
    const char *answer, *run_dir; /* of the agent; NULL: none */
    const char *golden_dir;       /* relative png paths begin here */
    const char *out_dir;          /* pictures of differences go here */
    const struct image *frames;   /* the last of the run, oldest first, for a judge */
    int n_frames;
    bool ended;         /* the agent came to an end of its own */
    bool update_golden; /* regions are written instead of compared */
    struct judge judge;
    const volatile int *cancel;
};

/* Fills a->checks of an attempt that has none. */
void checks_run(const struct check_scene *s, struct attempt *a);

#endif
