/* ops_avx512bf16.c - the kernels for AVX-512 with the bf16 dot product: two multiply-adds a lane. */
#include <immintrin.h>

#define VL           16
#define MR           12
#define KERNELS_FILL ops_avx512bf16_fill
#define DOT_BF16(acc, pair, b)                                                                               \
    ((vec)_mm512_dpbf16_ps((__m512)(acc), (__m512bh)_mm512_set1_epi32((int)(pair)), (__m512bh)(b)))
#include "ops/kernels.h"

#include "ops/kernels_mix.h"
