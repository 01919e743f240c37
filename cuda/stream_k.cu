/* stream_k.cu - matrix products of quantized weights with 17 or more rows, computed on the stored codes
 * (stream-K decomposition).
 *
 * Dequantizing to bf16 first costs 5 bytes of memory traffic per 8-bit weight, whose code has one byte.
 * Here each code is read once for up to 128 rows, and its bf16 value exists only in registers. With 100
 * rows of 8-bit weights, an H100 needs as long for the arithmetic as for the bytes, so both should be near
 * their limits. Estimate in clocks of a multiprocessor, for 64 weights of 64 rows with 112 rows of x: 320
 * for the codes from memory, 360 for the tensor cores (mma.sync, 60 % of the rate of wgmma), and 430 for
 * shared memory (340 of them for x). An H200 did not reach this (27 Nov 2026, bench --section fleet of
 * holotron-12b in fp8): 128 rows through all weights took about 26 ms, four times the estimate, as derived
 * from 38 ms for 100 sessions and 480 ms for a prompt. The reason is unknown; cuda/README.md lists the
 * next measurements.
 *
 * A block has 64 rows of the weight (a band), all rows of x, and four warps in a 2 x 2 arrangement. Codes
 * and x pass through a ring in shared memory, several stages ahead of their use. x is stored so that lanes
 * that read together access different banks: 16-byte chunks are swizzled by the number of their row.
 *
 * The number of bands of a matrix is rarely a multiple of the number of multiprocessors. The work is
 * therefore not divided by bands but evenly (stream-K): in units of k through all bands, in as many ranges
 * as blocks fit on the GPU at once. If several blocks share a band, the block that ends last adds their
 * sums in the order of the ranges. The boundaries depend on the weight and the GPU, but not on the number
 * of rows of x: the bits of a row are the same for any number of rows from 17 on. */
#include "linear.cuh"
#include "quant_formats.cuh"

namespace
{

enum {
    BAND = 4 * TILE, /* rows of the weight */
    MOST_ROWS = 128, /* rows of x per launch */
    BAND_WARPS = 4,  /* 2 x 2: 32 rows of the weight by half of the rows of x */
    BAND_THREADS = BAND_WARPS * WARP,
    STEP = 64,                 /* k per stage of x */
    X_CHUNKS = STEP / 8,       /* chunks of 16 bytes */
    BLOCKS_EACH = 2,           /* per multiprocessor, for any number of rows of x, because the boundaries
                                * depend on it */
    LEAST_UNITS = 4,           /* minimum units in a block's range, if there are enough */
    PARTIAL = BAND * MOST_ROWS /* sums in a block's share of a band */
};

/* Shared memory for 16 NT rows of x: STAGES of x, SLOTS for blocks of codes. */
template <int FORMAT, int NT> struct ring {
    enum { COLS = 16 * NT, STEPS = format_span(FORMAT) / STEP };
    enum { STAGES = NT <= 4 ? 5 : STEPS == 1 ? 4 : 3 }; /* odd if a unit has two steps */
    enum { SLOTS = STEPS == 1 ? (int)STAGES : ((int)STAGES + 1) / 2 };
    enum { X_BYTES = COLS * STEP * 2, UNIT = 4 * format_bytes(FORMAT) };
    enum { BYTES = STAGES * X_BYTES + SLOTS * UNIT };
    char *room;

    __device__ __forceinline__ char *x(int stage) const
    {
        return room + stage * X_BYTES;
    }
    __device__ __forceinline__ char *unit(int slot) const
    {
        return room + STAGES * X_BYTES + slot * UNIT;
    }
};

/* Returns the position of a chunk of row r of x within its row. */
template <int FORMAT> __device__ __forceinline__ int swizzled(int chunk, int r)
{
    return chunk ^ (FORMAT == QUANT_I4 ? (r & 1) << 2 : FORMAT == QUANT_F4 ? (r & 3) << 1 : r & 1);
}

/* Position in the work: unit `block` of band `band`, step `step` of that unit. */
struct place_of_work {
    int band, block, step;

    __device__ __forceinline__ void next(int blocks, int steps)
    {
        if (++step < steps)
            return;
        step = 0;
        if (++block == blocks) {
            block = 0;
            band++;
        }
    }
};

template <int FORMAT> struct stream_k_work {
    output y;
    view<const bf16> x;
    matrix<FORMAT> w;
    const float *bias;
    int epi;
    accumulate mode;
    float *partials;   /* [blocks][2][PARTIAL] */
    unsigned *arrived; /* [bands], zero before and after */
};

/* Return the first unit of a block's range, of `total` units; and the block whose range contains a unit. */
__device__ __forceinline__ int64_t range_begin(int64_t block, int64_t total)
{
    return total * block / gridDim.x;
}

__device__ __forceinline__ int64_t owner_of(int64_t unit, int64_t total)
{
    return ((unit + 1) * gridDim.x - 1) / total;
}

template <int FORMAT, int NT>
__device__ __forceinline__ void fetch(const ring<FORMAT, NT> &r, int stage, int slot,
                                      const stream_k_work<FORMAT> &k, const place_of_work &p)
{
    enum { STEPS = ring<FORMAT, NT>::STEPS, CHUNKS = BLOCK_CODES / 16 };
    for (int i = threadIdx.x; i < ring<FORMAT, NT>::COLS * X_CHUNKS; i += BAND_THREADS) {
        int row = i / X_CHUNKS, chunk = i % X_CHUNKS;
        int64_t col = ((int64_t)p.block * STEPS + p.step) * STEP + chunk * 8;
        bool wanted = row < k.x.rows && col < k.x.cols;
        copy16(r.x(stage) + row * STEP * 2 + swizzled<FORMAT>(chunk, row) * 16,
               wanted ? k.x.row(row) + col : k.x.at, wanted);
    }
    if (p.step)
        return;
    int64_t tiles = (k.w.rows + TILE - 1) / TILE;
    for (int i = threadIdx.x; i < ring<FORMAT, NT>::UNIT / 16; i += BAND_THREADS) {
        int each = format_bytes(FORMAT) / 16;
        int64_t tile = (int64_t)p.band * 4 + i / each;
        bool wanted = tile < tiles;
        int chunk = i % each, row = FORMAT == QUANT_F8 ? chunk / 4 : 0;
        const char *from =
            static_cast<const char *>(k.w.at) + block_at(FORMAT, k.w.stride, wanted ? tile : 0, row, p.block);
        copy16(r.unit(slot) + i * 16, from + (FORMAT == QUANT_F8 ? chunk % 4 : chunk) * 16, wanted);
    }
}

/* ---- step of 64 k ---------------------------------------------------------------------------------- */

struct fragments { /* 16 rows as operand A of two products */
    unsigned low[4], high[4];
};

template <int FORMAT>
__device__ __forceinline__ void dequantized(fragments *f, unsigned low0, unsigned low1, unsigned high0,
                                            unsigned high1)
{
#pragma unroll
    for (int p = 0; p < 4; p++) {
        f->low[p] =
            is_packed4(FORMAT) ? pair_at<FORMAT>(low0, p) : pair_at<FORMAT>(p < 2 ? low0 : low1, p % 2);
        f->high[p] =
            is_packed4(FORMAT) ? pair_at<FORMAT>(high0, p) : pair_at<FORMAT>(p < 2 ? high0 : high1, p % 2);
    }
}

template <class T> __device__ __forceinline__ T shared_at(const char *at)
{
    return *reinterpret_cast<const T *>(at);
}

/* Processes a step with 8-bit codes: two of a lane's four words at a time. */
template <int FORMAT, int NT>
__device__ __forceinline__ void step_wide(float d[2][NT][4], const char *x, const char *tiles)
{
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    uint4 low[2], high[2];
#pragma unroll
    for (int m = 0; m < 2; m++) {
        low[m] = shared_at<uint4>(tiles + m * BLOCK_CODES + lane * 16);
        high[m] = shared_at<uint4>(tiles + m * BLOCK_CODES + 512 + lane * 16);
    }
#pragma unroll
    for (int p = 0; p < 2; p++) {
        fragments f[2];
#pragma unroll
        for (int m = 0; m < 2; m++)
            dequantized<FORMAT>(&f[m], word_of(low[m], 2 * p), word_of(low[m], 2 * p + 1),
                                word_of(high[m], 2 * p), word_of(high[m], 2 * p + 1));
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const uint4 v =
                shared_at<uint4>(x + (8 * n + g) * STEP * 2 + swizzled<FORMAT>(2 * t + p, g) * 16);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                multiply_words(d[m][n], f[m].low[0], f[m].high[0], f[m].low[1], f[m].high[1], v.x, v.y);
                multiply_words(d[m][n], f[m].low[2], f[m].high[2], f[m].low[3], f[m].high[3], v.z, v.w);
            }
        }
    }
}

/* Returns the scale of group j in this step, which has two groups of i4 (scales of 16 bits) or four of f4
 * (8 bits). */
template <int FORMAT> __device__ __forceinline__ float step_scale(unsigned scales, int j)
{
    return FORMAT == QUANT_I4 ? __uint_as_float(scales >> 16 * j << 16) : e4m3(scales >> 8 * j);
}

/* Processes a step with 4-bit codes. A step is half of a block: two of a lane's four words, with one group
 * per word (i4) or two (f4). */
template <int FORMAT, int NT>
__device__ __forceinline__ void step_packed4(float d[2][NT][4], const char *x, const char *tiles, int half)
{
    enum { GROUPS = FORMAT == QUANT_I4 ? 1 : 2 }; /* per word */
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    uint2 low[2], high[2];
    unsigned scales[2][2];
#pragma unroll
    for (int m = 0; m < 2; m++) {
        const char *tile = tiles + m * format_bytes(FORMAT);
        low[m] = shared_at<uint2>(tile + lane * 16 + half * 8);
        high[m] = shared_at<uint2>(tile + 512 + lane * 16 + half * 8);
        scales[m][0] = shared_at<unsigned>(tile + BLOCK_CODES + g * 16 + half * 4);
        scales[m][1] = shared_at<unsigned>(tile + BLOCK_CODES + g * 16 + 8 + half * 4);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        fragments f[2];
#pragma unroll
        for (int m = 0; m < 2; m++)
            dequantized<FORMAT>(&f[m], e ? low[m].y : low[m].x, 0, e ? high[m].y : high[m].x, 0);
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const char *row = x + (8 * n + g) * STEP * 2;
            uint4 v;
            if (GROUPS == 1) {
                v = shared_at<uint4>(row + swizzled<FORMAT>(4 * e + t, g) * 16);
            } else {
                const uint2 a = shared_at<uint2>(row + swizzled<FORMAT>(4 * e + t / 2, g) * 16 + t % 2 * 8),
                            b = shared_at<uint2>(row + swizzled<FORMAT>(4 * e + 2 + t / 2, g) * 16 +
                                                 t % 2 * 8);
                v = uint4{a.x, a.y, b.x, b.y};
            }
#pragma unroll
            for (int m = 0; m < 2; m++) {
                float part[2][4] = {};
                multiply_words(part[0], f[m].low[0], f[m].high[0], f[m].low[1], f[m].high[1], v.x, v.y);
                multiply_words(part[GROUPS - 1], f[m].low[2], f[m].high[2], f[m].low[3], f[m].high[3], v.z,
                               v.w);
#pragma unroll
                for (int j = 0; j < GROUPS; j++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        d[m][n][i] += step_scale<FORMAT>(scales[m][i / 2], GROUPS * e + j) * part[j][i];
            }
        }
    }
}

/* ---- end of a band --------------------------------------------------------------------------------- */

/* Returns the location of a warp's sums among those of a block. */
template <int NT> __device__ __forceinline__ float4 *partial_at(float *partials, int64_t share)
{
    return reinterpret_cast<float4 *>(partials + share * PARTIAL) + threadIdx.x / WARP * (2 * NT * WARP) +
           threadIdx.x % WARP;
}

template <int FORMAT, int NT>
__device__ __forceinline__ void finish_band(const float d[2][NT][4], const stream_k_work<FORMAT> &k, int band)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t n = (int64_t)band * BAND + warp / 2 * 32 + m * TILE + half * 8 + lane / 4;
            if (n >= k.y.cols)
                continue;
            float scale = k.w.scale(n), bias = k.bias ? k.bias[n] : 0.0f;
#pragma unroll
            for (int i = 0; i < 2 * NT; i++) {
                int64_t t = warp % 2 * 8 * NT + i / 2 * 8 + lane % 4 * 2 + i % 2, at = t * k.y.stride + n;
                if (t >= k.y.rows)
                    continue;
                float v = d[m][i / 2][2 * half + i % 2] * scale + bias;
                if (k.y.full)
                    store_epilogue(static_cast<float *>(k.y.at) + at, v, k.epi, k.mode);
                else
                    store_epilogue(static_cast<bf16 *>(k.y.at) + at, v, k.epi, k.mode);
            }
        }
}

/* Handles the end of units [begin, end) of a band: stores the result if these are all units, otherwise
 * stores a partial sum for the block that ends last. first: whether the band is the first in the block's
 * range. */
template <int FORMAT, int NT>
__device__ __forceinline__ void band_ends(float d[2][NT][4], const stream_k_work<FORMAT> &k, int band,
                                          int64_t begin, int64_t end, bool first, int64_t total)
{
    int64_t band_begin = (int64_t)band * k.w.stride, band_end = band_begin + k.w.stride;
    if (begin > band_begin || end < band_end) {
        float4 *mine = partial_at<NT>(k.partials, 2 * (int64_t)blockIdx.x + !first);
#pragma unroll
        for (int i = 0; i < 2 * NT; i++)
            mine[i * WARP] = float4{d[i / NT][i % NT][0], d[i / NT][i % NT][1], d[i / NT][i % NT][2],
                                    d[i / NT][i % NT][3]};
        int64_t from = owner_of(band_begin, total), to = owner_of(band_end - 1, total);
        if (!last_of(k.arrived + band, static_cast<unsigned>(to - from + 1)))
            return;
#pragma unroll
        for (int i = 0; i < 2 * NT; i++)
            d[i / NT][i % NT][0] = d[i / NT][i % NT][1] = d[i / NT][i % NT][2] = d[i / NT][i % NT][3] = 0;
        for (int64_t c = from; c <= to; c++) {
            const float4 *share = partial_at<NT>(k.partials, 2 * c + (range_begin(c, total) < band_begin));
#pragma unroll
            for (int i = 0; i < 2 * NT; i++) {
                const float4 v = share[i * WARP];
                d[i / NT][i % NT][0] += v.x, d[i / NT][i % NT][1] += v.y;
                d[i / NT][i % NT][2] += v.z, d[i / NT][i % NT][3] += v.w;
            }
        }
    }
    finish_band<FORMAT, NT>(d, k, band);
}

/* ---- kernel ---------------------------------------------------------------------------------------- */

template <int FORMAT, int NT>
__global__ void __launch_bounds__(BAND_THREADS, BLOCKS_EACH) stream_k_rows(stream_k_work<FORMAT> k)
{
    using R = ring<FORMAT, NT>;
    DYNAMIC_SHARED(char, room);
    const R r = {room};
    int warp = threadIdx.x / WARP, blocks = (int)k.w.stride;
    int64_t total = (k.w.rows + BAND - 1) / BAND * blocks, begin = range_begin(blockIdx.x, total),
            end = range_begin((int64_t)blockIdx.x + 1, total), from = begin; /* from: first unit of the
                                                                              * share in the current band */
    int steps = (int)(end - begin) * R::STEPS, stage = 0, slot = 0, next_stage = 0, next_slot = 0;
    place_of_work here = {(int)(begin / blocks), (int)(begin % blocks), 0}, ahead = here;
    float d[2][NT][4] = {};
    auto fetch_next = [&](int step) {
        if (step < steps) {
            fetch<FORMAT, NT>(r, next_stage, next_slot, k, ahead);
            ahead.next(blocks, R::STEPS);
            next_stage = next_stage + 1 < R::STAGES ? next_stage + 1 : 0;
            if (ahead.step == 0)
                next_slot = next_slot + 1 < R::SLOTS ? next_slot + 1 : 0;
        }
        copies_end();
    };
    for (int i = 0; i < R::STAGES - 1; i++)
        fetch_next(i);
    for (int s = 0; s < steps; s++) {
        copies_wait<R::STAGES - 2>();
        __syncthreads(); /* the copies of all threads are complete, and the previous stage is not needed
                          * any more */
        fetch_next(s + R::STAGES - 1);
        const char *x = r.x(stage) + warp % 2 * 8 * NT * STEP * 2,
                   *tiles = r.unit(slot) + warp / 2 * 2 * format_bytes(FORMAT);
        if constexpr (is_packed4(FORMAT))
            step_packed4<FORMAT, NT>(d, x, tiles, here.step);
        else
            step_wide<FORMAT, NT>(d, x, tiles);
        int band = here.band;
        here.next(blocks, R::STEPS);
        stage = stage + 1 < R::STAGES ? stage + 1 : 0;
        if (here.step == 0)
            slot = slot + 1 < R::SLOTS ? slot + 1 : 0;
        if (here.band == band && s + 1 < steps)
            continue;
        int64_t now = (int64_t)here.band * blocks + here.block;
        band_ends<FORMAT, NT>(d, k, band, from, now, from == begin, total);
        from = now;
#pragma unroll
        for (int i = 0; i < 2 * NT; i++)
            d[i / NT][i % NT][0] = d[i / NT][i % NT][1] = d[i / NT][i % NT][2] = d[i / NT][i % NT][3] = 0;
    }
}

/* ---- launches ------------------------------------------------------------------------------------------ */

template <int FORMAT, int NT>
void launch_stream_k(struct backend *b, const struct product &p, float *partials, unsigned *arrived,
                     int64_t blocks)
{
    const stream_k_work<FORMAT> k = {output_of(p.y),
                                     view_of<const bf16>(p.x),
                                     matrix_of<FORMAT>(p.w),
                                     p.bias,
                                     (int)p.epi,
                                     p.mode,
                                     partials,
                                     arrived};
    allow_shared(stream_k_rows<FORMAT, NT>, ring<FORMAT, NT>::BYTES);
    LAUNCH((stream_k_rows<FORMAT, NT>), grid_of(blocks), BAND_THREADS, (ring<FORMAT, NT>::BYTES), b, k);
}

template <int FORMAT>
void launch_rows_of_x(struct backend *b, const struct product &p, float *partials, unsigned *arrived,
                      int64_t blocks)
{
    int64_t n = p.y.rows;
    (n <= 32    ? launch_stream_k<FORMAT, 2>
     : n <= 64  ? launch_stream_k<FORMAT, 4>
     : n <= 112 ? launch_stream_k<FORMAT, 7>
                : launch_stream_k<FORMAT, 8>)(b, p, partials, arrived, blocks);
}

} // namespace

bool stream_k_suits(const struct product &p)
{
    return p.x.dtype == DT_BF16 && p.w->format != QUANT_NONE && rows_aligned16(p.x) &&
           (p.w->rows + BAND - 1) / BAND <= WORK_BANDS;
}

void stream_k(struct backend *b, const struct product &p)
{
    int64_t total = (p.w->rows + BAND - 1) / BAND * p.w->stride,
            most =
                least(work_partial_blocks(cuda_work_parts()), BLOCKS_EACH * (int64_t)cuda_of(b)->processors),
            blocks = least((total + LEAST_UNITS - 1) / LEAST_UNITS, most);
    float *partials = static_cast<float *>(cuda_scratch(b, work_partials(cuda_work_parts())));
    unsigned *arrived = bands_arrived(b);
    for (int64_t t = 0; t < p.y.rows; t += MOST_ROWS) {
        struct product part = p;
        int64_t n = least(p.y.rows - t, MOST_ROWS);
        part.y = tensor_rows(p.y, t, n);
        part.x = tensor_rows(p.x, t, n);
        WITH_FORMAT(F, p.w->format, launch_rows_of_x<F>(b, part, partials, arrived, blocks));
    }
}
