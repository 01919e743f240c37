/* llm_judge.h - asks a model a question about screenshots and reads its verdict.
 *
 * The judge has its own conversation, which neither reads nor changes the agent's. Dialect marks in the
 * texts of tests, agents and screens are escaped.
 *
 * A model's assist (assist.h) may decide about the newest frame; the model is then asked about that frame
 * alone, with the questions of the assist.
 *
 * Other models reply in the form {"reason": "...", "verdict": "YES"}, NO or UNKNOWN, which the grammar
 * forces. A reply without a grammar is searched for the last of these words in capitals; SUCCESS counts as
 * yes, NOT SUCCESS as no. A reply that is cut off or contains none of these words is UNKNOWN.
 */
#pragma once

#include "llm/assist.h"
#include "llm/llm.h"

enum llm_verdict { LLM_JUDGE_YES, LLM_JUDGE_NO, LLM_JUDGE_UNKNOWN };
const char *llm_judge_name(enum llm_verdict o); /* "yes" */

enum { LLM_JUDGE_TOKENS = 768, LLM_JUDGE_REASON = 1000, LLM_JUDGE_FRAMES = 8 };

struct llm_judge_question {
    const struct dialect *dialect;
    struct assist *assist;      /* assist of the model; NULL: none */
    const char *system;         /* NULL or "": the default text */
    const char *text;           /* escaped by llm_judge_ask() */
    const char *shows;          /* text to look for, if the question is only that; else NULL */
    const struct image *frames; /* [n], oldest first; the last LLM_JUDGE_FRAMES are shown */
    int n;
    int pass;                   /* 0: greedy; others: sampled with random numbers that depend on pass */
    double seconds;             /* time limit for the reply; 0: none */
    const volatile int *cancel; /* NULL: none */
};

/* Asks the question in a new conversation of m. Returns 0 with the verdict in *out and *reason (owned by the
 * caller), or -1 with e if stopped or without any reply. */
int llm_judge_ask(struct llm *m, const struct llm_judge_question *q, enum llm_verdict *out, char **reason,
                  struct err *e);

/* Reads the verdict of a reply, which may contain any bytes. Sets *reason (owned by the caller), unless
 * reason is NULL. */
enum llm_verdict llm_judge_read(const char *reply, size_t len, char **reason);
