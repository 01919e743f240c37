/* judge_model.c - see judge_model.h. */
#include "qa/run/judge_model.h"

#include "agent/llm_judge.h"

static enum answer ask_model(void *arg, const struct judge_question *q, char **reason, struct err *e)
{
    static const enum answer answers[] = {
        [LLM_JUDGE_YES] = ANSWER_YES, [LLM_JUDGE_NO] = ANSWER_NO, [LLM_JUDGE_UNKNOWN] = ANSWER_UNKNOWN};
    const struct judge_model *m = arg;
    struct llm_judge_question ask = {.dialect = m->dialect,
                                     .system = m->dialect->judge,
                                     .text = q->text,
                                     .frames = q->frames,
                                     .n = q->n,
                                     .pass = q->pass,
                                     .seconds = q->seconds,
                                     .cancel = q->cancel};
    enum llm_verdict verdict = LLM_JUDGE_UNKNOWN;
    struct llm *llm = m->partner ? m->partner(m->arg, e) : llm_local(m->engine, m->dialect, m->seed);
    int rc = llm ? llm_judge_ask(llm, &ask, &verdict, reason, e) : -1;
    llm_free(llm);
    return rc ? ANSWER_ERROR : answers[verdict];
}

struct judge judge_model_judge(const struct judge_model *m)
{
    return (struct judge){ask_model, (void *)(uintptr_t)m};
}
