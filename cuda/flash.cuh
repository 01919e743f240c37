/* flash.cuh - flash attention on tensor cores for prefill and vision: one pass over the keys, without
 * storing the score matrix.
 *
 * A unit is the set of queries that share keys: one KV head of one tile (or of the causal sequence). Its
 * rows are t * group + g for token t and the `group` query heads of the KV head, so that one read of K and
 * V serves all of them. A block has ROWS = 16 M WARPS of these rows, 16 M per warp, and iterates over
 * blocks of KEYS keys:
 *
 *     scores   S = Q K^T           Q and K by ldmatrix from shared memory
 *     softmax  P = 2^(c S - c m)   in the registers of S; m: maximum so far; sums are rescaled when it grows
 *     values   O += P V            two adjacent tiles of S are a left operand; O stays in registers
 *
 * V is loaded while S is computed, and the next K while V is used, so that one buffer each is sufficient:
 * 68 KiB with heads of 128, and two blocks fit on the large GPUs. With M = 2, a fragment of K or V read
 * from shared memory serves two products. That read is the bottleneck of M = 1.
 *
 * With heads of 256, the sums of 16 rows take half of a thread's registers, so M is 1. Q, K and V of 64
 * rows each then take exactly 99 KiB, the limit of a block on the smaller GPUs. With an 8-bit cache, 48
 * rows of Q leave space for the raw rows. Heads of 72 (W = 72, D = 80) have zeros in their last eight
 * columns, which cost a tenth of the products.
 *
 * Each block reads K and V once, 4 D KEYS bytes for 4 D KEYS ROWS operations, which is ROWS operations per
 * byte. The reads come from the L2 cache, because neighbouring blocks iterate over the same keys. Q is
 * read and Y written once. Rows in shared memory are 16 bytes longer than a head, so that eight of them
 * are in different banks.
 *
 * Key blocks begin at fixed positions and rows are computed independently. A result therefore depends
 * neither on the other queries of the call nor on M and WARPS. */
#pragma once

#include "kv8.cuh"
#include "mma.cuh"

#include <math.h>

enum { KEYS = 64 };

/* Keys or values of one head within rows of all heads. All kernels locate row s by this type. */
template <class T> struct key_rows {
    const T *at;
    int64_t stride;
    __device__ __forceinline__ key_rows(const void *rows, int64_t stride_, int, int d, int head)
        : at(static_cast<const T *>(rows) + (int64_t)head * d), stride(stride_)
    {
    }
    __device__ __forceinline__ const T *row(int s) const
    {
        return at + s * stride;
    }
};

/* 8-bit cache. scales: the 16 bytes of row 0 that contain the scale of this head. */
template <> struct key_rows<kv8> {
    const kv8 *at, *scales;
    int64_t stride;
    int place;
    __device__ __forceinline__ key_rows(const void *rows, int64_t stride_, int heads, int d, int head)
        : at(static_cast<const kv8 *>(rows) + (int64_t)head * d),
          scales(static_cast<const kv8 *>(rows) + kv8_scales(heads, d, head)), stride(stride_),
          place(head % 16)
    {
    }
    __device__ __forceinline__ const kv8 *row(int s) const
    {
        return at + s * stride;
    }
    __device__ __forceinline__ unsigned scale(int s) const
    {
        return scales[s * stride + place].byte;
    }
};

/* Returns 2^x; 0 for -inf. */
__device__ __forceinline__ float power2(float x)
{
#ifdef CUDA_EMULATED
    return exp2f(x);
#else
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
#endif
}

/* State of a warp's rows. Index [..][0] is row g and [..][1] row g + 8 of each 16 rows. */
template <int D, int M> struct flash_state {
    float out[M][D / 8][4] = {};
    float most[M][2], sum[M][2] = {}; /* sum: over this lane's columns */
    int limit[M][2];                  /* number of keys visible to the row */

    __device__ __forceinline__ flash_state()
    {
#pragma unroll
        for (int m = 0; m < M; m++)
            most[m][0] = most[m][1] = -INFINITY;
    }
};

/* Computes S of the warp's rows at q and the keys at k; s is zero before. EDGE: only the first n keys are
 * valid, other scores stay 0. */
template <int D, int M, bool EDGE>
__device__ __forceinline__ void flash_scores(float s[M][KEYS / 8][4], const bf16 *q, const bf16 *k, int n)
{
    enum { PITCH = D + 8 };
#pragma unroll
    for (int d = 0; d < D; d += 16) {
        unsigned a[M][4], b[4];
#pragma unroll
        for (int m = 0; m < M; m++)
            load_a(a[m], q + m * 16 * PITCH + d, PITCH);
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            if (EDGE && 16 * j >= n)
                continue;
            load_b_columns(b, k + j * 16 * PITCH + d, PITCH);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16816(s[m][2 * j], a[m], b);
                mma_16816(s[m][2 * j + 1], a[m], b + 2);
            }
        }
    }
}

/* Applies the online softmax. Converts scores to weights, packed in pairs as operands of the next product.
 * `first`: first key of the block. */
template <int D, int M, bool EDGE>
__device__ __forceinline__ void flash_softmax(flash_state<D, M> &w, float s[M][KEYS / 8][4],
                                              unsigned p[M][KEYS / 8][2], int first, float by)
{
    int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float most = w.most[m][h];
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    if (EDGE && first + 8 * j + column + i >= w.limit[m][h])
                        s[m][j][2 * h + i] = -INFINITY;
                    most = fmaxf(most, s[m][j][2 * h + i]);
                }
            most = warp_max<1, 4>(most); /* four lanes share a row of a fragment */
            float scale = power2((w.most[m][h] - most) * by), sum = 0, at = most * by;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
                float a = power2(s[m][j][2 * h] * by - at), b = power2(s[m][j][2 * h + 1] * by - at);
                sum += a + b;
                p[m][j][h] = pack2(a, b);
            }
            w.most[m][h] = most;
            w.sum[m][h] = w.sum[m][h] * scale + sum;
#pragma unroll
            for (int i = 0; i < D / 8; i++) {
                w.out[m][i][2 * h] *= scale;
                w.out[m][i][2 * h + 1] *= scale;
            }
        }
}

template <int D, int M, bool EDGE>
__device__ __forceinline__ void flash_weights(flash_state<D, M> &w, unsigned p[M][KEYS / 8][2], const bf16 *q,
                                              const bf16 *k, int first, int n, float by)
{
    float s[M][KEYS / 8][4] = {};
    flash_scores<D, M, EDGE>(s, q, k, n);
    flash_softmax<D, M, EDGE>(w, s, p, first, by);
}

/* Computes O += P V. */
template <int D, int M, bool EDGE>
__device__ __forceinline__ void flash_values(flash_state<D, M> &w, unsigned p[M][KEYS / 8][2], const bf16 *v,
                                             int n)
{
    enum { PITCH = D + 8 };
#pragma unroll
    for (int j = 0; j < KEYS / 16; j++) {
        if (EDGE && 16 * j >= n)
            continue;
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            unsigned b[4];
            load_b_rows(b, v + j * 16 * PITCH + d, PITCH);
#pragma unroll
            for (int m = 0; m < M; m++) {
                unsigned a[4] = {p[m][2 * j][0], p[m][2 * j][1], p[m][2 * j + 1][0], p[m][2 * j + 1][1]};
                mma_16816(w.out[m][d / 8], a, b);
                mma_16816(w.out[m][d / 8 + 1], a, b + 2);
            }
        }
    }
}

/* ---- one block ------------------------------------------------------------------------------------- */

struct flash {
    const bf16 *q;
    bf16 *y;
    const void *k, *v;
    int64_t k_stride, v_stride, q_stride, y_stride;
    int n, keys; /* queries and keys per tile */
    int past;    /* query t sees past + t + 1 keys; -1: all keys */
    int group;   /* query heads per KV head */
    float by;    /* log2(e) / sqrt(d) */
};

template <class K, int D, int W> struct flash_tiles;

/* W: size of a head in memory. D: its size in shared memory and registers, where the last D - W numbers
 * are zero. */
template <class K, int D, int M, int WARPS, int W> struct flash_shape {
    enum { ROWS = 16 * M * WARPS, THREADS = 32 * WARPS, PITCH = D + 8, CHUNKS = D / 8 };
    enum { BYTES = ROWS * PITCH * 2 + flash_tiles<K, D, W>::BYTES };
    static_assert(W <= D && W % 8 == 0 && BYTES <= 99 << 10, "limit of shared memory per block on all GPUs");
};

/* Returns the offset of row r of a unit in q or y. */
template <int W> __device__ __forceinline__ int64_t flash_place(const flash &a, int r, int64_t stride)
{
    int64_t t = (int64_t)blockIdx.z * a.n + r / a.group;
    return t * stride + (int64_t)(blockIdx.y * a.group + r % a.group) * W;
}

template <int D, int W> struct flash_tiles<bf16, D, W> {
    enum { TILE = KEYS * (D + 8), BYTES = 2 * TILE * 2, CHUNKS = D / 8 };
    bf16 *k, *v;

    __device__ __forceinline__ explicit flash_tiles(bf16 *at) : k(at), v(at + TILE)
    {
    }
    /* Starts copying rows [first, first + KEYS) of keys or values, with zeros after the last key. */
    template <int THREADS, bool VALUES>
    __device__ __forceinline__ void fetch(const key_rows<bf16> &from, int first, int keys)
    {
#pragma unroll
        for (int at = 0; at < KEYS * CHUNKS; at += THREADS) {
            int i = at + threadIdx.x, r = i / CHUNKS, c = i % CHUNKS * 8;
            bool there = first + r < keys && c < W;
            if (KEYS * CHUNKS % THREADS == 0 || i < KEYS * CHUNKS)
                copy16((VALUES ? v : k) + r * (D + 8) + c,
                       from.row(there ? first + r : first) + (there ? c : 0), there);
        }
        copies_end();
    }
    template <int THREADS, bool VALUES> __device__ __forceinline__ void dequantize(int) const
    {
    }
};

/* 8-bit cache. Raw rows, each with its 16 bytes of scales, are copied to shared memory. They are
 * dequantized into one tile: keys after the previous values have been used, values after the keys have
 * been used. This costs a barrier each, 18 KiB of shared memory for the raw rows instead of 17 for a
 * second tile, and 24 KiB of additional shared-memory traffic. The four warps read 64 KiB per tile. */
template <int D> struct flash_tiles<kv8, D, D> {
    enum { TILE = KEYS * (D + 8), PITCH = D + 16, RAW = KEYS * PITCH, BYTES = TILE * 2 + 2 * RAW };
    bf16 *k, *v;
    kv8 *raw_k, *raw_v;

    __device__ __forceinline__ explicit flash_tiles(bf16 *at)
        : k(at), v(at), raw_k(reinterpret_cast<kv8 *>(at + TILE)), raw_v(raw_k + RAW)
    {
    }
    template <int THREADS, bool VALUES>
    __device__ __forceinline__ void fetch(const key_rows<kv8> &from, int first, int keys)
    {
        enum { CHUNKS = PITCH / 16 };
        for (int i = threadIdx.x; i < KEYS * CHUNKS; i += THREADS) {
            int r = i / CHUNKS, c = i % CHUNKS * 16;
            bool there = first + r < keys;
            int64_t row = (there ? first + r : first) * from.stride;
            copy16((VALUES ? raw_v : raw_k) + r * PITCH + c, (c < D ? from.at + c : from.scales) + row,
                   there);
        }
        copies_end();
    }
    /* Dequantizes a tile. place: index of the head's scale among the 16 bytes. */
    template <int THREADS, bool VALUES> __device__ __forceinline__ void dequantize(int place) const
    {
        const kv8 *raw = VALUES ? raw_v : raw_k;
#pragma unroll
        for (int at = 0; at < KEYS * D / 16; at += THREADS) {
            int i = at + threadIdx.x, r = i / (D / 16), c = i % (D / 16) * 16;
            if (KEYS * D / 16 % THREADS != 0 && i >= KEYS * D / 16)
                continue;
            const uint4 codes = *reinterpret_cast<const uint4 *>(raw + r * PITCH + c);
            unsigned factors = twice(kv8_multiplier(raw[r * PITCH + D + place].byte));
            uint2 a = kv8_four(codes.x, factors), b = kv8_four(codes.y, factors),
                  e = kv8_four(codes.z, factors), f = kv8_four(codes.w, factors);
            uint4 *to = reinterpret_cast<uint4 *>(k + r * (D + 8) + c);
            to[0] = uint4{a.x, a.y, b.x, b.y};
            to[1] = uint4{e.x, e.y, f.x, f.y};
        }
        __syncthreads(); /* the tile is complete */
    }
};

/* Stores the warp's rows through the shared memory of its queries, 16 bytes at a time. */
template <int D, int M, int W>
__device__ __forceinline__ void flash_store(flash_state<D, M> &w, const flash &a, bf16 *own, int first,
                                            int rows)
{
    enum { PITCH = D + 8, CHUNKS = W / 8 };
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float by = 1.0f / warp_sum<1, 4>(w.sum[m][h]);
#pragma unroll
            for (int i = 0; i < D / 8; i++)
                *reinterpret_cast<unsigned *>(own + (m * 16 + h * 8 + g) * PITCH + 8 * i + 2 * t) =
                    pack2(w.out[m][i][2 * h] * by, w.out[m][i][2 * h + 1] * by);
        }
    __syncwarp();
    for (int i = lane; i < 16 * M * CHUNKS; i += WARP) {
        int r = i / CHUNKS, c = i % CHUNKS * 8;
        if (first + r < rows)
            *reinterpret_cast<uint4 *>(a.y + flash_place<W>(a, first + r, a.y_stride) + c) =
                *reinterpret_cast<const uint4 *>(own + r * PITCH + c);
    }
}

template <class K, int D, int M, int WARPS, int W>
__global__ void __launch_bounds__(32 * WARPS) flash_attention(flash a)
{
    using shape = flash_shape<K, D, M, WARPS, W>;
    DYNAMIC_SHARED(bf16, q);
    flash_tiles<K, D, W> tiles(q + shape::ROWS * shape::PITCH);
    const int block = (int)(gridDim.x - 1 - blockIdx.x) * shape::ROWS,
              rows = a.n * a.group; /* blocks with the most keys first */
    const int own = threadIdx.x / WARP * 16 * M, lane = threadIdx.x % WARP;
    const int last = min(block + (int)shape::ROWS, rows) - 1;
    const int stop = a.past < 0 ? a.keys : min(a.keys, a.past + last / a.group + 1);
    const int64_t tile = (int64_t)blockIdx.z * a.keys;
    const key_rows<K> keys(static_cast<const K *>(a.k) + tile * a.k_stride, a.k_stride, gridDim.y, W,
                           blockIdx.y),
        values(static_cast<const K *>(a.v) + tile * a.v_stride, a.v_stride, gridDim.y, W, blockIdx.y);
    for (int i = threadIdx.x; i < shape::ROWS * shape::CHUNKS; i += shape::THREADS) {
        int r = i / shape::CHUNKS, c = i % shape::CHUNKS * 8;
        bool there = block + r < rows && c < W;
        copy16(q + r * shape::PITCH + c,
               a.q + flash_place<W>(a, there ? block + r : block, a.q_stride) + (there ? c : 0), there);
    }
    tiles.template fetch<shape::THREADS, false>(keys, 0, stop);

    flash_state<D, M> w;
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        int r = block + own + i / 2 * 16 + i % 2 * 8 + lane / 4;
        w.limit[i / 2][i % 2] = a.past < 0 ? a.keys : min(stop, a.past + r / a.group + 1);
    }
    /* number of keys visible to all rows of the warp, and to any of them */
    const int all = a.past < 0 ? a.keys : min(stop, a.past + (block + own) / a.group + 1),
              some = block + own > last ? 0 /* no rows */
                     : a.past < 0       ? a.keys
                                  : min(stop, a.past + min(block + own + 16 * M - 1, last) / a.group + 1);
    for (int first = 0; first < stop; first += KEYS) {
        copies_wait<0>();
        __syncthreads(); /* K has arrived, and V has been used */
        tiles.template fetch<shape::THREADS, true>(values, first, stop);
        tiles.template dequantize<shape::THREADS, false>(blockIdx.y % 16);
        const bf16 *mine = q + own * shape::PITCH;
        const bool whole = first + KEYS <= all, part = !whole && first < some;
        unsigned p[M][KEYS / 8][2];
        if (whole)
            flash_weights<D, M, false>(w, p, mine, tiles.k, first, KEYS, a.by);
        else if (part)
            flash_weights<D, M, true>(w, p, mine, tiles.k, first, some - first, a.by);
        copies_wait<0>();
        __syncthreads(); /* V has arrived, and K has been used */
        if (first + KEYS < stop)
            tiles.template fetch<shape::THREADS, false>(keys, first + KEYS, stop);
        tiles.template dequantize<shape::THREADS, true>(blockIdx.y % 16);
        if (whole)
            flash_values<D, M, false>(w, p, tiles.v, KEYS);
        else if (part)
            flash_values<D, M, true>(w, p, tiles.v, some - first);
    }
    flash_store<D, M, W>(w, a, q + own * shape::PITCH, block + own, rows);
}
