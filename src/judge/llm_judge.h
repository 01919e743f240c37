/* llm_judge.h - asks a model a question about screenshots and reads its verdict.
 *
 * The judge has a conversation of its own, which neither knows nor changes the agent's.  Marks of a dialect
 * in the texts of tests, agents and screens are made inert.
 *
 * A model's assist (assist.h) may decide about the newest frame, and then the model is asked about that
 * frame alone, as the assist wants.
 *
 * Other models reply in the form {"reason": "...", "verdict": "YES"}, NO or UNKNOWN, which the grammar
 * forces.  A reply without a grammar is searched for the last of these words in capitals; SUCCESS counts as
 * yes, NOT SUCCESS as no.  A reply that is cut off or has none of them is UNKNOWN.
 */
#ifndef HOLORUN_JUDGE_LLM_JUDGE_H
#define HOLORUN_JUDGE_LLM_JUDGE_H

#include "llm/assist.h"
#include "llm/llm.h"

enum llm_verdict { LLM_JUDGE_YES, LLM_JUDGE_NO, LLM_JUDGE_UNKNOWN };
const char *llm_judge_name(enum llm_verdict o); /* "yes" */

enum { LLM_JUDGE_TOKENS = 768, LLM_JUDGE_REASON = 1000, LLM_JUDGE_FRAMES = 8 };

struct llm_judge_question {
    const struct dialect *dialect;
    struct assist *assist;      /* of the model; NULL: none */
    const char *system;         /* NULL or "": our own text */
    const char *text;           /* made inert here */
    const char *shows;          /* what is looked for, when that alone is asked; NULL: more than that */
    const struct image *frames; /* [n], oldest first; the last LLM_JUDGE_FRAMES are shown */
    int n;
    int pass;                   /* 0: greedy; others sample with random numbers that depend on it */
    double seconds;             /* limit for the reply; 0: none */
    const volatile int *cancel; /* NULL: none */
};

/* Begins a new conversation of m.  0 with *reason (owned by the caller), or -1: stopped, or no reply at
 * all. */
int llm_judge_ask(struct llm *m, const struct llm_judge_question *q, enum llm_verdict *out, char **reason,
                  struct err *e);

/* Reads the verdict of a reply, which may be any bytes.  reason may be NULL. */
enum llm_verdict llm_judge_read(const char *reply, size_t len, char **reason);

#endif
