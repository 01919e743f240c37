/* kernels_neon.h - the operations of kernels_avx.h for vectors of 4 lanes (NEON); part of kernels_core.h. */
#pragma once

#include "ops/stochastic_round.h"

#include <arm_neon.h>
#include <stdbool.h>

#define VECTOR_REGISTER "w"

#define REGISTERS 32

#define VEC_MAX(a, b)                                                                                        \
    ((vec)vbslq_f32(vcgtq_f32((float32x4_t)(a), (float32x4_t)(b)), (float32x4_t)(a), (float32x4_t)(b)))
#define VEC_WIDEN(h)        ((vec)vshll_n_u16((uint16x4_t)(h), 16))
#define VEC_WIDEN_F16(h)    ((vec)vcvt_f32_f16((float16x4_t)(h)))
#define VEC_TRUNCATE_F16(v) vec_truncate_f16(v)
#define IVEC_ROUND(v)       ((ivec)vcvtnq_s32_f32((float32x4_t)(v)))
#define STORE_BYTES(p, v)   store_bytes(p, v)
#define SHUFFLE_BYTES(t, i) ((uvec)vqtbl1q_u8((uint8x16_t)(t), (uint8x16_t)(i)))
#define SIGNED_BYTES(p)     ((ivec)vmovl_s16(short_bytes(p)))
#define BYTES(p)            ((uvec)SIGNED_BYTES(p) & 255)
#define SHORT_BYTES(p)      ((shvec)short_bytes(p))

/* Rounds like f16_truncate(): the conversion of the processor would round to the nearest. */
static inline __attribute__((always_inline)) hvec vec_truncate_f16(vec v)
{
    uint32x4_t u = (uint32x4_t)v, a = u & ~F16_SIGN, sign = u >> 16 & 0x8000u;
    uint32x4_t large = vminq_u32((a - F16_LOW + 0x800000u) >> STOCHASTIC_BITS, vdupq_n_u32(0x7bff));
    uint32x4_t small = vcvtq_u32_f32((float32x4_t)a * 16777216.0f);
    uint32x4_t bits = vbslq_u32(vcltq_u32(a, vdupq_n_u32(F16_LOW)), small, large);
    bits = vbslq_u32(vcgeq_u32(a, vdupq_n_u32(F16_EXP)), vdupq_n_u32(0x7c00), bits);
    bits |= vcgtq_u32(a, vdupq_n_u32(F16_EXP)) & 0x7e00u;
    return (hvec)vmovn_u32(bits | sign);
}

static inline __attribute__((always_inline)) void store_bytes(int8_t *p, ivec v)
{
    int16x4_t words = vmovn_s32((int32x4_t)v);
    uint32_t bytes = vget_lane_u32((uint32x2_t)vmovn_s16(vcombine_s16(words, words)), 0);
    memcpy(p, &bytes, sizeof bytes);
}

static inline __attribute__((always_inline)) int16x4_t short_bytes(const void *p)
{
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vget_low_s16(vmovl_s8((int8x8_t)vdup_n_u32(bytes)));
}

typedef struct {
    uint8x16x4_t bytes;
} table16;

static inline __attribute__((always_inline)) uvec lookup(table16 t, uvec idx)
{
    return (uvec)vqtbl4q_u8(t.bytes, (uint8x16_t)((idx & 15) * 0x04040404u + 0x03020100u));
}

/* The sum of two products of a centred code and an activation is at most 2 * 128 * 127 < 2^15. */
static inline __attribute__((always_inline)) wvec byte_products(uvec u, uint32_t x, const bool wide)
{
    int8x16_t left = (int8x16_t)(u ^ (wide ? 0x80808080u : 0)), right = (int8x16_t)vdupq_n_u32(x);
    return (wvec)vpaddq_s16(vmull_s8(vget_low_s8(left), vget_low_s8(right)), vmull_high_s8(left, right));
}

static inline __attribute__((always_inline)) ivec add_products(ivec acc, wvec v)
{
    return (ivec)vpadalq_s16((int32x4_t)acc, (int16x8_t)v);
}
