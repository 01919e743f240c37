/* ops_neonbf16.c - CPU kernels for NEON with dot products of bf16 (BF16), and of unsigned and signed bytes
 * (I8MM). */
#define VL           4
#define MR           4
#define KERNELS_FILL ops_neonbf16_fill
#define VEC_BF16(v)  ((hvec)vreinterpret_u16_bf16(vcvt_bf16_f32((float32x4_t)(v))))
#define DOT_BF16(acc, word, v)                                                                               \
    ((vec)vbfdotq_f32((float32x4_t)(acc), (bfloat16x8_t)vdupq_n_u32(word), (bfloat16x8_t)(v)))
#define DOT_BYTES(acc, u, word)                                                                              \
    ((ivec)vusdotq_s32((int32x4_t)(acc), (uint8x16_t)(u), (int8x16_t)vdupq_n_u32(word)))
#include "ops/kernels.h"
