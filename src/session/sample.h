/* sample.h - one token out of a row of logits on the host.
 *
 * ops.h (struct sampler) defines what is sampled, sampling.h its arithmetic; a device with the operation
 * `sample` gives the same token.
 */
#ifndef HOLORUN_SESSION_SAMPLE_H
#define HOLORUN_SESSION_SAMPLE_H

#include "ops/ops.h"

/* Greedy or sampled among the ids below n.  With a temperature: softmax(logits / temperature), cut to the
 * smallest set of likeliest tokens that holds top_p, and how->random picks one of them. */
struct sampled sample_token(const float *logits, int n, const struct sampler *how);

#endif
