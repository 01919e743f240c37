/* attend_fragments.cuh - register fragments of keys and values in attend_split.cu, for a bf16 or 8-bit KV
 * cache.
 *
 * A step processes 16 keys. For keys g and g + 8, lane (g, t) holds fragments of eight dimensions; fragment i
 * begins at dimension place(i, t). For values 2t, 2t + 1, 2t + 8 and 2t + 9 it holds the D / 8 dimensions of
 * group g. The assignment of dimensions to lanes is free, and is chosen such that each lane reads 16 bytes at
 * a time. With an 8-bit cache, 16 bytes are twice as many adjacent dimensions, which are dequantized at their
 * use; values are dequantized for two keys at a time, as the product needs them. Rows after the last key
 * repeat the last one, and their weight is zero. */
#pragma once

#include "attend.cuh"

template <class K, int D> struct key_fragments;
template <class K, int D> struct value_fragments;

__device__ __forceinline__ int key_of_lane(int first, int h, int stop)
{
    return min(first + 8 * h + (int)threadIdx.x % WARP / 4, stop - 1);
}

__device__ __forceinline__ int value_of_lane(int first, int h, int stop)
{
    return min(first + (int)threadIdx.x % 4 * 2 + h % 2 + h / 2 * 8, stop - 1);
}

template <int D> struct key_fragments<bf16, D> {
    uint4 row[2][D / 32];

    static __device__ __forceinline__ int place(int i, int t)
    {
        return 32 * i + 8 * t;
    }
    __device__ __forceinline__ void fetch(const key_rows<bf16> &rows, int first, int stop)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const bf16 *from = rows.row(key_of_lane(first, h, stop)) + threadIdx.x % 4 * 8;
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                row[h][i] = *reinterpret_cast<const uint4 *>(from + 32 * i);
        }
    }
    __device__ __forceinline__ uint4 part(int h, int i) const
    {
        return row[h][i];
    }
};

/* 16 codes give two fragments. */
template <int D> struct key_fragments<kv8, D> {
    uint4 row[2][D / 64];
    unsigned factors[2];

    static __device__ __forceinline__ int place(int i, int t)
    {
        return 64 * (i / 2) + 16 * t + 8 * (i % 2);
    }
    __device__ __forceinline__ void fetch(const key_rows<kv8> &rows, int first, int stop)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int key = key_of_lane(first, h, stop);
            const kv8 *from = rows.row(key) + threadIdx.x % 4 * 16;
#pragma unroll
            for (int i = 0; i < D / 64; i++)
                row[h][i] = *reinterpret_cast<const uint4 *>(from + 64 * i);
            factors[h] = twice(kv8_multiplier(rows.scale(key)));
        }
    }
    __device__ __forceinline__ uint4 part(int h, int i) const
    {
        const uint4 &codes = row[h][i / 2];
        uint2 low = kv8_four(i % 2 ? codes.z : codes.x, factors[h]),
              high = kv8_four(i % 2 ? codes.w : codes.y, factors[h]);
        return uint4{low.x, low.y, high.x, high.y};
    }
};

template <int D> struct value_fragments<bf16, D> {
    uint4 row[4][D / 64];

    /* Returns the first of the dimensions 2 m and 2 m + 1 in lane g's share. */
    static __device__ __forceinline__ int place(int m, int g)
    {
        return m / 4 * 64 + g * 8 + m % 4 * 2;
    }
    __device__ __forceinline__ void fetch(const key_rows<bf16> &rows, int first, int stop)
    {
#pragma unroll
        for (int h = 0; h < 4; h++) {
            const bf16 *from = rows.row(value_of_lane(first, h, stop)) + threadIdx.x % WARP / 4 * 8;
#pragma unroll
            for (int i = 0; i < D / 64; i++)
                row[h][i] = *reinterpret_cast<const uint4 *>(from + 64 * i);
        }
    }
    /* Returns operand A of the product: row g is dimension 2 m, row g + 8 is dimension 2 m + 1. */
    __device__ __forceinline__ void fragment(unsigned a[4], int m) const
    {
#pragma unroll
        for (int p = 0; p < 2; p++) {
            unsigned one = word_of(row[2 * p][m / 4], m % 4), other = word_of(row[2 * p + 1][m / 4], m % 4);
            a[2 * p] = lower_halves(one, other);
            a[2 * p + 1] = upper_halves(one, other);
        }
    }
};

template <int D> struct value_fragments<kv8, D> {
    unsigned row[4][D / 32];
    unsigned factors[2]; /* for two keys each */

    static __device__ __forceinline__ int place(int m, int g)
    {
        return g * (D / 8) + 2 * m;
    }
    __device__ __forceinline__ void fetch(const key_rows<kv8> &rows, int first, int stop)
    {
        unsigned factor[4];
#pragma unroll
        for (int h = 0; h < 4; h++) {
            int key = value_of_lane(first, h, stop);
            const kv8 *from = rows.row(key) + threadIdx.x % WARP / 4 * (D / 8);
            if constexpr (D >= 128) {
#pragma unroll
                for (int i = 0; i < D / 32; i += 4) {
                    const uint4 v = *reinterpret_cast<const uint4 *>(from + 4 * i);
                    row[h][i] = v.x, row[h][i + 1] = v.y, row[h][i + 2] = v.z, row[h][i + 3] = v.w;
                }
            } else {
                const uint2 v = *reinterpret_cast<const uint2 *>(from);
                row[h][0] = v.x, row[h][1] = v.y;
            }
            factor[h] = kv8_multiplier(rows.scale(key));
        }
        factors[0] = factor[0] | factor[1] << 16;
        factors[1] = factor[2] | factor[3] << 16;
    }
    __device__ __forceinline__ void fragment(unsigned a[4], int m) const
    {
#pragma unroll
        for (int p = 0; p < 2; p++) {
            unsigned one = row[2 * p][m / 2], other = row[2 * p + 1][m / 2];
            a[2 * p] = kv8_pair(m % 2 ? kv8_pick<2, 6>(one, other) : kv8_pick<0, 4>(one, other), factors[p]);
            a[2 * p + 1] =
                kv8_pair(m % 2 ? kv8_pick<3, 7>(one, other) : kv8_pick<1, 5>(one, other), factors[p]);
        }
    }
};
