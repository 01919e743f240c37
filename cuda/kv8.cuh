/* kv8.cuh - reading keys and values of 8 bits (ops/kv8.h): codes to bf16 numbers, exactly.
 *
 * A code in the upper byte of a half word has its sign where bf16 has it; its other seven bits, four places down, are
 * exponent and fraction of a number that is off by a power of two, and the scale's byte is the exponent of what it has to
 * be multiplied with: four instructions for two codes, the first of which picks them from wherever they are.
 */
#ifndef HOLORUN_CUDA_KV8_CUH
#define HOLORUN_CUDA_KV8_CUH

#define F8_FUNCTION __host__ __device__ __forceinline__
#include "mma.cuh"
#include "ops/kv8.h"

/* A byte of a row; a type of its own, so that kernels can be made for it. */
struct kv8 {
    uint8_t byte;
};

/* Two bytes of the eight of b:a as the upper bytes of two half words; what is below them is left over. */
template <int LOW, int HIGH> __device__ __forceinline__ unsigned kv8_pick(unsigned a, unsigned b)
{
    return __byte_perm(a, b, LOW << 4 | HIGH << 12);
}

/* Two of these as bf16, the factors being those of kv8_multiplier. */
__device__ __forceinline__ unsigned kv8_pair(unsigned picked, unsigned factors)
{
    return fma2((picked & 0x80008000u) | (picked >> 4 & 0x07f007f0u), factors, 0x80008000u);
}

/* bf16 2^(scale - 127); 0 for 0, infinity for 255, times codes that are 0. */
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

/* Where heads of D numbers have their scales: the 16 bytes with that of `head`, from the row's beginning. */
__device__ __forceinline__ int64_t kv8_scales(int heads, int d, int head)
{
    return (int64_t)heads * d + head / 16 * 16;
}

#endif
