/* kv8.cuh - reading an 8-bit KV cache (ops/kv8.h): codes to bf16, exactly.
 *
 * A code in the upper byte of a half word has its sign where bf16 has it; its other seven bits, four
 * places lower, are exponent and fraction of a number that is off by a power of two, and the scale's
 * byte is the exponent of the correcting factor: four instructions for two codes, the first of which
 * picks them from anywhere.
 */
#ifndef HOLORUN_CUDA_KV8_CUH
#define HOLORUN_CUDA_KV8_CUH

#define F8_FUNCTION __host__ __device__ __forceinline__
#include "mma.cuh"
#include "ops/kv8.h"

/* A byte of a row; a type of its own, to instantiate kernels for. */
struct kv8 {
    uint8_t byte;
};

/* Two of the eight bytes of b:a as the upper bytes of two half words; the lower bytes are undefined. */
template <int LOW, int HIGH> __device__ __forceinline__ unsigned kv8_pick(unsigned a, unsigned b)
{
    return __byte_perm(a, b, LOW << 4 | HIGH << 12);
}

/* Two picked codes as bf16, with factors of kv8_multiplier. */
__device__ __forceinline__ unsigned kv8_pair(unsigned picked, unsigned factors)
{
    return fma2((picked & 0x80008000u) | (picked >> 4 & 0x07f007f0u), factors, 0x80008000u);
}

/* bf16 2^(scale - 127); 0 for 0; infinity for 255, times codes that are 0, gives NaN. */
__device__ __forceinline__ unsigned kv8_multiplier(unsigned scale)
{
    return scale << 7;
}

__device__ __forceinline__ unsigned twice(unsigned half)
{
    return half | half << 16;
}

/* Four neighbouring codes. */
__device__ __forceinline__ uint2 kv8_four(unsigned codes, unsigned factors)
{
    return uint2{kv8_pair(kv8_pick<0, 1>(codes, codes), factors),
                 kv8_pair(kv8_pick<2, 3>(codes, codes), factors)};
}

/* Offset in a row of the 16 bytes that contain the scale of `head`. */
__device__ __forceinline__ int64_t kv8_scales(int heads, int d, int head)
{
    return (int64_t)heads * d + head / 16 * 16;
}

#endif
