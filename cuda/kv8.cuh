/* kv8.cuh - exact conversion of 8-bit KV cache codes (ops/kv8.h) to bf16.
 *
 * A code in the upper byte of a half word has its sign where bf16 has it. Its other seven bits, shifted
 * right by four, are exponent and fraction of a number that differs by a power of two. The scale byte is
 * the exponent of the correcting factor. Two codes take four instructions: the first selects the codes
 * from any two bytes, the others convert them. */
#pragma once

#define F8_FUNCTION __host__ __device__ __forceinline__
#include "mma.cuh"
#include "ops/kv8.h"

/* Byte of a row. It has its own type so that kernels can be instantiated for it. */
struct kv8 {
    uint8_t byte;
};

/* Selects two of the eight bytes of b:a as the upper bytes of two half words. The lower bytes are
 * undefined. */
template <int LOW, int HIGH> __device__ __forceinline__ unsigned kv8_pick(unsigned a, unsigned b)
{
    return __byte_perm(a, b, LOW << 4 | HIGH << 12);
}

/* Converts two selected codes to bf16, with factors of kv8_multiplier. */
__device__ __forceinline__ unsigned kv8_pair(unsigned picked, unsigned factors)
{
    return fma2((picked & 0x80008000u) | (picked >> 4 & 0x07f007f0u), factors, 0x80008000u);
}

/* Returns 2^(scale - 127) as bf16; 0 for scale 0. Scale 255 gives infinity, whose product with codes of 0
 * is NaN. */
__device__ __forceinline__ unsigned kv8_multiplier(unsigned scale)
{
    return scale << 7;
}

__device__ __forceinline__ unsigned twice(unsigned half)
{
    return half | half << 16;
}

/* Converts four adjacent codes. */
__device__ __forceinline__ uint2 kv8_four(unsigned codes, unsigned factors)
{
    return uint2{kv8_pair(kv8_pick<0, 1>(codes, codes), factors),
                 kv8_pair(kv8_pick<2, 3>(codes, codes), factors)};
}

/* Returns the offset in a row of the 16 bytes that contain the scale of `head`. */
__device__ __forceinline__ int64_t kv8_scales(int heads, int d, int head)
{
    return (int64_t)heads * d + head / 16 * 16;
}
