/* synthetic.h - numbers made from a counter, for measuring without a checkpoint: ops.h, make and make_synthetic_weight.
 *
 * Number i is a function of a seed and of i alone (Steele, Lea, Flood: SplitMix64), so that any thread of any
 * machine can make it.
 */
#ifndef HOLORUN_OPS_SYNTHETIC_H
#define HOLORUN_OPS_SYNTHETIC_H

#include "ops/ops.h"

#ifndef SYNTHETIC_FUNCTION /* a compiler for the device has its own words for it */
#define SYNTHETIC_FUNCTION static inline
#endif

struct made { /* (u + offset) * spread, u uniform in [-1, 1) */
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

/* u: a multiple of 2^-23, so that it is exact in f32. */
SYNTHETIC_FUNCTION float synthetic_unit(uint64_t seed, uint64_t i)
{
    return (float)((int32_t)(synthetic_bits(seed, i) >> 40) - (1 << 23)) * (1.0f / (1 << 23));
}

/* An e4m3 number: any byte that is no NaN. */
SYNTHETIC_FUNCTION uint8_t synthetic_e4m3(uint64_t seed, uint64_t i)
{
    uint8_t v = (uint8_t)(synthetic_bits(seed, i) >> 40);
    return (v & 127) == 127 ? (uint8_t)(v - 1) : v;
}

/* Codes of small numbers times a scale have about the size of other numbers of the same spread. */
static const float synthetic_i8 = 127, synthetic_i4 = 7, synthetic_f8 = 200;

/* make_synthetic_weight with bytes made on the host, for any backend and form. */
struct weight *synthetic_weight(struct backend *b, enum quant_format format, enum dtype dtype, int64_t rows,
                                int64_t cols, const struct made *m);

#endif
