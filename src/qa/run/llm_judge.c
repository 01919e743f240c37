/* judge.c - see judge.h. */
#include "qa/run/llm_judge.h"

#include "agent/llm_judge.h"

static enum answer judge_ask(void *arg, const struct question *q, char **reason, struct err *e)
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
    enum llm_verdict is = LLM_JUDGE_UNKNOWN;
    struct llm *llm = m->partner ? m->partner(m->arg, e) : llm_local(m->engine, m->dialect, m->seed);
    int rc = llm ? llm_judge_ask(llm, &ask, &is, reason, e) : -1;
    llm_free(llm);
    return rc ? ANSWER_ERROR : answers[is];
}

struct judge judge_of(const struct judge_model *m)
{
    return (struct judge){judge_ask, (void *)(uintptr_t)m};
}
