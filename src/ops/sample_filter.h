/* sample_filter.h - repetition penalties, top_k and min_p, applied on the host before sampling.
 *
 *     1. repetition   logits of ids in the prompt or the reply are divided by the penalty, negative ones
 *                     multiplied by it
 *     2. frequency, presence   subtracted from logits of ids in the reply: frequency once per occurrence,
 *                     presence once
 *     3. temperature
 *     4. top_k        the k largest logits, and those equal to the k-th
 *     5. top_p        the fewest most probable of these whose share of their probability reaches top_p
 *     6. min_p        those of these with at least this fraction of the largest probability
 *
 * The order is that of transformers. Sampling uses the integer arithmetic of sampling.h, so results are
 * bit-identical on every machine. Log-probabilities are those of the logits before step 1. */
#pragma once

#include "ops/ops.h"

struct sample_filter { /* zero: off */
    int top_k;
    float min_p;
    float presence, frequency;
    float repetition; /* 1 is also off */
    const int32_t
        /* [n_tokens]: prompt and reply, including image tokens, which are not known ids */
        *tokens;
    int64_t n_tokens, reply; /* tokens starting at `reply` are the reply */
};

/* Returns whether any filter is on. */
bool sample_filter_is_on(const struct sample_filter *f);

/* Samples like sample_token() (sampling.h), with the filters applied. */
struct sampled sample_filtered(const float *logits, int n, const struct sampler *how,
                               const struct sample_filter *f);

/* Returns the k-th largest (from 1) of the finite logits of ids below n that are in `known` and in
 * `allowed` (NULL: all); -INFINITY if there are fewer. */
float sample_kth_largest(const float *logits, int n, const uint64_t *known, const uint64_t *allowed, int k);
