/* sample_sums.h - passes over a row of logits that sampling needs, one variant per instruction set.
 *
 * Sampling one token reads the vocabulary (up to 250,000 ids) several times; a scalar loop takes about a
 * twentieth of a decode step of a small model. Sums are integers (sampling.h), so all variants return
 * identical bits. */
#pragma once

#include "ops/ops.h"

/* Functions over the ids below n that are in `set` and in `also` (NULL: all): bit id % 64 of word id / 64. */
struct sample_sums {
    const char *name;
    /* Returns the largest logit; -INFINITY without an id, NaN if any logit is NaN. */
    float (*largest)(const float *logits, int n, const uint64_t *set, const uint64_t *also);
    /* Returns the first id with this logit, or -1. */
    int32_t (*first)(const float *logits, int n, const uint64_t *set, const uint64_t *also, float logit);
    /* Returns the sum of weights. */
    uint64_t (*mass)(const float *logits, int n, const uint64_t *set, const uint64_t *also, float largest,
                     double rate);
    /* Writes the ids whose logit is at least `least`, ascending, to ids[n]; returns their number. */
    int (*from)(const float *logits, int n, const uint64_t *set, const uint64_t *also, float least,
                int32_t *ids);
};

/* Returns the k-th variant that this CPU supports, slowest first, starting with the plain one; NULL beyond
 * the last. */
const struct sample_sums *sample_sums(int k);

/* Returns the fastest variant. */
const struct sample_sums *sample_sums_here(void);
