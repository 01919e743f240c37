/* verify.h - verification: repeats a recorded run's inference with its model and compares the results bit by
 * bit.
 *
 * The model reads the same prompts in the same chunks: system text, texts, and the screenshots from frames/.
 * Each reply is generated with the recorded settings and random numbers. These are compared, in this order:
 * model and dialect by their hashes, each screenshot with its line in frames.idx, the tokens of each prompt,
 * the tokens of each reply, the hash of the logits that they were sampled from, and the log-probabilities.
 * After a different model or screenshot the verification continues, to find the first effect. The first
 * difference in a prompt or a reply ends it, because all later ones would follow from it.
 *
 * On a CPU, the same model, instruction set and storage type give the same bits. A GPU that samples tokens
 * itself never copies the logits to the host; then only the log-probabilities are compared. */
#pragma once

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
const char *differs_name(enum differs d); /* Returns the name of a kind of difference, such as "token". */

struct difference {
    enum differs kind;
    int step;      /* 0: the difference concerns the whole run */
    int64_t token; /* index in the reply or in the prompt, from 0; -1: none */
    char recorded[VERIFY_TEXT], now[VERIFY_TEXT], what[VERIFY_TEXT];
};

struct verification {
    struct difference differences[VERIFY_MAX_DIFFERENCES]; /* the first VERIFY_MAX_DIFFERENCES of them */
    int n;
    int steps, replies, hashed; /* reproduced; hashed: replies whose logits were compared */
    int64_t tokens;
};

struct verify_options {
    struct engine *engine;
    const struct dialect *dialect;
    enum window_policy window;
    int max_images;
    uint64_t seed;
    const volatile int *cancel;
    /* called after each reply; may be NULL */
    void (*stepped)(void *arg, int step, const struct verification *v);
    void *arg;
};

void verify_note(struct verification *v, const struct difference *d);

/* Verifies a run. Returns 0 if it was completed, with or without differences; -1 on a stop or if the
 * recording is damaged. *v may then already have differences in model and dialect. */
int verify_run(const struct timeline *t, const struct verify_options *o, struct verification *v,
               struct err *e);
