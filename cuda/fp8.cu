/* fp8.cu - matrix products of fp8 weights with activations quantized to e4m3, on fp8 tensor cores
 * (--activations fp8).
 *
 * If fp8 weights are dequantized to bf16, each part of a prompt costs 5 bytes of memory traffic per
 * weight, and the products run at the bf16 rate. Here cuBLASLt reads the stored codes, 1 byte per weight,
 * and its products run at twice that rate. The activations are quantized per row (ops/f8.h), which costs 3
 * bytes per element of x, compared with 2 N operations. The codes of x are permuted within groups of four
 * like those of the weights (quant_formats.cuh); this does not change a sum.
 *
 * The scales of the weight's rows and of the rows of x are applied between the sum and its rounding. The
 * sums are written in f32, for a limited number of columns of y at a time so that they stay in the cache
 * of a large GPU, and a second pass reads them and does the rest. Scales finer than a row of the weight
 * could not be applied after the sum. Matrices with scales per block therefore do not have the format f8
 * here.
 *
 * The precision of the sums is that of the fp8 tensor cores. Hopper and Ada discard bits below 2^-13 of
 * the largest among 32 products and the previous sum. The library adds such sums in f32 after each 128
 * products, since its fast accumulation mode is off. Observed on an H200 (27 Nov 2026, t_cuda_fp8). The
 * speed was not measured. */
#include "linear.cuh"
#include "quant_formats.cuh"

#define F8_FUNCTION __host__ __device__ __forceinline__
#include "ops/f8.h"

enum { ROW_THREADS = 256 };

/* Returns the larger magnitude of two bf16, as the bits of a float. */
__device__ __forceinline__ unsigned larger_of(unsigned pair)
{
    return max((pair & 0x7fffu) << 16, pair & 0x7fff0000u);
}

/* Converts four values in two words to codes, in the order of place_of. */
__device__ __forceinline__ unsigned four_codes(unsigned a, unsigned b, float each)
{
    return (unsigned)f8_of(__uint_as_float(a << 16) * each) |
           (unsigned)f8_of(__uint_as_float(b << 16) * each) << 8 |
           (unsigned)f8_of(__uint_as_float(a & 0xffff0000u) * each) << 16 |
           (unsigned)f8_of(__uint_as_float(b & 0xffff0000u) * each) << 24;
}

/* Quantizes one row per block. The row is read twice, eight values at a time, the second time from the
 * cache. Codes after the columns of x are zero. */
__global__ __launch_bounds__(ROW_THREADS) void round_rows(view<uint8_t> codes, float *scales,
                                                          view<const bf16> x)
{
    const uint4 *from = reinterpret_cast<const uint4 *>(x.row(blockIdx.x));
    uint2 *to = reinterpret_cast<uint2 *>(codes.row(blockIdx.x));
    unsigned most = 0;
    for (int64_t i = threadIdx.x; i < x.cols / 8; i += ROW_THREADS) {
        const uint4 v = from[i];
        most = max(most, max(max(larger_of(v.x), larger_of(v.y)), max(larger_of(v.z), larger_of(v.w))));
    }
    const f8_row r = f8_row_of(__uint_as_float(block_max(most)));
    for (int64_t i = threadIdx.x; i < codes.cols / 8; i += ROW_THREADS) {
        const uint4 v = i < x.cols / 8 && r.each > 0 ? from[i] : uint4{0, 0, 0, 0};
        to[i] = uint2{four_codes(v.x, v.y, r.each), four_codes(v.z, v.w, r.each)};
    }
    if (threadIdx.x == 0)
        scales[blockIdx.x] = r.scale;
}

/* ---- the product --------------------------------------------------------------------------------------- */

/* Some rows of x in e4m3, and memory for their sums. */
struct rounded {
    struct tensor codes;
    float *scales, *sums;
    size_t sums_bytes;
};

/* Returns the codes of rows [n, n + count) as a matrix. The codes include padding rows up to whole tiles. */
static struct tensor codes_of(const struct weight *w, int64_t n, int64_t count)
{
    int64_t room = quantized_padded(w);
    return {static_cast<char *>(w->bytes) + n * room, DT_F8E4M3, count, room, room};
}

/* Returns the number of columns for whose sums there is memory, rounded to whole tiles of the library's
 * kernels if possible. */
static int64_t columns_at_once(const struct rounded *r)
{
    enum { LIBRARY_TILE = 256 };
    int64_t n = static_cast<int64_t>(r->sums_bytes / sizeof(float)) / r->codes.rows;
    return n >= LIBRARY_TILE ? n / LIBRARY_TILE * LIBRARY_TILE : n / TILE * TILE;
}

static void multiply_rounded(struct backend *b, const struct product &p, const struct rounded *r)
{
    int64_t most = columns_at_once(r);
    for (int64_t n = 0; n < p.y.cols; n += most) {
        int64_t cols = least(p.y.cols - n, most), whole = (cols + TILE - 1) / TILE * TILE;
        struct tensor sums = {r->sums, DT_F32, r->codes.rows, whole, whole};
        struct product part = p;
        part.y = tensor_cols(p.y, n, cols);
        part.bias = p.bias ? p.bias + n : nullptr;
        gemm(b, sums, r->codes, codes_of(p.w, n, whole), 1.0f, nullptr, SET);
        epilogue(b, part, tensor_cols(sums, 0, cols), p.w->scales + n, r->scales);
    }
}

void multiply_fp8(struct backend *b, const struct product &p)
{
    const struct work_parts *parts = cuda_work_parts();
    int64_t room = quantized_padded(p.w), most = least(work_rounded_rows(parts, room), p.y.rows);
    char *scratch = static_cast<char *>(cuda_scratch(b, work_quantized(parts, room)));
    struct rounded r = {{scratch, DT_F8E4M3, most, room, room},
                        reinterpret_cast<float *>(scratch + most * room),
                        reinterpret_cast<float *>(scratch + work_dequantized(parts, room).bytes),
                        parts->sums};
    for (int64_t t = 0; t < p.y.rows; t += most) {
        struct product some = p;
        r.codes.rows = least(p.y.rows - t, most);
        some.y = tensor_rows(p.y, t, r.codes.rows);
        some.x = tensor_rows(p.x, t, r.codes.rows);
        LAUNCH(round_rows, grid_of(r.codes.rows), ROW_THREADS, 0, b, view_of<uint8_t>(r.codes), r.scales,
               view_of<const bf16>(some.x));
        multiply_rounded(b, some, &r);
    }
}
