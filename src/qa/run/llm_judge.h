/* judge.h - the judge of a suite's checks: the suite's own model, in a session of its own for each question.
 *
 *     struct judge_model model = {.engine = g, .dialect = d, .seed = 7};
 *     scene.judge = judge_of(&model);
 *
 * What it asks with is given up after each question: nothing of one is known to the next, and one judge_model may be
 * asked by many threads of a shared engine.  The embedded model has not been taught to judge: it is UNKNOWN with it.
 */
#ifndef HOLORUN_QA_RUN_LLM_JUDGE_H
#define HOLORUN_QA_RUN_LLM_JUDGE_H

#include "agent/llm.h"
#include "qa/run/check.h"

struct judge_model { /* all borrowed */
    struct engine *engine;
    const struct dialect *dialect; /* its "judge" is the system text, else one of ours */
    uint64_t seed;
    /* Whom to ask in place of the engine, for who has none; NULL with e. */
    struct llm *(*partner)(void *arg, struct err *e);
    void *arg;
};

struct judge judge_of(const struct judge_model *m);

#endif
