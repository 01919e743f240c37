/* sample.h - one token out of a row of logits on the host.
 *
 * What is chosen is defined by ops.h (struct choosing) and computed by the arithmetic of choose.h; a device that has the
 * operation `choose` chooses the same.
 */
#ifndef HOLORUN_SESSION_SAMPLE_H
#define HOLORUN_SESSION_SAMPLE_H

#include "ops/ops.h"

/* Chooses among the ids below n.  With a temperature: softmax(logits / temperature) cut to the smallest set of
 * most probable tokens that holds top_p, and the random number picks one. */
struct choice sample_token(const float *logits, int n, const struct choosing *how);

#endif
