/* sample.h - one token out of a row of logits. */
#ifndef HOLORUN_MODEL_SAMPLE_H
#define HOLORUN_MODEL_SAMPLE_H

#include "model/generate.h"

#include <stdint.h>

/* Chooses among ids below n whose bit is set in `known`, and in `allowed` too unless that is NULL.
 * temperature 0: the largest logit, the lowest id of equals.  Otherwise softmax(logits / temperature)
 * cut to the smallest set of most probable tokens that holds top_p, and the random number in [0, 1)
 * picks one.  -1 when nothing is allowed or the logits are not numbers. */
int sample_token(const float *logits, int n, const uint64_t *known, const uint64_t *allowed,
                 const struct sampling *p, double random, struct token_choice *out);

#endif
