/* check.h - the checks of a test, run after its agent on the same desk.
 *
 * All of them run, so that a report shows everything that is wrong.  A check of the desk is retried until
 * it says yes, for up to its `seconds`; a model is asked once.
 */
#ifndef HOLORUN_QA_RUN_CHECK_H
#define HOLORUN_QA_RUN_CHECK_H

#include "base/image.h"
#include "desk/desk.h"
#include "gate/gate.h"
#include "llm/llm.h"
#include "qa/report/result.h"
#include "screen/screen.h"

struct judge_question {
    const char *text;
    const char
        *shows; /* what is looked for, when the question is only whether the screen shows it; or NULL */
    const struct image *frames; /* oldest first, borrowed */
    int n;
    int pass;       /* of several of the same question, from 0; later ones are sampled stochastically */
    double seconds; /* time limit; 0: none */
    const volatile int *cancel; /* or NULL */
};

/* A model that is asked about screenshots, each question in a session of its own.  ask NULL: no model, and
 * such checks are ANSWER_UNKNOWN. */
struct judge {
    /* YES, NO or UNKNOWN with *reason (owned by the caller, or NULL), or ANSWER_ERROR with e. */
    enum answer (*ask)(void *arg, const struct judge_question *q, char **reason, struct err *e);
    void *arg;
};

/* The judge of a suite: its model.  Nothing of one question is known to the next, and many threads may ask
 * the same judge_model.  The embedded model says yes or no about what the screen shows, or UNKNOWN where it
 * is not sure. */
struct judge_model { /* all borrowed */
    struct engine *engine;
    const struct dialect *dialect; /* its `judge` is the system prompt; without one a built-in prompt */
    uint64_t seed;
    /* Opens the model to ask instead of the engine's; NULL with e. */
    struct llm *(*partner)(void *arg, struct err *e);
    void *arg;
};
struct judge judge_model_judge(const struct judge_model *m);

struct check_context {
    const struct test *test;
    struct desk *desk;            /* NULL: lost */
    struct screen *screen;        /* open on the desk; NULL: lost */
    struct gate *gate;            /* of the run: hides in screenshots what the run hid; or NULL */
    const char *answer, *run_dir; /* of the agent; or NULL */
    const char *golden_dir;       /* relative png paths start here */
    const char *out_dir; /* for images of differences, "check-2-actual.png"; NULL: none are written */
    const struct image
        *frames; /* the last of the run, oldest first; a judge sees the current screen after them */
    int n_frames;
    bool ended;         /* the agent finished by itself */
    bool update_golden; /* regions are written instead of compared */
    struct judge judge;
    const volatile int *cancel; /* or NULL */
};

/* Waits until a check says yes, for up to its `seconds`.  ERR_TIME with what there is instead; ERR_ENV: it
 * cannot be checked. */
int check_wait(const struct check_context *s, const struct check *c, struct err *e);

/* Fills a->checks of an attempt that has none.  -1: *cancel was set, and the remaining checks were not
 * run. */
int checks_run(const struct check_context *s, struct attempt *a);

#endif
