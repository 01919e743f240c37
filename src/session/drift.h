/* drift.h - how far rounding leads a model from what it would say, and whether that is near enough.
 *
 * A state in f16 is rounded at every token for as long as a conversation goes on.  By chance (ops/stochastic_round.h), so that the
 * errors of many tokens cancel; but heads that forget slowly add up what is left, and numbers beyond 65504 are cut
 * off.  Whether a model minds cannot be told from its shape.  So whoever asks for fp16 has it measured first: a
 * prompt of made-up tokens and then more of them one by one go through the model twice at once, with a state in f32
 * and one in f16, everything else being equal, and what comes next is compared after each.
 *
 * The bounds.  DRIFT_KL is for the mean divergence: of 0.01 nat at most 7 % of the probability is elsewhere (Pinsker:
 * sqrt(KL / 2)).  On the model that comes with holorun activations in bf16 cost 0.0002, weights in int8 0.0006, in fp8
 * 0.006 and in int4 0.05: a state may do no more harm than the weakest of 8 bits.  DRIFT_SAME is for the likeliest
 * token, which is what an agent writes.  Not all: after made-up text some are about equally likely, and any rounding
 * changes which comes first.  A model that saturates, or adds up what is left, is off by a hundred times as much.
 *
 * The figure is kept in a file beside the weights' (weights_cache.h), for a model, its numbers, and a backend.
 */
#ifndef HOLORUN_SESSION_DRIFT_H
#define HOLORUN_SESSION_DRIFT_H

#include "session/session.h"

#define DRIFT_KL   0.01 /* nat, the mean over all tokens */
#define DRIFT_SAME 0.95 /* of the tokens have the same likeliest next one */

struct drift {
    int steps, same;  /* tokens, and after how many of them the likeliest next one is the same */
    double sum, last; /* Kullback-Leibler divergence in nat: of all, of the last quarter */
    double most;      /* and the largest */
    double logit;     /* largest difference of two logits */
};

/* One token more: n logits of each; late: it is of the last quarter. */
void drift_add(struct drift *d, const float *exact, const float *x, int n, bool late);

/* Measures g, whose states are fp16, or finds the figure in the file; -1 where it is beyond the bounds. */
int drift_gate(struct engine *g, const struct engine_options *o, struct err *e);

#endif
