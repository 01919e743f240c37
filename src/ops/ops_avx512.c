/* ops_avx512.c - the kernels for AVX-512 (F, BW, VL, DQ). */
#include <immintrin.h>

#define VEC_WIDEN(h)    ((vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)(h)), 16))
#define VEC_LESS(x)     ((vec)_mm512_reduce_ps((__m512)(x), 0))
#define VEC_SCALE(x, n) ((vec)_mm512_scalef_ps((__m512)(x), (__m512)(n)))

#define VL                  16
#define MR                  12
#define KERNELS_FILL        ops_avx512_fill
#define VEC_MAX(a, b)       ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define VEC_WIDEN_F16(h)    ((vec)_mm512_cvtph_ps((__m256i)(h)))
#define VEC_TRUNCATE_F16(v) ((hvec)_mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_ZERO))
#include "ops/kernels.h"
