/* synthetic.h - pseudorandom values made from a counter, for measurements without a checkpoint.
 *
 * Value i is a function of a seed and i only (SplitMix64; Steele, Lea, Flood 2014), so any thread of any
 * machine can compute it. */
#pragma once

#include "ops/ops.h"

#ifndef SYNTHETIC_FUNCTION /* CUDA needs its own qualifiers */
#define SYNTHETIC_FUNCTION static inline
#endif

struct synthetic { /* (u + offset) * spread, u uniform in [-1, 1) */
    uint64_t seed;
    float offset, spread;
};

SYNTHETIC_FUNCTION uint64_t synthetic_bits(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Returns a multiple of 2^-23 in [-1, 1), exact in f32. */
SYNTHETIC_FUNCTION float synthetic_unit(uint64_t seed, uint64_t i)
{
    return (float)((int32_t)(synthetic_bits(seed, i) >> 40) - (1 << 23)) * (1.0f / (1 << 23));
}

/* Returns a random e4m3 value other than NaN. */
SYNTHETIC_FUNCTION uint8_t synthetic_e4m3(uint64_t seed, uint64_t i)
{
    uint8_t v = (uint8_t)(synthetic_bits(seed, i) >> 40);
    return (v & 127) == 127 ? (uint8_t)(v - 1) : v;
}

/* Divisors that give quantized values about the same spread as the others. */
static const float synthetic_i8 = 127, synthetic_i4 = 7, synthetic_f8 = 200;

/* Creates a synthetic weight from bytes made on the host, for any backend and format. */
struct weight *synthetic_weight(struct backend *b, enum quant_format format, enum dtype dtype, int64_t rows,
                                int64_t cols, const struct synthetic *m);
