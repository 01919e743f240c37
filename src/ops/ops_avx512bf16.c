/* ops_avx512bf16.c - CPU kernels for AVX-512 with dot products: two multiplications per lane for bf16,
 * four for bytes. */
#define VL           16
#define MR           12
#define KERNELS_FILL ops_avx512bf16_fill
#define VEC_BF16(v)  ((hvec)_mm512_cvtneps_pbh((__m512)(v)))
#if defined(__clang__) && __clang_major__ > 14 && __clang_major__ < 18 /* crash in casts to __m512bh */
#define DOT_BF16(acc, word, v)                                                                               \
    ({                                                                                                       \
        vec dot_ = (acc);                                                                                    \
        __asm__("vdpbf16ps %2, %1, %0"                                                                       \
                : "+v"(dot_)                                                                                 \
                : "v"(_mm512_set1_epi32((int)(word))), "v"((__m512i)(v)));                                   \
        dot_;                                                                                                \
    })
#else
#define DOT_BF16(acc, word, v)                                                                               \
    ((vec)_mm512_dpbf16_ps((__m512)(acc), (__m512bh)_mm512_set1_epi32((int)(word)), (__m512bh)(v)))
#endif
#define DOT_BYTES(acc, u, word)                                                                              \
    ((ivec)_mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(u), _mm512_set1_epi32((int)(word))))
#include "ops/kernels.h"
