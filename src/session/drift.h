/* drift.h - measures the error of f16 recurrent states against f32 and rejects models for which it is too
 * large.
 *
 * An f16 state is rounded at every token, stochastically (ops/stochastic_round.h), so that the errors of
 * many tokens cancel. Heads with a slow decay accumulate the remaining error, and values beyond 65504
 * saturate. The effect on a model cannot be derived from its shape, so engine_open() measures it: a prompt
 * of synthetic tokens and then single tokens go through the model with an f32 and with an f16 state in one
 * batch, and the distributions of the next token are compared after each.
 *
 * DRIFT_KL bounds the mean divergence: 0.01 nat moves at most 7 % of the probability (Pinsker: sqrt(KL /
 * 2)). On the embedded model bf16 activations cost 0.0002 nat, int8 weights 0.0006, fp8 weights 0.006 and
 * int4 weights 0.05; the bound is slightly above that of the worst 8-bit weights. DRIFT_SAME bounds how
 * often the most probable token, which a greedy agent generates, stays the same. It is below 1 because
 * after synthetic text some tokens are about equally probable and any rounding reorders them. A model that
 * saturates or accumulates errors misses both bounds by a factor of a hundred.
 *
 * The result is cached in a file next to the quantized weights (weights_cache.h), per model, storage types
 * and backend. */
#pragma once

#include "session/session.h"

#define DRIFT_KL   0.01 /* nat, mean over all tokens */
#define DRIFT_SAME 0.95 /* share of tokens after which the most probable next token is the same */

struct drift {
    int steps, same;  /* tokens compared; those with the same most probable next token */
    double sum, last; /* KL divergence in nat: sum over all tokens, over the last quarter */
    double most;      /* largest KL divergence of a token */
    double logit;     /* largest absolute difference of two logits */
};

/* Adds the comparison of one token: n logits of each model. late: it belongs to the last quarter. */
void drift_add(struct drift *d, const float *exact, const float *x, int n, bool late);

/* Measures g, whose states are f16, or loads the cached result. Returns -1 with ERR_MODEL beyond the
 * bounds. */
int drift_gate(struct engine *g, const struct engine_options *o, struct err *e);
