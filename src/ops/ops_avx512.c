/* ops_avx512.c - the kernels for AVX-512 (F, BW, VL, DQ). */
#include <immintrin.h>

#define VL            16
#define MR            12
#define KERNELS_FILL  ops_avx512_fill
#define VEC_MAX(a, b) ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#include "ops/kernels.h"
