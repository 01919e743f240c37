/* synthetic.cu - random weights generated on the device for benchmarks without a checkpoint, and the GPU's
 * measured compute limits.
 *
 * A value costs a few integer operations and is written once, so that 26 GB of weights take about a
 * second. A thread generates one value, or one word of codes of a tile (quant_formats.cuh).
 *
 * The bf16 limit is the rate of the library for a large square product, not the data sheet's. The f32
 * limit is that of a chain of fused multiply-adds in registers. */
#define SYNTHETIC_FUNCTION __host__ __device__ __forceinline__
#include "linear.cuh"
#include "quant_formats.cuh"

#include <math.h>
#include <vector>

extern "C" {
#include "ops/synthetic.h"
}

enum { FILL_THREADS = 256 };

/* ---- values -------------------------------------------------------------------------------------------- */

template <class T> __global__ void fill_values(view<T> dst, synthetic m)
{
    position at = my_position(dst.cols);
    uint64_t i = (uint64_t)(at.row * dst.cols + at.column);
    if (at.column < dst.cols)
        store(dst.row(at.row) + at.column, (synthetic_unit(m.seed, i) + m.offset) * m.spread);
}

static void cuda_fill_synthetic(struct backend *b, struct tensor dst, const struct synthetic *m)
{
    dim3 grid = row_blocks(dst.rows, dst.cols, FILL_THREADS);
    WITH_TYPE(T, dst.dtype, LAUNCH(fill_values<T>, grid, FILL_THREADS, 0, b, view_of<T>(dst), *m));
}

/* ---- codes --------------------------------------------------------------------------------------------- */

struct codes {
    unsigned char *bytes;
    int64_t rows, cols, blocks;
};

template <int FORMAT> __device__ __forceinline__ unsigned code_of(uint64_t seed, uint64_t i)
{
    if (FORMAT == QUANT_F8)
        return synthetic_e4m3(seed, i);
    if (FORMAT == QUANT_I8)
        return (unsigned)(int)rintf(synthetic_unit(seed, i) * synthetic_i8) & 255;
    return (unsigned)(int)rintf(synthetic_unit(seed, i) * synthetic_i4) & 15;
}

/* Generates codes k to k + 3 of row n, or to k + 7 of four bits: they share a word. */
template <int FORMAT> __global__ void make_codes(codes to, synthetic m)
{
    const int bits = is_packed4(FORMAT) ? 4 : 8, each = 32 / bits, span = format_span(FORMAT);
    const position at = my_position<each>(to.blocks * span);
    int64_t n = at.row, k = at.column;
    if (k >= to.blocks * span)
        return;
    int row = (int)(n % TILE), in = (int)(k % span);
    unsigned char *block = to.bytes + block_at(FORMAT, to.blocks, n / TILE, row, k / span);
    code_place start = place_of(FORMAT, row, in);
    unsigned word = 0;
    for (int i = 0; i < each; i++)
        if (n < to.rows && k + i < to.cols)
            word |= code_of<FORMAT>(m.seed, (uint64_t)(n * to.cols + k + i))
                    << bits * (place_of(FORMAT, row, in + i).code - start.code);
    *reinterpret_cast<unsigned *>(block + start.code * bits / 8) = word;
    if (FORMAT == QUANT_I4 && k % QUANT_I4_GROUP == 0)
        *reinterpret_cast<bf16 *>(block + start.scale) =
            bf16_of(n < to.rows && k < to.cols ? m.spread / synthetic_i4 : 0.0f);
}

static struct weight *make_quantized(struct backend *b, enum quant_format format, int64_t rows, int64_t cols,
                                     const struct synthetic *m)
{
    struct ops *o = &cuda_of(b)->ops;
    int64_t tiles = (rows + TILE - 1) / TILE,
            end = static_cast<int64_t>(quantized_bytes(b, format, rows, cols)),
            scales = end - tiles * TILE * static_cast<int64_t>(sizeof(float));
    struct tensor there = o->alloc(b, DT_U8, 1, end);
    struct weight *w = new weight();
    w->rows = rows;
    w->cols = cols;
    w->stride = (cols + format_span(format) - 1) / format_span(format);
    w->format = format;
    w->bytes = there.data;
    w->scales = reinterpret_cast<const float *>(static_cast<char *>(there.data) + scales);
    float scale = format == QUANT_I8   ? m->spread / synthetic_i8
                  : format == QUANT_F8 ? m->spread / synthetic_f8
                                       : 1.0f;
    w->scale = format == QUANT_I4 ? scale : NAN; /* the rows of real matrices have different scales; the
                                                  * work is the same */
    std::vector<float> all(static_cast<size_t>(tiles) * TILE, scale);
    struct tensor from = {all.data(), DT_F32, 1, tiles * TILE, tiles * TILE}, at = from;
    at.data = static_cast<char *>(there.data) + scales;
    o->upload(b, at, from);
    codes to = {static_cast<unsigned char *>(w->bytes), rows, cols, w->stride};
    dim3 grid = row_blocks(tiles * TILE, w->stride * format_span(format),
                           FILL_THREADS * (is_packed4(format) ? 8 : 4));
    auto kernel = format == QUANT_I8   ? make_codes<QUANT_I8>
                  : format == QUANT_F8 ? make_codes<QUANT_F8>
                                       : make_codes<QUANT_I4>;
    LAUNCH(kernel, grid, FILL_THREADS, 0, b, to, *m);
    return w;
}

static struct weight *make_weight(struct backend *b, enum quant_format format, enum dtype dtype, int64_t rows,
                                  int64_t cols, const struct synthetic *m)
{
    if (format != QUANT_NONE)
        return make_quantized(b, format, rows, cols, m);
    struct weight *w = new weight();
    w->rows = rows;
    w->cols = cols;
    w->stride = (cols + 7) / 8 * 8; /* rows are multiples of 16 bytes */
    w->plain = cuda_of(b)->ops.alloc(b, dtype, rows, w->stride);
    cuda_fill_synthetic(b, tensor_cols(w->plain, 0, cols), m);
    return w;
}

/* Generates a weight and waits for it. Products read weights before they wait for the preceding kernel
 * (overlap_wait), which must not be the one that generates them. */
static struct weight *cuda_make_synthetic_weight(struct backend *b, enum quant_format format,
                                                 enum dtype dtype, int64_t rows, int64_t cols,
                                                 const struct synthetic *m)
{
    if (format >= QUANT_F4)
        return synthetic_weight(b, format, dtype, rows, cols, m);
    struct weight *w = make_weight(b, format, dtype, rows, cols, m);
    CUDA(cudaStreamSynchronize(cuda_of(b)->stream));
    return w;
}

/* ---- limits -------------------------------------------------------------------------------------------- */

#ifdef CUDA_EMULATED
enum { SIDE = 64, PRODUCTS = 1, LESS = 1 << 10 };
#else
enum { SIDE = 8192, PRODUCTS = 16, LESS = 1 };
#endif

__global__ void multiply_add(float *out, float factor, int64_t rounds)
{
    float sum[8];
    for (int i = 0; i < 8; i++)
        sum[i] = (float)(threadIdx.x + i);
    for (int64_t r = 0; r < rounds; r++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i] = fmaf(sum[i], factor, factor);
    float all = 0;
    for (int i = 0; i < 8; i++)
        all += sum[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

static void cuda_synchronize(struct backend *b)
{
    CUDA(cudaDeviceSynchronize()); /* other backends of this process may use the same device */
}

static double probe_f32(struct backend *b, int64_t rounds)
{
    unsigned blocks = 8 * static_cast<unsigned>(cuda_of(b)->processors);
    rounds = rounds / LESS + 1;
    float *out =
        static_cast<float *>(cuda_scratch(b, static_cast<size_t>(blocks) * FILL_THREADS * sizeof(float)));
    LAUNCH(multiply_add, blocks, FILL_THREADS, 0, b, out, 0.5f, rounds);
    return 2.0 * 8 * static_cast<double>(rounds) * blocks * FILL_THREADS;
}

/* Measures with random values, since zeros use less power and run faster. */
static double probe_bf16(struct backend *b)
{
    const struct synthetic m = {1, 0, 1.0f / 64};
    char *room = static_cast<char *>(cuda_scratch(b, 3 * size_t{SIDE} * SIDE * sizeof(bf16)));
    struct tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = tensor{room + i * size_t{SIDE} * SIDE * sizeof(bf16), DT_BF16, SIDE, SIDE, SIDE};
    cuda_fill_synthetic(b, t[1], &m); /* a hundredth of the time of the products */
    cuda_fill_synthetic(b, t[2], &m);
    for (int i = 0; i < PRODUCTS; i++)
        gemm(b, t[0], t[1], t[2], 1, nullptr, SET);
    return 2.0 * PRODUCTS * SIDE * SIDE * SIDE;
}

static double cuda_probe(struct backend *b, enum dtype t, int64_t rounds)
{
    double flop = t == DT_BF16 ? probe_bf16(b) : probe_f32(b, rounds);
    cuda_synchronize(b);
    return flop;
}

void synthetic_fill(struct ops *o)
{
    o->fill_synthetic = cuda_fill_synthetic;
    o->make_synthetic_weight = cuda_make_synthetic_weight;
    o->probe = cuda_probe;
    o->synchronize = cuda_synchronize;
}
