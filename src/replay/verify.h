/* verify.h - reproduces a recorded run with its model and compares the results bit by bit.
 *
 * The model reads the same prompts in the same chunks: system text, texts, and the screenshots from
 * frames/.  Each reply is generated with the recorded settings and random numbers.  Compared are, in this
 * order: model and dialect by their hashes, each screenshot with its line in frames.idx, the tokens of
 * each prompt, the tokens of each reply, the hash of the logits that they were sampled from, and the
 * log-probabilities.  A different model or screenshot is noted and verification goes on, to find where it
 * shows; the first difference in a prompt or a reply ends it, because everything after follows from it.
 *
 * On a CPU the same model, instruction set and storage type give the same bits.  On a GPU that samples
 * itself the logits never reach the host, and only the log-probabilities are compared.
 */
#ifndef HOLORUN_REPLAY_VERIFY_H
#define HOLORUN_REPLAY_VERIFY_H

#include "replay/timeline.h"

#include <stdio.h>

enum { VERIFY_MAX_DIFFERENCES = 16, VERIFY_TEXT = 200 };

enum differs {
    DIFFERS_MODEL,
    DIFFERS_DIALECT,
    DIFFERS_FRAME,
    DIFFERS_PROMPT,
    DIFFERS_TOKEN,
    DIFFERS_LOGITS,
};
const char *differs_name(enum differs d); /* "token" */

struct difference {
    enum differs kind;
    int step;      /* 0: of the whole run */
    int64_t token; /* in the reply, or in the prompt; from 0, -1: none */
    char recorded[VERIFY_TEXT], now[VERIFY_TEXT], what[VERIFY_TEXT];
};

struct verification {
    struct difference differences[VERIFY_MAX_DIFFERENCES]; /* the first ones */
    int n;
    int steps, replies, hashed; /* reproduced; replies whose logits were compared */
    int64_t tokens;
};

struct verify_options {
    struct engine *engine;
    const struct dialect *dialect;
    enum window_policy window;
    int max_images;
    uint64_t seed;
    const volatile int *cancel;
    void (*stepped)(void *arg, int step, const struct verification *v); /* after each reply; may be NULL */
    void *arg;
};

void verify_note(struct verification *v, const struct difference *d);

/* 0 when it was carried out, with or without differences; -1: stopped, or a damaged record.  *v may
 * already hold differences of model and dialect. */
int verify_run(const struct timeline *t, const struct verify_options *o, struct verification *v,
               struct err *e);

#endif
