/* generate.h - tokens out of logits: sampling, grammar, forced tokens, stop. */
#ifndef HOLORUN_MODEL_GENERATE_H
#define HOLORUN_MODEL_GENERATE_H

#include "base/buf.h"
#include "model/grammar.h"
#include "model/model.h"

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
};

struct generated {
    struct buf text; /* added tokens spelled out, end-of-turn token left out */
    struct token_choice *choices;
    int n, forced; /* tokens in all, of which appended without sampling */
    enum finish finish;
    double ms;
};

/* Continues the session until a stop token (config's eos list), the grammar is finished, max_tokens,
 * or *cancel becomes non-zero.  grammar may be NULL.  The generated ids, the stop token included,
 * are part of the session afterwards.  on_text may be NULL; it sees text as it comes.
 * The caller calls generated_free also after a failure. */
int generate(struct session *s, struct grammar *g, const struct sampling *p, const volatile int *cancel,
             void (*on_text)(void *arg, const char *text, size_t len), void *arg, struct generated *out,
             struct err *e);
void generated_free(struct generated *g);

/* The set of ids that may ever be generated, a bit for each: every token of the tokenizer but the mark of an image row,
 * which stands for pixels.  The caller frees it. */
uint64_t *generate_known(const struct engine *g);

#endif
