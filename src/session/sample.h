/* sample.h - one token out of a row of logits on the host.
 *
 * ops.h (struct choosing) defines what is chosen, choose.h its arithmetic; a device with the operation
 * `choose` chooses the same token.
 */
#ifndef HOLORUN_SESSION_SAMPLE_H
#define HOLORUN_SESSION_SAMPLE_H

#include "ops/ops.h"

/* Greedy or sampled among the ids below n.  With a temperature: softmax(logits / temperature), cut to the
 * smallest set of likeliest tokens that holds top_p, and how->random picks one of them. */
struct choice sample_token(const float *logits, int n, const struct choosing *how);

#endif
