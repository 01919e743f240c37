/* generate.h - tokens out of logits: sampling, grammar, forced tokens, stop. */
#ifndef HOLORUN_SESSION_GENERATE_H
#define HOLORUN_SESSION_GENERATE_H

#include "base/buf.h"
#include "grammar/grammar.h"
#include "session/session.h"

struct sampling {
    float temperature; /* 0: greedy */
    float top_p;       /* 1: off */
    int max_tokens;
};

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_GRAMMAR, FINISH_CANCELLED };

struct token_choice { /* one generated token, for --json and traces */
    int32_t id;
    float logprob;        /* of the unmasked distribution at temperature 1 */
    float logprob_masked; /* after the grammar mask; equal without a grammar */
    bool forced;
    uint32_t end; /* bytes of the text up to here */
};

enum { GENERATE_WIDTH = 64 }; /* most alternatives */

/* What could have been chosen, the likeliest first: after the grammar mask, at temperature 1. */
struct token_alternative {
    int32_t id; /* -1: there is no further one */
    float p;
};

struct generated {
    struct buf text; /* added tokens spelled out, end-of-turn token left out */
    struct token_choice *choices;
    struct token_alternative *alternatives; /* [n][width], or NULL; of a forced token none */
    int width;
    int n, forced; /* tokens in all, of which appended without sampling */
    enum finish finish;
    double ms;
    /* XXH3 of the logits (f32 [V]) that each sampled token was chosen from, one after the other.  Not `hashed`: the
     * choosing happened on a device, and its logits never came to the host. */
    uint64_t logits_hash;
    bool hashed;
};

/* Continues the session until a stop token (config's eos list), the grammar is finished, max_tokens,
 * or *cancel becomes non-zero.  grammar may be NULL.  The generated ids, the stop token included,
 * are part of the session afterwards.  on_text may be NULL; it sees text as it comes.
 * The caller calls generated_free also after a failure. */
int generate(struct session *s, struct grammar *g, const struct sampling *p, const volatile int *cancel,
             void (*on_text)(void *arg, const char *text, size_t len), void *arg, struct generated *out,
             struct err *e);
void generated_free(struct generated *g);

/* The same with more to choose from.  alternatives: so many are kept of each sampled token; the logits come to the host
 * for that, so 0 costs nothing and a number does where a device chooses. */
struct generation {
    struct grammar *grammar; /* may be NULL */
    struct sampling sampling;
    int alternatives;
    const volatile int *cancel;
    void (*on_text)(void *arg, const char *text, size_t len);
    void *arg;
};
int generate_as(struct session *s, const struct generation *how, struct generated *out, struct err *e);

/* The set of ids that may ever be generated, a bit for each: every token of the tokenizer but the mark of an image row,
 * which stands for pixels.  The caller frees it. */
uint64_t *generate_known(const struct engine *g);

/* The likeliest ids below n that are known and allowed (NULL: all of them), into top[width], the rest of which is -1.  The
 * number of them. */
int generate_top(const float *logits, int n, const uint64_t *known, const uint64_t *allowed,
                 struct token_alternative *top, int width);

#endif
