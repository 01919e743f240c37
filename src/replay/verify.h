/* verify.h - a recorded run done again by a model, and whether the same comes out.
 *
 * The model is told what was told then, in the same pieces: the same system text, the same words, the screenshots as
 * they lie in frames/.  Each reply is generated again with the settings and the dice of then.  Compared are, in this
 * order: model and dialect by their hashes, each screenshot with its line in frames.idx, the tokens of each prompt, the
 * tokens of each reply, the hash of the logits that they were chosen from, and the probabilities.  A model or a
 * screenshot that is another is named, and the work goes on to find out where that shows; the first difference of a
 * prompt or a reply ends it, because all that follows comes from it.
 *
 * On a processor the same model, instruction set and kind of numbers give the same bits.  Where choosing happens on a
 * device its logits never come to the host: then the probabilities, which are made of all of them, are what is compared.
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
    struct difference differences[VERIFY_MAX_DIFFERENCES]; /* the first ones, in the order they were found */
    int n;
    int steps, replies, hashed; /* done again; replies whose logits were compared */
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

/* Adds a difference. */
void verify_note(struct verification *v, const struct difference *d);

/* 0 when it could be done, whatever came out; -1 when not (stopped, a damaged record).  *v may hold differences of model
 * and dialect already. */
int verify_run(const struct timeline *t, const struct verify_options *o, struct verification *v,
               struct err *e);

#endif
