/* sample_filter.h - penalties and cuts before a token is sampled, on the host.
 *
 *   1. repetition   logits of ids that the prompt or the reply has are divided by the penalty, negative ones
 *                   multiplied by it
 *   2. frequency, presence   are subtracted from logits of ids that the reply has: the first once per
 *                   occurrence, the second once
 *   3. temperature
 *   4. top_k        the k largest logits, and those that are equal to the k-th
 *   5. top_p        the fewest likeliest of these that hold so much of their probability
 *   6. min_p        those of these that have at least this part of the likeliest one's probability
 *
 * The order is that of transformers.  The drawing is the integer arithmetic of sampling.h, so that results
 * are the same to the bit on every machine.  Log-probabilities are those of the logits before step 1.
 */
#ifndef HOLORUN_OPS_SAMPLE_FILTER_H
#define HOLORUN_OPS_SAMPLE_FILTER_H

#include "ops/ops.h"

struct sample_filter { /* zero: off */
    int top_k;
    float min_p;
    float presence, frequency;
    float repetition; /* 1 is off, too */
    const int32_t
        *tokens; /* [n_tokens]: prompt and reply; those of images count, too, and are not known ids */
    int64_t n_tokens, reply; /* tokens from `reply` on are the reply */
};

/* Whether it changes anything. */
bool sample_filter_is_on(const struct sample_filter *f);

/* Like sample_token (sampling.h). */
struct sampled sample_filtered(const float *logits, int n, const struct sampler *how,
                               const struct sample_filter *f);

/* The k-th largest (from 1) of the finite logits of ids below n that are in `known` and, where it is not
 * NULL, in `allowed`; -INFINITY when there are fewer. */
float sample_kth_largest(const float *logits, int n, const uint64_t *known, const uint64_t *allowed, int k);

#endif
