/* check.h - the checks of a test, run after its agent on the same desktop.
 *
 * All of them run, so that a report shows every failure. A check of the desktop is retried until it says yes,
 * for up to its `seconds`; a model is asked once. */
#pragma once

#include "base/image.h"
#include "desk/desk.h"
#include "gate/gate.h"
#include "llm/llm.h"
#include "qa/report/result.h"
#include "screen/screen.h"

struct judge_question {
    const char *text;
    const char *shows; /* the text to look for, if the question is only whether it is visible; or NULL */
    const struct image *frames; /* oldest first, borrowed */
    int n;
    int pass;       /* number of this repetition of a question, from 0; later ones use random sampling */
    double seconds; /* time limit; 0: none */
    const volatile int *cancel; /* may be NULL */
};

/* A model that answers questions about screenshots, each in a session of its own. ask NULL: no model; such
 * checks are ANSWER_UNKNOWN. */
struct judge {
    /* Returns YES, NO or UNKNOWN with *reason (owned by the caller, or NULL), or ANSWER_ERROR with e. */
    enum answer (*ask)(void *arg, const struct judge_question *q, char **reason, struct err *e);
    void *arg;
};

/* The judge of a suite: its model. Questions do not influence each other, and several threads may use the
 * same judge_model. The embedded model answers yes or no to whether the screen shows something, or UNKNOWN if
 * it is not sure. */
struct judge_model { /* all borrowed */
    struct engine *engine;
    const struct dialect *dialect; /* its `judge` is the system prompt; if empty, a built-in prompt is used */
    uint64_t seed;
    /* Opens another model to ask instead of the engine's; NULL with e. */
    struct llm *(*partner)(void *arg, struct err *e);
    void *arg;
};
struct judge judge_model_judge(const struct judge_model *m);

struct check_context {
    const struct test *test;
    struct desk *desk;     /* NULL: lost */
    struct screen *screen; /* open on the desk; NULL: lost */
    /* gate of the run, whose hidden areas are hidden in screenshots here too; or NULL */
    struct gate *gate;
    const char *answer, *run_dir; /* of the agent; or NULL */
    const char *golden_dir;       /* relative png paths are relative to this directory */
    /* directory for difference images, such as "check-2-actual.png"; NULL: none are written */
    const char *out_dir;
    const struct image
        *frames; /* the last frames of the run, oldest first; a judge sees the current screen after them */
    int n_frames;
    bool ended;         /* the agent finished without being stopped */
    bool update_golden; /* writes the images of regions instead of comparing them */
    struct judge judge;
    const volatile int *cancel; /* may be NULL */
};

/* Waits until a check says yes, for up to its `seconds`. Returns ERR_TIME with the actual state; ERR_ENV if
 * it cannot be checked. */
int check_wait(const struct check_context *s, const struct check *c, struct err *e);

/* Fills a->checks of an attempt that has none. Returns -1 if *cancel was set and the remaining checks were
 * not run. */
int checks_run(const struct check_context *s, struct attempt *a);
