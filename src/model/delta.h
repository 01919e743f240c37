/* delta.h - the gated delta rule of Gated DeltaNet layers (Yang and others, "Gated Delta Networks", 2024).
 *
 *   q = q / |q| / sqrt(dk),  k = k / |k|                each key head, shared by consecutive value heads
 *   S = exp(g) S;  d = beta (v - ST k);  S = S + k dT   each value head: S's answer to k moves towards v
 *   y = ST q                                            from the new state
 *
 * A layer's convolution, gates and gated norm are not part of it.  Two forms of the same mathematics: token
 * by token, and in chunks, whose cost is that of products of small matrices.
 */
#ifndef HOLORUN_MODEL_DELTA_H
#define HOLORUN_MODEL_DELTA_H

#include "ops/ops.h"

#include <stdint.h>

/* Rows of T tokens without gaps: q, k [T, key_heads dk] before they are normalised, v [T, value_heads dv],
 * g <= 0 and beta [T, value_heads]. */
struct delta_rows {
    int64_t tokens;
    const float *q, *k, *v, *g, *beta;
};

/* y [T, value_heads dv]; S [value_heads, dk, dv] is the state before, and becomes the one after. */
void delta_steps(const struct delta_shape *s, const struct delta_rows *x, float *S, float *y);
void delta_scan(const struct delta_shape *s, const struct delta_rows *x, float *S, float *y);

#endif
