/* quant_formats.cuh - memory layout of weights in bf16 and quantized formats, and the tensor-core product
 * of 16 of their rows.
 *
 * A warp multiplies 16 rows of a weight by up to 8 columns of x^T with mma.m16n8k16. The order of k in a
 * product is free if both operands share it, so it is chosen for the loads: a lane takes 16 bytes of row g
 * = lane / 4 and 16 bytes of row g + 8, which are all A fragments that it needs for two, four or eight
 * instructions, and the same k of column g of x. Lanes exchange no data.
 *
 *     format  k of a block   k of lane t = lane % 4 in it
 *     bf16    32             8 t + (0..7)
 *     i8, f8  64             16 t + (0..15)
 *     i4      128            32 j + 8 t + (0..7) for each of four groups j
 *     f4      128            16 j + 4 t + (0..3) for each of eight groups j
 *
 * bf16 weights are row-major, as cuBLAS requires; a block is 64 bytes of each of 16 rows. Quantized
 * weights are stored in the order of reading: tiles of 16 rows; within a tile, the blocks by k; within a
 * block, 512 bytes of rows 0..7 (16 per lane) and 512 bytes of rows 8..15. Formats with groups add 16
 * bytes per g, the scales of rows g and g + 8 (i4: bf16, f4: e4m3 as in the file). With f8, the blocks of
 * a row are consecutive, so that its codes are also a row-major matrix for the library (fp8.cu). The f32
 * row scales follow all tiles. The padding to whole tiles and blocks is zero.
 *
 * Codes are converted to bf16 by moving their bits to the positions of bf16. An e4m3 or e2m1 value then
 * differs by a power of two, and an integer becomes the mantissa of a number from 128 on; one fused
 * multiply-add per two values corrects both. Within a word, codes for the same register are 16 bits apart,
 * which saves an instruction. (The NaN codes of e4m3, which no weight matrix contains, read as 480.) */
#pragma once

#include "host.cuh"
#include "mma.cuh"

enum { TILE = 16, BLOCK_CODES = 1024, BLOCK_SCALES = 128 };

__host__ __device__ constexpr bool is_packed4(int format)
{
    return format == QUANT_I4 || format == QUANT_F4;
}

/* Runs a statement with F as the format, one of bf16 (QUANT_NONE) and those with kernels for tensor cores. */
#define WITH_FORMAT(F, format_, ...)                                                                         \
    do {                                                                                                     \
        if ((format_) == QUANT_I8) {                                                                         \
            constexpr int F = QUANT_I8;                                                                      \
            __VA_ARGS__;                                                                                     \
        } else if ((format_) == QUANT_I4) {                                                                  \
            constexpr int F = QUANT_I4;                                                                      \
            __VA_ARGS__;                                                                                     \
        } else if ((format_) == QUANT_F8) {                                                                  \
            constexpr int F = QUANT_F8;                                                                      \
            __VA_ARGS__;                                                                                     \
        } else if ((format_) == QUANT_F4) {                                                                  \
            constexpr int F = QUANT_F4;                                                                      \
            __VA_ARGS__;                                                                                     \
        } else {                                                                                             \
            constexpr int F = QUANT_NONE;                                                                    \
            __VA_ARGS__;                                                                                     \
        }                                                                                                    \
    } while (0)

/* Return the number of k in a block, and its bytes. */
__host__ __device__ constexpr int format_span(int format)
{
    return is_packed4(format) ? 128 : format == QUANT_NONE ? 32 : 64;
}

__host__ __device__ constexpr int format_bytes(int format)
{
    return BLOCK_CODES + (is_packed4(format) ? BLOCK_SCALES : 0);
}

/* Returns the offset of block `block` of a row in a tile, for a matrix with `blocks` blocks per row. All
 * rows of a tile have the same offset, except for f8. */
__host__ __device__ __forceinline__ int64_t block_at(int format, int64_t blocks, int64_t tile, int row,
                                                     int64_t block)
{
    return format == QUANT_F8 ? ((tile * TILE + row) * blocks + block) * (BLOCK_CODES / TILE)
                              : (tile * blocks + block) * format_bytes(format);
}

/* Returns the distance in bytes between the codes of a block in adjacent rows. */
__host__ __device__ __forceinline__ int64_t row_bytes(int format, int64_t blocks)
{
    return (format == QUANT_F8 ? blocks : 1) * (BLOCK_CODES / TILE);
}

/* Returns the offset of a lane's first 16 bytes relative to block_at. */
__device__ __forceinline__ int64_t lane_at(int format, int64_t row)
{
    int lane = threadIdx.x % WARP; /* rows of tiles are consecutive, which the compiler does not detect */
    return format == QUANT_F8 ? lane / 4 * row + lane % 4 * 16 : lane * 16;
}

/* Index of a code in its block (in nibbles if two share a byte), and of its group's scale (in bytes). */
struct code_place {
    int code, scale;
};

__host__ __device__ __forceinline__ code_place place_of(int format, int row, int k)
{
    row = format == QUANT_F8 ? 0 : row;
    int half = row / 8, g = row % 8;
    if (format == QUANT_I4) {
        int j = k / 32, t = k % 32 / 8, i = k % 8;
        return code_place{(half * 512 + (4 * g + t) * 16 + 4 * j) * 2 + i % 2 * 4 + i / 2,
                          BLOCK_CODES + 16 * g + 8 * half + 2 * j};
    }
    if (format == QUANT_F4) {
        int j = k / 16, t = k % 16 / 4, i = j % 2 * 4 + k % 4;
        return code_place{(half * 512 + (4 * g + t) * 16 + j / 2 * 4) * 2 + i % 2 * 4 + i / 2,
                          BLOCK_CODES + 16 * g + 8 * half + j};
    }
    int t = k / 16, i = k % 4;
    return code_place{half * 512 + (4 * g + t) * 16 + k % 16 / 4 * 4 + i % 2 * 2 + i / 2, 0};
}

/* ---- codes to bf16 ------------------------------------------------------------------------------------- */

/* Converts two codes, 16 bits apart in the low bits of p, to two bf16. */
template <int FORMAT> __device__ __forceinline__ unsigned pair_of(unsigned p)
{
    const unsigned one = 0x3f803f80u, nothing = 0x80008000u;
    if (FORMAT == QUANT_I8) /* 128 + the low seven bits, minus 128, or minus 256 if negative */
        return fma2((p & 0x007f007fu) | 0x43004300u, one, (p & 0x00800080u) | 0xc300c300u);
    if (FORMAT == QUANT_F8)
        return fma2((p & 0x007f007fu) << 4 | (p & 0x00800080u) << 8, 0x7b807b80u, nothing);
    if (FORMAT == QUANT_I4) /* 136 + code, minus 136 */
        return fma2(((p & 0x000f000fu) ^ 0x00080008u) | 0x43004300u, one, 0xc308c308u);
    return fma2((p & 0x00070007u) << 6 | (p & 0x00080008u) << 12, 0x7e807e80u, nothing);
}

/* Returns pair i of a word, which has two pairs of 8-bit codes or four pairs of 4-bit codes. */
template <int FORMAT> __device__ __forceinline__ unsigned pair_at(unsigned word, int i)
{
    return pair_of<FORMAT>(word >> (is_packed4(FORMAT) ? 4 : 8) * i);
}

__device__ __forceinline__ float e4m3(unsigned v)
{
    return __uint_as_float((v & 0x7f) << 20 | (v & 0x80) << 24) * 0x1p120f;
}

/* Returns the scale of group j of row g, or, with half = 1, of row g + 8. */
template <int FORMAT> __device__ __forceinline__ float scale_at(const uint4 &scales, int half, int j)
{
    if (FORMAT == QUANT_I4)
        return __uint_as_float(word_of(scales, 2 * half + j / 2) >> 16 * (j % 2) << 16);
    return e4m3(word_of(scales, 2 * half + j / 4) >> 8 * (j % 4));
}

/* ---- x ------------------------------------------------------------------------------------------------- */

/* Column g of each of NT tiles of x^T; NULL: zeros. Rows and strides are multiples of 16 bytes. */
template <int NT> struct columns {
    const bf16 *row[NT];
    int64_t cols;

    __device__ __forceinline__ uint2 four(int n, int64_t k) const
    {
        if (!row[n] || k >= cols)
            return uint2{0, 0};
        return *reinterpret_cast<const uint2 *>(row[n] + k);
    }
    __device__ __forceinline__ uint4 eight(int n, int64_t k) const
    {
        if (!row[n] || k >= cols)
            return uint4{0, 0, 0, 0};
        return *reinterpret_cast<const uint4 *>(row[n] + k);
    }
};

/* A lane's values of x for one block of k. */
template <int FORMAT, int NT> struct x_block {
    enum { WORDS = format_span(FORMAT) / 32 };
    uint4 at[NT][WORDS];

    __device__ __forceinline__ void load(const columns<NT> &x, int64_t block)
    {
        int64_t k = block * format_span(FORMAT), t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int i = 0; i < WORDS; i++)
                if (FORMAT == QUANT_F4) {
                    const uint2 a = x.four(n, k + 32 * i + 4 * t), b = x.four(n, k + 32 * i + 16 + 4 * t);
                    at[n][i] = uint4{a.x, a.y, b.x, b.y};
                } else {
                    at[n][i] = x.eight(n, k + 8 * (FORMAT == QUANT_I4 ? 4 * i + t : WORDS * t + i));
                }
    }
};

/* ---- weights ------------------------------------------------------------------------------------------- */

/* Loads 16 bytes that are read only once and should not evict x from the cache. */
__device__ __forceinline__ uint4 passing16(const void *at)
{
#ifdef CUDA_EMULATED
    return *static_cast<const uint4 *>(at);
#else
    uint4 v;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(at));
    return v;
#endif
}

/* A lane's registers for one block. */
struct block_registers {
    uint4 low, high; /* rows g and g + 8 */
    uint4 scales;
};

/* Returns register p of four with the operands for word i of x. */
template <int FORMAT> __device__ __forceinline__ unsigned registers_of(const uint4 &codes, int i, int p)
{
    if (FORMAT == QUANT_NONE)
        return word_of(codes, p);
    return is_packed4(FORMAT) ? pair_at<FORMAT>(word_of(codes, i), p)
                              : pair_at<FORMAT>(word_of(codes, 2 * i + p / 2), p % 2);
}

__device__ __forceinline__ void multiply_words(float d[4], unsigned l0, unsigned h0, unsigned l1, unsigned h1,
                                               unsigned x0, unsigned x1)
{
    const unsigned a[4] = {l0, h0, l1, h1}, b[2] = {x0, x1};
    mma_16816(d, a, b);
}

/* A weight of any format. at: bf16 [N, K] with rows of `stride` elements, a multiple of 8; or tiles. */
template <int FORMAT> struct matrix {
    const void *at;
    int64_t rows, cols, stride;
    const float *scales; /* row scales; NULL: 1 */

    /* Reads a block of a quantized format. */
    __device__ __forceinline__ block_registers read(int64_t tile, int64_t block) const
    {
        int lane = threadIdx.x % WARP;
        block_registers h = {};
        const char *from = static_cast<const char *>(at) + block_at(FORMAT, stride, tile, 0, block);
        int64_t row = row_bytes(FORMAT, stride), mine = lane_at(FORMAT, row);
        h.low = passing16(from + mine);
        h.high = passing16(from + 8 * row + mine);
        if (is_packed4(FORMAT))
            h.scales = passing16(from + BLOCK_CODES + lane / 4 * 16);
        return h;
    }

    __device__ __forceinline__ float scale(int64_t row) const
    {
        return FORMAT == QUANT_NONE ? 1.0f : scales[row];
    }
};

/* Multiplies a block. With 4-bit codes, the sum of a group is scaled when complete, which takes one
 * instruction for e2m1 and two for i4. */
template <int FORMAT, int NT>
__device__ __forceinline__ void multiply_block(float d[NT][4], const block_registers &h,
                                               const x_block<FORMAT, NT> &x)
{
    const int groups = FORMAT == QUANT_F4 ? 2 : 1; /* per word of 4-bit codes */
#pragma unroll
    for (int i = 0; i < x_block<FORMAT, NT>::WORDS; i++) {
        unsigned l[4] = {}, u[4] = {};
#pragma unroll
        for (int p = 0; p < 4; p++) {
            l[p] = registers_of<FORMAT>(h.low, i, p);
            u[p] = registers_of<FORMAT>(h.high, i, p);
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const uint4 v = x.at[n][i];
            float part[2][4] = {}, (*to)[4] = is_packed4(FORMAT) ? part : d + n;
            multiply_words(to[0], l[0], u[0], l[1], u[1], v.x, v.y);
            multiply_words(to[groups - 1], l[2], u[2], l[3], u[3], v.z, v.w);
#pragma unroll
            for (int j = 0; j < groups && is_packed4(FORMAT); j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    d[n][e] += scale_at<FORMAT>(h.scales, e / 2, groups * i + j) * part[j][e];
        }
    }
}

/* ---- product of 16 rows ---------------------------------------------------------------------------- */

enum { WARPS = 8, SUM_THREADS = WARPS * WARP };

/* Ring of shared memory for blocks of k that are in flight to a warp. Each lane reads only the 16 bytes of
 * a slot that it requested itself, so that no barrier is needed. (The compiler would move loads into
 * registers down to their uses, and no load would be in flight.) */
template <int FORMAT> struct pipeline {
    enum { STAGES = is_packed4(FORMAT) ? 3 : 4, SLOTS = is_packed4(FORMAT) ? 3 : 2 };
    enum { WORDS = STAGES * SLOTS * WARP }; /* words of 16 bytes per warp */
    uint4 *mine;

    __device__ __forceinline__ uint4 *slot(int stage, int which) const
    {
        return mine + (stage * SLOTS + which) * WARP;
    }

    __device__ __forceinline__ void fetch(int stage, const matrix<FORMAT> &w, int64_t tile,
                                          int64_t block) const
    {
        int lane = threadIdx.x % WARP;
        if (FORMAT == QUANT_NONE) {
            int64_t k = block * 32 + lane % 4 * 8, r = tile * TILE + lane / 4;
            bool wanted = k < w.stride;
            const bf16 *from = static_cast<const bf16 *>(w.at) + (wanted ? k : 0);
            copy16(slot(stage, 0), from + (r < w.rows ? r : w.rows - 1) * w.stride, wanted);
            copy16(slot(stage, 1), from + (r + 8 < w.rows ? r + 8 : w.rows - 1) * w.stride, wanted);
            return;
        }
        const char *from = static_cast<const char *>(w.at) + block_at(FORMAT, w.stride, tile, 0, block);
        int64_t row = row_bytes(FORMAT, w.stride), mine = lane_at(FORMAT, row);
        copy16(slot(stage, 0), from + mine, true);
        copy16(slot(stage, 1), from + 8 * row + mine, true);
        if (is_packed4(FORMAT))
            copy16(slot(stage, 2), from + BLOCK_CODES + lane / 4 * 16, true);
    }

    __device__ __forceinline__ block_registers take(int stage) const
    {
        block_registers h = {};
        h.low = *slot(stage, 0);
        h.high = *slot(stage, 1);
        if (is_packed4(FORMAT))
            h.scales = *slot(stage, 2);
        return h;
    }
};

/* Shared memory of sum_tile in words of 16 bytes: first the pipelines, then the sums in the same place. */
template <int FORMAT, int NT> struct sum_room {
    enum { PIPELINES = WARPS * pipeline<FORMAT>::WORDS, SUMS = WARPS * 8 * NT * TILE / 4 };
    enum { WORDS = (int)PIPELINES > (int)SUMS ? (int)PIPELINES : (int)SUMS };
};

/* Computes the sums of 16 rows of a weight with 8 NT columns: [WARPS][8 NT][16], in `room`. The assignment
 * of the blocks of k to warps does not depend on the number of columns, so that the sum of a column always
 * has the same bits. While a warp multiplies one block, STAGES - 1 blocks are in flight to it. */
template <int NT, int FORMAT>
__device__ __forceinline__ const float *sum_tile(uint4 *room, const matrix<FORMAT> &w, int64_t tile,
                                                 const columns<NT> &x)
{
    enum { STAGES = pipeline<FORMAT>::STAGES };
    int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
    int64_t blocks = (w.cols + format_span(FORMAT) - 1) / format_span(FORMAT);
    const pipeline<FORMAT> on_way = {room + warp * pipeline<FORMAT>::WORDS + threadIdx.x % WARP};
    float d[NT][4] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (warp + i * WARPS < blocks)
            on_way.fetch(i, w, tile, warp + i * WARPS);
        copies_end();
    }
    overlap_wait();                   /* the weights are in flight */
    int stage = 0, last = STAGES - 1; /* the stage in use, and the previous one */
    x_block<FORMAT, NT> now, next;    /* x is loaded one block ahead of its use */
    now.load(x, warp);
    for (int64_t block = warp; block < blocks; block += WARPS) {
        copies_wait<STAGES - 2>();
        const block_registers h = on_way.take(stage);
        if (block + (STAGES - 1) * WARPS < blocks)
            on_way.fetch(last, w, tile, block + (STAGES - 1) * WARPS);
        copies_end();
        next.load(x, block + WARPS);
        multiply_block<FORMAT, NT>(d, h, now);
        now = next;
        last = stage;
        stage = stage + 1 < STAGES ? stage + 1 : 0;
    }
    __syncthreads(); /* the pipelines are not needed any more */
    float *sums = reinterpret_cast<float *>(room), *mine = sums + warp * 8 * NT * TILE;
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            mine[(8 * n + 2 * t + e % 2) * TILE + g + e / 2 * 8] = d[n][e];
    __syncthreads();
    return sums;
}

template <int NT> __device__ __forceinline__ float sum_of_warps(const float *sums, int place)
{
    float v = sums[place];
#pragma unroll
    for (int i = 1; i < WARPS; i++)
        v += sums[i * 8 * NT * TILE + place];
    return v;
}

/* Multiplies 16 rows of a weight by row(t) of x for up to 8 NT rows t from `first` on, before `end`. Calls
 * take(t, n, value) for each result. */
template <int NT, int FORMAT, class R, class F>
__device__ __forceinline__ void multiply_tile(uint4 *room, const matrix<FORMAT> &w, int64_t tile,
                                              int64_t first, int64_t end, R row, F take)
{
    columns<NT> x;
    x.cols = w.cols;
#pragma unroll
    for (int n = 0; n < NT; n++) {
        int64_t t = first + 8 * n + threadIdx.x % WARP / 4;
        x.row[n] = t < end ? row(t) : nullptr;
    }
    const float *sums = sum_tile<NT>(room, w, tile, x);
    for (int i = threadIdx.x; i < 8 * NT * TILE; i += SUM_THREADS) {
        int64_t t = first + i / TILE, n = tile * TILE + i % TILE;
        if (t < end && n < w.rows)
            take(t, n, sum_of_warps<NT>(sums, i) * w.scale(n));
    }
}

/* Applies the epilogue to a sum (see ops.h). */
template <class Y> __device__ __forceinline__ float after_epilogue(float v, int epi)
{
    if (epi == EPI_RELU2) {
        v = rounded<Y>(v);
        v = v > 0 ? v * v : 0;
    } else if (epi == EPI_GELU) {
        v = 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
    } else if (epi == EPI_GELU_TANH) {
        v = 0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
    }
    return v;
}

template <class Y> __device__ __forceinline__ void store_epilogue(Y *y, float v, int epi, accumulate mode)
{
    v = after_epilogue<Y>(v, epi);
    store(y, mode == ADD ? number(*y) + rounded<Y>(v) : v);
}

/* Output of either type, selected at run time: one store per sum does not justify twice the number of
 * kernels. */
struct output {
    void *at;
    int64_t rows, cols, stride;
    bool full; /* f32 */
    __device__ __forceinline__ void put(int64_t t, int64_t n, float v, int epi, accumulate mode) const
    {
        if (full)
            store_epilogue(static_cast<float *>(at) + t * stride + n, v, epi, mode);
        else
            store_epilogue(static_cast<bf16 *>(at) + t * stride + n, v, epi, mode);
    }
};

static inline output output_of(struct tensor y)
{
    return output{y.data, y.rows, y.cols, y.stride, y.dtype == DT_F32};
}

template <int FORMAT> static inline matrix<FORMAT> matrix_of(const struct weight *w)
{
    const void *at = FORMAT == QUANT_NONE ? w->plain.data : w->bytes;
    return matrix<FORMAT>{at, w->rows, w->cols, w->stride, w->scales};
}
