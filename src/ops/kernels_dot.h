/* kernels_dot.h - dot products of codes (unsigned bytes) and activations (signed bytes), four k per lane.
 *
 * With DOT_BYTES (VNNI) one instruction adds four products to a 32-bit sum.  Without it the products of
 * neighbouring bytes are added in 16 bits first (maddubs), which saturate: codes of at most 6 bits cannot
 * reach the limit, not even in the sum of two words (4 * 63 * 127 < 2^15).  A code of 8 bits is multiplied as
 * the magnitude of code - 128, and the sign goes to the activation, which must not be -128; so its offset is
 * already subtracted (BYTES_CENTRED). All sums are exact, so every variant returns the same integers.
 */
#ifndef HOLORUN_OPS_KERNELS_DOT_H
#define HOLORUN_OPS_KERNELS_DOT_H

#include "ops/kernels_blocks.h"
#include "ops/kernels_core.h"

/* IVEC_ROUND (v): VL floats as the nearest integers.  STORE_BYTES (p, v): the low bytes of VL integers of
 * -128..127.  SHUFFLE_BYTES (table, idx): entries idx of a table of 16 bytes. */
#if VL == 16
#define IVEC_ROUND(v)             ((ivec)_mm512_cvtps_epi32((__m512)(v)))
#define STORE_BYTES(p, v)         _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi32_epi8((__m512i)(v)))
#define SHUFFLE_BYTES(table, idx) ((uvec)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), (__m512i)(idx)))
#else
#define IVEC_ROUND(v) ((ivec)_mm256_cvtps_epi32((__m256)(v)))
#define SHUFFLE_BYTES(table, idx)                                                                            \
    ((uvec)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), (__m256i)(idx)))
ALWAYS_INLINE void store_bytes(int8_t *p, ivec v)
{
    __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(words, words));
}
#define STORE_BYTES(p, v) store_bytes(p, v)
#endif

/* HAS_DIGITS: 16-bit activations, split into two signed bytes, are supported, too. */
#ifdef DOT_BYTES

enum { BYTES_CENTRED = 0, HAS_DIGITS = 1 };

/* Adds the dot product of the codes u and the activations x to acc. wide: 8-bit codes. */
ALWAYS_INLINE ivec dot_word(ivec acc, uvec u, uint32_t x, const bool wide)
{
    return DOT_BYTES(acc, u, x);
}

/* Does the same for two words. */
ALWAYS_INLINE ivec dot_words(ivec acc, const uvec u[2], uint32_t x0, uint32_t x1, const bool wide)
{
    return DOT_BYTES(DOT_BYTES(acc, u[0], x0), u[1], x1);
}

#else

enum { BYTES_CENTRED = 1, HAS_DIGITS = 0 };

typedef int16_t wvec __attribute__((vector_size(VL * 4), aligned(2), may_alias));

#if VL == 16
ALWAYS_INLINE wvec byte_products(uvec u, uint32_t x, const bool wide)
{
    __m512i right = _mm512_set1_epi32((int)x), left = (__m512i)u;
    if (wide) {
        left = _mm512_xor_si512(left, _mm512_set1_epi8((char)0x80));
        right = _mm512_mask_sub_epi8(right, _mm512_movepi8_mask(left), _mm512_setzero_si512(), right);
        left = _mm512_abs_epi8(left);
    }
    return (wvec)_mm512_maddubs_epi16(left, right);
}

ALWAYS_INLINE ivec add_products(ivec acc, wvec v)
{
    return acc + (ivec)_mm512_madd_epi16((__m512i)v, _mm512_set1_epi16(1));
}
#else
/* Returns the products of the codes u and the activations x, with neighbours added. */
ALWAYS_INLINE wvec byte_products(uvec u, uint32_t x, const bool wide)
{
    __m256i right = _mm256_set1_epi32((int)x), left = (__m256i)u;
    if (wide) {
        left = _mm256_xor_si256(left, _mm256_set1_epi8((char)0x80));
        right = _mm256_sign_epi8(right, left);
        left = _mm256_abs_epi8(left);
    }
    return (wvec)_mm256_maddubs_epi16(left, right);
}

/* Adds the sums of neighbouring 16-bit products to acc. */
ALWAYS_INLINE ivec add_products(ivec acc, wvec v)
{
    return acc + (ivec)_mm256_madd_epi16((__m256i)v, _mm256_set1_epi16(1));
}
#endif

ALWAYS_INLINE ivec dot_word(ivec acc, uvec u, uint32_t x, const bool wide)
{
    return add_products(acc, byte_products(u, x, wide));
}

ALWAYS_INLINE ivec dot_words(ivec acc, const uvec u[2], uint32_t x0, uint32_t x1, const bool wide)
{
    if (wide)
        return dot_word(dot_word(acc, u[0], x0, true), u[1], x1, true);
    return add_products(acc, byte_products(u[0], x0, false) + byte_products(u[1], x1, false));
}

#endif

#endif
