/* kernels_avx.h - operations on vectors of 8 (AVX2) or 16 (AVX-512) lanes that plain C cannot express; part
 * of kernels_core.h. kernels_neon.h has the same for 4 lanes.
 *
 *   VEC_MAX (a, b)         lane by lane; b where either is NaN
 *   VEC_WIDEN (h)          VL 16-bit values moved to the upper halves of words
 *   VEC_WIDEN_F16 (h)      VL f16 values as f32
 *   VEC_TRUNCATE_F16 (v)   VL values as f16, rounded towards zero
 *   VEC_LESS (x)           x minus the nearest integer, 0 for infinities; only with 16 lanes
 *   VEC_SCALE (x, n)       x 2^n for integers n, 0 where n is -infinity; only with 16 lanes
 *   IVEC_ROUND (v)         VL floats as the nearest integers
 *   STORE_BYTES (p, v)     stores the low bytes of VL integers of -128..127
 *   SHUFFLE_BYTES (t, i)   entries i of a table of 16 bytes
 *   SIGNED_BYTES, BYTES, SHORT_BYTES (p)   VL bytes at p as 32-bit integers, unsigned ones, 16-bit integers
 *   lookup (t, i)          entry i & 15 of a table of 16 words, lane by lane
 *   REGISTERS              number of vector registers
 *   VECTOR_REGISTER        letter of a vector register in assembler statements
 */
#pragma once

#include <immintrin.h>
#include <stdbool.h>

#define VECTOR_REGISTER "v"

#if VL == 16

#define REGISTERS 32

#define VEC_MAX(a, b)       ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define VEC_WIDEN(h)        ((vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)(h)), 16))
#define VEC_WIDEN_F16(h)    ((vec)_mm512_cvtph_ps((__m256i)(h)))
#define VEC_TRUNCATE_F16(v) ((hvec)_mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_ZERO))
#define VEC_LESS(x)         ((vec)_mm512_reduce_ps((__m512)(x), 0))
#define VEC_SCALE(x, n)     ((vec)_mm512_scalef_ps((__m512)(x), (__m512)(n)))
#define IVEC_ROUND(v)       ((ivec)_mm512_cvtps_epi32((__m512)(v)))
#define STORE_BYTES(p, v)   _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi32_epi8((__m512i)(v)))
#define SHUFFLE_BYTES(t, i) ((uvec)_mm512_shuffle_epi8(_mm512_broadcast_i32x4((__m128i)(t)), (__m512i)(i)))
#define SIGNED_BYTES(p)     ((ivec)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))))
#define BYTES(p)            ((uvec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))))
#define SHORT_BYTES(p)      ((shvec)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p))))

typedef struct {
    uvec words;
} table16;

static inline __attribute__((always_inline)) uvec lookup(table16 t, uvec idx)
{
    return (uvec)_mm512_permutexvar_epi32((__m512i)idx, (__m512i)t.words);
}

/* Returns the products of the codes u and the activations x, with neighbours added. wide: 8-bit codes. */
static inline __attribute__((always_inline)) wvec byte_products(uvec u, uint32_t x, const bool wide)
{
    __m512i right = _mm512_set1_epi32((int)x), left = (__m512i)u;
    if (wide) {
        left = _mm512_xor_si512(left, _mm512_set1_epi8((char)0x80));
        right = _mm512_mask_sub_epi8(right, _mm512_movepi8_mask(left), _mm512_setzero_si512(), right);
        left = _mm512_abs_epi8(left);
    }
    return (wvec)_mm512_maddubs_epi16(left, right);
}

/* Adds the sums of neighbouring 16-bit products to acc. */
static inline __attribute__((always_inline)) ivec add_products(ivec acc, wvec v)
{
    return acc + (ivec)_mm512_madd_epi16((__m512i)v, _mm512_set1_epi16(1));
}

#else

#define REGISTERS 16

#define VEC_MAX(a, b)       ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define VEC_WIDEN(h)        ((vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)(h)), 16))
#define VEC_WIDEN_F16(h)    ((vec)_mm256_cvtph_ps((__m128i)(h)))
#define VEC_TRUNCATE_F16(v) ((hvec)_mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_ZERO))
#define IVEC_ROUND(v)       ((ivec)_mm256_cvtps_epi32((__m256)(v)))
#define STORE_BYTES(p, v)   store_bytes(p, v)
#define SHUFFLE_BYTES(t, i)                                                                                  \
    ((uvec)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256((__m128i)(t)), (__m256i)(i)))
#define SIGNED_BYTES(p) ((ivec)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p))))
#define BYTES(p)        ((uvec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p))))
#define SHORT_BYTES(p)  ((shvec)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)(p))))

static inline __attribute__((always_inline)) void store_bytes(int8_t *p, ivec v)
{
    __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(words, words));
}

typedef struct {
    uvec low, high;
} table16;

static inline __attribute__((always_inline)) uvec lookup(table16 t, uvec idx)
{
    __m256i low = _mm256_permutevar8x32_epi32((__m256i)t.low, (__m256i)idx);
    __m256i high = _mm256_permutevar8x32_epi32((__m256i)t.high, (__m256i)idx);
    return (uvec)_mm256_blendv_ps((__m256)low, (__m256)high, (__m256)(idx << 28));
}

static inline __attribute__((always_inline)) wvec byte_products(uvec u, uint32_t x, const bool wide)
{
    __m256i right = _mm256_set1_epi32((int)x), left = (__m256i)u;
    if (wide) {
        left = _mm256_xor_si256(left, _mm256_set1_epi8((char)0x80));
        right = _mm256_sign_epi8(right, left);
        left = _mm256_abs_epi8(left);
    }
    return (wvec)_mm256_maddubs_epi16(left, right);
}

static inline __attribute__((always_inline)) ivec add_products(ivec acc, wvec v)
{
    return acc + (ivec)_mm256_madd_epi16((__m256i)v, _mm256_set1_epi16(1));
}

#endif
