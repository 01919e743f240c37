/* ref.h - functions shared by the scalar reference; private to src/ops.
 *
 *     ops_ref.c     products, norms, images, the table
 *     ref_mamba.c   convolution and state space
 *     ref_delta.c   Gated DeltaNet and the operations around it in Qwen3.5
 *     ref_attend.c  attention
 *     ref_moe.c     router and experts
 *     ref_quant.c   quantized matrices, row by row
 *
 * Values are converted to f32 when they are read, sums run in f32 (f64 if the error of a long sum would
 * dominate the comparison), and each result is rounded once when it is stored. */
#pragma once

#include "ops/ops_impl.h"

#include <math.h>
#include <string.h>

static inline float get(struct tensor t, int64_t r, int64_t c)
{
    int64_t i = r * t.stride + c;
    return t.dtype == DT_BF16 ? bf16_to_f32(((const uint16_t *)t.data)[i]) : ((const float *)t.data)[i];
}

static inline void put(struct tensor t, int64_t r, int64_t c, float v)
{
    int64_t i = r * t.stride + c;
    if (t.dtype == DT_BF16)
        ((uint16_t *)t.data)[i] = bf16_from_f32(v);
    else
        ((float *)t.data)[i] = v;
}

/* Returns v as stored in a tensor of t's type. */
static inline float rounded(struct tensor t, float v)
{
    return t.dtype == DT_BF16 ? bf16_to_f32(bf16_from_f32(v)) : v;
}

static inline float silu(float x)
{
    return x / (1.0f + expf(-x));
}

static inline float epilogue(struct tensor y, float v, enum epilogue epi)
{
    switch (epi) {
    case EPI_RELU2:
        v = rounded(y, v);
        return v > 0 ? v * v : 0;
    case EPI_GELU:
        return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
    case EPI_GELU_TANH:
        return 0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
    default:
        return v;
    }
}

/* Returns W[n, k] of a reference weight of any format. */
float ref_number(const struct weight *w, int64_t n, int64_t k);
/* Computes row t of x as it is multiplied with w: [cols] in the order of its columns, rounded if w
 * requires it. */
void ref_row(const struct weight *w, struct tensor x, int64_t t, float *out);

/* Fill in the operations of each file. */
void ref_mamba_fill(struct ops *o);
void ref_delta_fill(struct ops *o);
void ref_attend_fill(struct ops *o);
void ref_moe_fill(struct ops *o);
void ref_quant_fill(struct ops *o);
