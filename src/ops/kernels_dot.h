/* kernels_dot.h - dot products of codes (unsigned bytes) and activations (signed bytes), four k per lane.
 *
 * With DOT_BYTES (VNNI, I8MM) one instruction adds four products to a 32-bit sum.  Without it a code of 8
 * bits (`wide`) is multiplied as code - 128, so its offset is already subtracted (BYTES_CENTRED).  DOT_SIGNED
 * (DotProd) does that in one instruction, too.  Otherwise the products of neighbouring bytes are added in 16
 * bits first (byte_products), which may saturate: codes of at most 6 bits cannot reach the limit, not even in
 * the sum of two words (4 * 63 * 127 < 2^15).  AVX multiplies the magnitude of code - 128, and the sign goes
 * to the activation, which must not be -128.  All sums are exact, so every variant returns the same integers.
 */
#pragma once

#include "ops/kernels_blocks.h"
#include "ops/kernels_core.h"

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

#elif defined(DOT_SIGNED)

enum { BYTES_CENTRED = 1, HAS_DIGITS = 0 };

ALWAYS_INLINE ivec dot_word(ivec acc, uvec u, uint32_t x, const bool wide)
{
    return DOT_SIGNED(acc, u ^ (wide ? 0x80808080u : 0), x);
}

ALWAYS_INLINE ivec dot_words(ivec acc, const uvec u[2], uint32_t x0, uint32_t x1, const bool wide)
{
    return dot_word(dot_word(acc, u[0], x0, wide), u[1], x1, wide);
}

#else

enum { BYTES_CENTRED = 1, HAS_DIGITS = 0 };

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
