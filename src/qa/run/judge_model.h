/* judge_model.h - the judge of a suite's checks: the suite's model, in a session of its own for each
 * question.
 *
 *     struct judge_model model = {.engine = engine, .dialect = d, .seed = 7};
 *     context.judge = judge_model_judge(&model);
 *
 * Nothing of one question is known to the next, and many threads may ask the same judge_model.  The
 * embedded model is not trained to judge: with it the answer is UNKNOWN.
 */
#ifndef HOLORUN_QA_RUN_JUDGE_MODEL_H
#define HOLORUN_QA_RUN_JUDGE_MODEL_H

#include "agent/llm.h"
#include "qa/run/check.h"

struct judge_model { /* all borrowed */
    struct engine *engine;
    const struct dialect *dialect; /* its `judge` is the system prompt; without one a built-in prompt */
    uint64_t seed;
    /* Opens the model to ask instead of the engine's; NULL with e. */
    struct llm *(*partner)(void *arg, struct err *e);
    void *arg;
};

struct judge judge_model_judge(const struct judge_model *m);

#endif
