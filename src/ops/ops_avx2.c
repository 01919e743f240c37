/* ops_avx2.c - the kernels for AVX2 with FMA. */
#include <immintrin.h>

#define VL                  8
#define MR                  6
#define KERNELS_FILL        ops_avx2_fill
#define VEC_MAX(a, b)       ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define VEC_WIDEN(h)        ((vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)(h)), 16))
#define VEC_WIDEN_F16(h)    ((vec)_mm256_cvtph_ps((__m128i)(h)))
#define VEC_TRUNCATE_F16(v) ((hvec)_mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_ZERO))
#include "ops/kernels.h"
