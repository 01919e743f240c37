/* stochastic_round.h - stochastic rounding of the SSM state to f16, bit-identical on every machine.
 *
 * Every token decays the state and adds to it. With rounding to nearest, an addition below half a step is
 * lost, always with the same sign, and the error accumulates. Stochastic rounding rounds up or down with a
 * probability proportional to the distance: the mean is correct, and the errors of many tokens cancel. f16
 * has 11 bits, steps of at least 2^-24, and ends at 65504; bf16 has 8 bits and loses eight times as much
 * per token.
 *
 *     random bits   a hash of a counter: position in the conversation, layer and index in the state, nothing
 *                   else. The same token at the same position therefore leaves the same state, alone or in a
 *                   batch, after a rewind, in a fork of the session, or recomputed from the start.
 *     rounding      adds 13 random bits below the last bit of f16, then truncates; also below 2^-14, where
 *                   all steps are 2^-24. The probability is exact to 2^-13.
 *     overflow      finite values are limited to 65504; infinities and NaN are unchanged.
 *
 * Two adjacent values of a row share the 32 bits of one hash. Only integer arithmetic and one addition
 * that every machine rounds alike. */
#pragma once

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define STOCHASTIC_FN static __host__ __device__ inline
#else
#define STOCHASTIC_FN static inline
#endif

enum { STOCHASTIC_BITS = 13 }; /* random bits per value: the mantissa bits that f32 has in addition to f16 */

#define F16_MASK ((1u << STOCHASTIC_BITS) - 1)
#define F16_ONE  0x3f800000u /* bits of 1.0f; random bits in its mantissa give a number in [1, 2) */
#define F16_SIGN 0x80000000u
#define F16_EXP  0x7f800000u
#define F16_LOW  0x38800000u /* bits of 2^-14: all smaller values have the same step */
#define F16_HIGH 0x47000000u /* bits of 2^15 */
#define STOCHASTIC_STRIDE                                                                                    \
    0x9e3779b1u /* difference of the counters of adjacent pairs: odd, so that none
                                       * repeats */

/* Returns the key for rounding the state of a layer after `position` tokens. */
STOCHASTIC_FN uint32_t stochastic_key(int64_t position, int layer)
{
    uint64_t z = (uint64_t)position * 0x9e3779b97f4a7c15u + (uint64_t)layer * 0xd1342543de82ef95u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

/* Returns the number of pairs in a row of n values; pair i of row r has index r * stochastic_pairs(n) + i
 * in a state. */
STOCHASTIC_FN int64_t stochastic_pairs(int64_t n)
{
    return (n + 1) / 2;
}

/* Returns the random bits of a pair: the lowest STOCHASTIC_BITS are for its first value, the highest for
 * its second. */
STOCHASTIC_FN uint32_t stochastic_bits(uint32_t key, uint32_t pair)
{
    uint32_t x = key + pair * STOCHASTIC_STRIDE;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

STOCHASTIC_FN uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

STOCHASTIC_FN float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Returns v with random bits added, away from zero; truncating it rounds v. */
STOCHASTIC_FN float stochastic_dither(float v, uint32_t random)
{
    uint32_t u = float_bits(v), e = u & F16_EXP;
    e = e < F16_LOW ? F16_LOW : e > F16_HIGH ? F16_HIGH : e;
    return v + (bits_float(F16_ONE | random) - 1.0f) * bits_float((u & F16_SIGN) | e);
}

/* Rounds towards zero, as the hardware instructions do. */
STOCHASTIC_FN uint16_t f16_truncate(float v)
{
    uint32_t u = float_bits(v), sign = u >> 16 & 0x8000u, a = u & ~F16_SIGN;
    if (a >= F16_EXP)
        return (uint16_t)(sign | (a > F16_EXP ? 0x7e00u : 0x7c00u));
    if (a >= 0x47800000u) /* 2^16 */
        return (uint16_t)(sign | 0x7bffu);
    if (a >= F16_LOW)
        return (uint16_t)(sign | (a - F16_LOW + 0x800000u) >> STOCHASTIC_BITS);
    return (uint16_t)(sign | (uint32_t)(bits_float(a) * 16777216.0f));
}

/* Rounds value n of row r of a state with rows of N. */
STOCHASTIC_FN uint16_t stochastic_round_f16(float v, uint32_t key, int64_t r, int64_t n, int64_t N)
{
    uint32_t both = stochastic_bits(key, (uint32_t)(r * stochastic_pairs(N) + n / 2));
    return f16_truncate(stochastic_dither(v, n % 2 ? both >> (32 - STOCHASTIC_BITS) : both & F16_MASK));
}
