/* products.h - matrix products with quantized weights, compared with sums in double precision. */
#pragma once

#include "ops/ops.h"
#include "ops/quant.h"

/* Multiplies random activations in [-1, 1) by the matrix s in a format, whose values [rows, cols] are given.
 * Returns the largest difference from sums in double precision, as a part of the product of their factors'
 * norms (a single sum may be near zero by chance). Fails the test unless each row has the same bits alone. */
double product_apart(struct backend *b, enum quant_format format, const struct quant_source *s,
                     const float *values, enum dtype act, int64_t tokens, uint64_t *rng);
