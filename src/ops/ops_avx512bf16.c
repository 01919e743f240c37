/* ops_avx512bf16.c - the kernels for AVX-512 with dot products: two multiplications a lane of bf16, four of
 * bytes. */
#include <immintrin.h>

#define VEC_WIDEN(h)    ((vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)(h)), 16))
#define VEC_LESS(x)     ((vec)_mm512_reduce_ps((__m512)(x), 0))
#define VEC_SCALE(x, n) ((vec)_mm512_scalef_ps((__m512)(x), (__m512)(n)))

#define VL            16
#define MR            12
#define KERNELS_FILL  ops_avx512bf16_fill
#define VEC_MAX(a, b) ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define VEC_BF16(v)   ((hvec)_mm512_cvtneps_pbh((__m512)(v)))
#define DOT_BF16(acc, word, v)                                                                               \
    ((vec)_mm512_dpbf16_ps((__m512)(acc), (__m512bh)_mm512_set1_epi32((int)(word)), (__m512bh)(v)))
#define DOT_BYTES(acc, u, word)                                                                              \
    ((ivec)_mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(u), _mm512_set1_epi32((int)(word))))
#define VEC_WIDEN_F16(h)    ((vec)_mm512_cvtph_ps((__m256i)(h)))
#define VEC_TRUNCATE_F16(v) ((hvec)_mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_ZERO))
#include "ops/kernels.h"
