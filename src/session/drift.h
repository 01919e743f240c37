/* drift.h - how far a model with f16 states drifts from one with f32 states, and whether that is acceptable.
 *
 * An f16 state is rounded at every token, stochastically (ops/stochastic_round.h), so that the errors of
 * many tokens cancel.  But heads that forget slowly accumulate the rest, and values beyond 65504 saturate.
 * How much that harms a model cannot be told from its shape.  So engine_open measures it: a prompt of
 * synthetic tokens and then more of them one by one go through the model with an f32 and with an f16 state
 * in one batch, everything else being equal, and the distributions of the next token are compared after
 * each.
 *
 * The bounds.  DRIFT_KL bounds the mean divergence: with 0.01 nat at most 7 % of the probability is
 * elsewhere (Pinsker: sqrt(KL / 2)).  On the model that comes with holorun, bf16 activations cost 0.0002,
 * int8 weights 0.0006, fp8 weights 0.006 and int4 weights 0.05: a state may do no more harm than the worst
 * 8-bit weights.  DRIFT_SAME bounds how often the likeliest token, which is what an agent writes, stays the
 * same.  It is below 1 because after synthetic text some tokens are about equally likely, and any rounding
 * changes their order.  A model that saturates or accumulates errors misses both bounds by a factor of a
 * hundred.
 *
 * The result is cached in a file beside the quantized weights (weights_cache.h), for a model, its storage
 * types and a backend.
 */
#ifndef HOLORUN_SESSION_DRIFT_H
#define HOLORUN_SESSION_DRIFT_H

#include "session/session.h"

#define DRIFT_KL   0.01 /* nat, mean over all tokens */
#define DRIFT_SAME 0.95 /* share of tokens after which the likeliest next one is the same */

struct drift {
    int steps, same;  /* tokens, and after how many of them the likeliest next one is the same */
    double sum, last; /* Kullback-Leibler divergence in nat: of all tokens, of the last quarter */
    double most;      /* and the largest */
    double logit;     /* largest difference of two logits */
};

/* Adds one token: n logits of each model; late: it is of the last quarter. */
void drift_add(struct drift *d, const float *exact, const float *x, int n, bool late);

/* Measures g, whose states are f16, or finds the result in the cache; -1 beyond the bounds. */
int drift_gate(struct engine *g, const struct engine_options *o, struct err *e);

#endif
