/* sample_sums.h - what sampling asks of a whole row of logits, as fast as this processor does it.
 *
 * A vocabulary of 250,000 ids is read several times for each token: one id after another that takes as long
 * as a twentieth of a small model.  The sums are integers (sampling.h), so that every form has the same bits.
 */
#ifndef HOLORUN_OPS_SAMPLE_SUMS_H
#define HOLORUN_OPS_SAMPLE_SUMS_H

#include "ops/ops.h"

/* Ids below n that are in `set` and, where it is not NULL, in `also`: bit id % 64 of word id / 64. */
struct sample_sums {
    const char *name;
    /* The largest logit; -INFINITY when there is no id, NaN when any logit is NaN. */
    float (*largest)(const float *logits, int n, const uint64_t *set, const uint64_t *also);
    /* The first id with this logit, -1 when there is none. */
    int32_t (*first)(const float *logits, int n, const uint64_t *set, const uint64_t *also, float logit);
    /* Sum of weights. */
    uint64_t (*mass)(const float *logits, int n, const uint64_t *set, const uint64_t *also, float largest,
                     double rate);
    /* The ids whose logit is at least this, ascending; there is room for all.  Returns how many. */
    int (*from)(const float *logits, int n, const uint64_t *set, const uint64_t *also, float least,
                int32_t *ids);
};

/* The k-th form that runs here, slowest first and plain one id after another; NULL beyond the last. */
const struct sample_sums *sample_sums(int k);

/* The fastest. */
const struct sample_sums *sample_sums_here(void);

#endif
