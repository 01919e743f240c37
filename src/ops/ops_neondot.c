/* ops_neondot.c - CPU kernels for NEON with dot products of signed bytes (DotProd). */
#define VL           4
#define MR           4
#define KERNELS_FILL ops_neondot_fill
#define DOT_SIGNED(acc, u, word)                                                                             \
    ((ivec)vdotq_s32((int32x4_t)(acc), (int8x16_t)(u), (int8x16_t)vdupq_n_u32(word)))
#include "ops/kernels.h"
