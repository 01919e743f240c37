/* delta_chunk.cuh - shared-memory layout of a chunk in delta_chunks.cu, and its loading. */
#pragma once

#include "delta.cuh"
#include "mma.cuh"

namespace
{

enum {
    CHUNK = 64,
    BLOCKS = CHUNK / 16, /* blocks of tokens, one per warp */
    CHUNK_THREADS = BLOCKS * WARP,
    PITCH = DELTA + 8,           /* row pitch of keys and queries */
    CORNER = 20,                 /* row pitch of a diagonal block; 16 bytes longer than needed, to avoid
                                  * bank conflicts */
    STATE_ROWS = DELTA / BLOCKS, /* per warp */
    FEW = 8,                     /* maximum number of tokens that are not worth a chunk */
};

/* Shared memory of a block. N: columns of the state. `halves` contains the state before the chunk as the
 * sum of two bf16, [DELTA] rows of the high and of the low parts, until all warps have read it. Later it
 * contains R, [CHUNK] rows of each part, and R with its factor for the next state. */
template <int N> struct chunk {
    enum { WIDE = N + 8 };
    bf16 x[2][CHUNK * PITCH];
    bf16 halves[2 * DELTA * WIDE];
    float corner[BLOCKS][16 * CORNER];
    float sum[CHUNK];   /* G */
    float low[CHUNK];   /* rounding error of `sum` in f32 */
    float beta[CHUNK];  /* zero after the last token */
    float left[CHUNK];  /* e^(G_L - G) */
    float key[CHUNK];   /* 1 / |k| */
    float query[CHUNK]; /* 1 / |q| / sqrt(dk) */

    __device__ __forceinline__ bf16 *state(int half)
    {
        return halves + half * DELTA * WIDE;
    }
    __device__ __forceinline__ bf16 *solved(int half)
    {
        return halves + half * CHUNK * WIDE;
    }
    __device__ __forceinline__ bf16 *carried(int half)
    {
        return halves + (2 + half) * CHUNK * WIDE;
    }
};

/* A 16 x 16 left operand as the sum of two bf16 operands. */
struct operand {
    unsigned most[4], rest[4];

    /* Converts two adjacent accumulator tiles. */
    __device__ __forceinline__ void take(const float s[2][4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) /* rows g and g + 8 of the left half, then of the right half */
            split2(&most[i], &rest[i], s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1]);
    }
};

struct chunk_place {
    int head, column; /* first column of the block within the head */
    int64_t t0;       /* first token of the chunk */
    int count;        /* number of tokens in the chunk */
};

/* Starts copying the queries or keys of a head, with zeros after the last token. */
__device__ __forceinline__ void fetch(bf16 *to, const view<const bf16> &v, int64_t column, int64_t t0,
                                      int64_t tokens)
{
    for (int i = threadIdx.x; i < CHUNK * DELTA / 8; i += CHUNK_THREADS) {
        int r = i / (DELTA / 8), c = i % (DELTA / 8) * 8;
        bool there = t0 + r < tokens;
        copy16(to + r * PITCH + c, v.row(there ? t0 + r : t0) + column + c, there);
    }
    copies_end();
}

/* Computes by / |x| of the warp's sixteen rows. */
__device__ __forceinline__ void lengths(float *to, const bf16 *x, float by)
{
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int r = lane / 8; r < 16; r += 4) {
        float a[8], b[8], sum = 0;
        load8(a, x + r * PITCH + lane % 8 * 8);
        load8(b, x + r * PITCH + lane % 8 * 8 + 64);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum += a[i] * a[i] + b[i] * b[i];
        sum = warp_sum<1, 8>(sum);
        if (lane % 8 == 0)
            to[r] = by / sqrtf(sum + 1e-6f);
    }
}

/* Computes the prefix sums of g and the values that depend on them, by one warp with two tokens per lane. */
template <int N>
__device__ __forceinline__ void gates_of(chunk<N> *w, const delta<bf16> &d, const chunk_place &at)
{
    int lane = threadIdx.x % WARP;
    double sum[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int t = 2 * lane + i;
        const float *gate = d.gates.row(at.t0 + (t < at.count ? t : 0)) + at.head;
        sum[i] = (i ? sum[0] : 0.0) + (t < at.count ? (double)gate[0] : 0.0);
        w->beta[t] = t < at.count ? gate[d.at.value_heads] : 0.0f;
    }
    double all, before = sum_before(sum[1], &all);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        double G = before + sum[i];
        w->sum[2 * lane + i] = (float)G;
        w->low[2 * lane + i] = (float)(G - (double)(float)G);
        w->left[2 * lane + i] = expf((float)(all - G));
    }
}

} // namespace
