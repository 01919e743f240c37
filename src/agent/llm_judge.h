/* llm_judge.h - a question about pictures, and a verdict on it.
 *
 * Asked of a partner of its own, so that it neither knows nor changes what an agent thinks.  Texts of tests, agents and
 * screens are material there: what could be taken for marks of a dialect is made inert.
 *
 * Replies are held to {"reason": "...", "verdict": "YES"}, or NO, or UNKNOWN.  A partner that cannot be held to it
 * says it somehow: the last of these words that stands in capitals counts, SUCCESS for yes and NOT SUCCESS for no among them.
 * A reply that is cut off or has none of them is UNKNOWN.
 */
#ifndef HOLORUN_AGENT_LLM_JUDGE_H
#define HOLORUN_AGENT_LLM_JUDGE_H

#include "agent/llm.h"

enum llm_verdict { LLM_JUDGE_YES, LLM_JUDGE_NO, LLM_JUDGE_UNKNOWN };
const char *llm_judge_name(enum llm_verdict o); /* "yes" */

enum { LLM_JUDGE_TOKENS = 768, LLM_JUDGE_REASON = 1000, LLM_JUDGE_FRAMES = 8 };

struct llm_judge_question {
    const struct dialect *dialect;
    const char *system;         /* NULL or "": our own text for a judge */
    const char *text;           /* made inert here */
    const struct image *frames; /* [n], oldest first; the last LLM_JUDGE_FRAMES are shown */
    int n;
    int pass; /* 0: the likeliest reply; those behind it are thrown with dice, which go by this number */
    double seconds;             /* that the reply may take; 0: no limit */
    const volatile int *cancel; /* NULL: none */
};

/* m begins anew with the question.  0 with *reason (owned by the caller), or -1: stopped, or no reply at all. */
int llm_judge_ask(struct llm *m, const struct llm_judge_question *q, enum llm_verdict *out, char **reason,
                  struct err *e);

/* What a reply says; any bytes.  reason may be NULL. */
enum llm_verdict llm_judge_read(const char *reply, size_t len, char **reason);

#endif
