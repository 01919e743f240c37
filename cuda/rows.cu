/* rows.cu - row-wise operations: embeddings, norms, residual sums, pixel shuffle, scatter and gather.
 *
 * They are memory-bound: each value is read once or twice (the second time from the cache) and written
 * once. A block has one row, or one group of a row for the gated norm, and adjacent threads process
 * adjacent values. */
#include "host.cuh"

#include <math.h>
#include <string.h>

enum { ROW_THREADS = 256 };

/* ---- embeddings ---------------------------------------------------------------------------------------- */

/* Token ids are passed as kernel arguments, so that the host may overwrite them immediately. */
enum { MOST_IDS = 512 };

struct token_ids {
    int32_t id[MOST_IDS];
};

template <class T, class E> __global__ void embed(view<T> y, view<E> table, token_ids ids)
{
    const E *from = table.row(ids.id[blockIdx.x]);
    for (int64_t c = threadIdx.x; c < y.cols; c += ROW_THREADS)
        store(y.row(blockIdx.x) + c, number(from[c]));
}

static void cuda_embed(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids)
{
    for (int64_t r = 0; r < y.rows; r += MOST_IDS) {
        int64_t n = least(y.rows - r, MOST_IDS);
        struct tensor to = tensor_rows(y, r, n);
        token_ids some = {};
        memcpy(some.id, ids + r, static_cast<size_t>(n) * sizeof *ids);
        WITH_TYPE(T, y.dtype,
                  WITH_TYPE(E, table.dtype,
                            LAUNCH((embed<T, E>), grid_of(n), ROW_THREADS, 0, b, view_of<T>(to),
                                   view_of<E>(table), some)));
    }
}

/* ---- norms --------------------------------------------------------------------------------------------- */

/* Normalizes a row of `size` numbers. Each thread keeps EACH groups of eight of them: read once, with all
 * loads issued first. y may be x, and the compiler could not move the loads of a second pass above the
 * stores to y. */
template <int EACH, class T>
__device__ __forceinline__ void rmsnorm_kept(T *to, const T *from, const float *w, int size, float eps)
{
    float x[EACH][8] = {}, sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (8 * (i * ROW_THREADS + (int)threadIdx.x) < size)
            load8_any(x[i], from + 8 * (i * ROW_THREADS + threadIdx.x));
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < 8; k++)
            sum = fmaf(x[i][k], x[i][k], sum);
    float r = 1.0f / sqrtf(block_sum(sum) / (float)size + eps);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int c = 8 * (i * ROW_THREADS + threadIdx.x);
        float gain[8];
        if (c >= size)
            continue;
        load8_any(gain, w + c);
#pragma unroll
        for (int k = 0; k < 8; k++)
            x[i][k] = gain[k] * (x[i][k] * r);
        store8_any(to + c, x[i]);
    }
}

template <class T> __global__ void rmsnorm(view<T> y, view<T> x, const float *w, float eps)
{
    overlap_wait();
    const T *from = x.row(blockIdx.x);
    T *to = y.row(blockIdx.x);
    enum { KEPT = 3 }; /* up to 6144 numbers */
    if (x.cols <= 8 * KEPT * ROW_THREADS && x.cols % 8 == 0) {
        if (x.cols <= 8 * ROW_THREADS)
            rmsnorm_kept<1>(to, from, w, (int)x.cols, eps);
        else
            rmsnorm_kept<KEPT>(to, from, w, (int)x.cols, eps);
        return;
    }
    float sum = 0;
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
        sum = fmaf(number(from[c]), number(from[c]), sum);
    float r = 1.0f / sqrtf(block_sum(sum) / (float)x.cols + eps);
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
        store(to + c, w[c] * (number(from[c]) * r));
}

static void cuda_rmsnorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    WITH_TYPE(T, x.dtype,
              LAUNCH_OVERLAPPED((rmsnorm<T>), grid_of(x.rows), ROW_THREADS, 0, b, view_of<T>(y),
                                view_of<T>(x), static_cast<const float *>(w.data), eps));
}

template <class T>
__global__ void layernorm(view<T> y, view<T> x, const float *w, const float *bias, float eps)
{
    const T *from = x.row(blockIdx.x);
    T *to = y.row(blockIdx.x);
    float sum = 0, square = 0;
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
        sum += number(from[c]);
    float mean = block_sum(sum) / (float)x.cols;
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
        square += (number(from[c]) - mean) * (number(from[c]) - mean);
    float r = 1.0f / sqrtf(block_sum(square) / (float)x.cols + eps);
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
        store(to + c, (number(from[c]) - mean) * r * w[c] + bias[c]);
}

static void cuda_layernorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                           struct tensor bias, float eps)
{
    WITH_TYPE(T, x.dtype,
              LAUNCH((layernorm<T>), grid_of(x.rows), ROW_THREADS, 0, b, view_of<T>(y), view_of<T>(x),
                     static_cast<const float *>(w.data), static_cast<const float *>(bias.data), eps));
}

template <class T>
__global__ void gated_norm(view<T> out, view<T> y, view<T> z, const float *w, int size, float eps)
{
    int64_t first = (int64_t)blockIdx.y * size;
    gated_norm_group<ROW_THREADS>(out.row(blockIdx.x) + first, y.row(blockIdx.x) + first,
                                  z.row(blockIdx.x) + first, w + first, size, eps);
}

static void cuda_gated_norm(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                            struct tensor w, int groups, float eps)
{
    dim3 grid = grid_of(y.rows, groups);
    WITH_TYPE(T, y.dtype,
              LAUNCH((gated_norm<T>), grid, ROW_THREADS, 0, b, view_of<T>(out), view_of<T>(y), view_of<T>(z),
                     static_cast<const float *>(w.data), static_cast<int>(y.cols / groups), eps));
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

template <class T> __global__ void add(view<T> h, view<T> y)
{
    T *to = h.row(blockIdx.x);
    const T *from = y.row(blockIdx.x);
    for (int64_t c = threadIdx.x; c < h.cols; c += ROW_THREADS)
        store(to + c, number(to[c]) + number(from[c]));
}

static void cuda_add(struct backend *b, struct tensor h, struct tensor y)
{
    WITH_TYPE(T, h.dtype, LAUNCH((add<T>), grid_of(h.rows), ROW_THREADS, 0, b, view_of<T>(h), view_of<T>(y)));
}

/* ---- images -------------------------------------------------------------------------------------------- */

/* Computes y[p][q][(2 dr + dc) C + ch] = x[2p + dr][2q + dc][ch]. */
template <class T> __global__ void pixel_shuffle(view<T> y, view<T> x, int g)
{
    int p = blockIdx.x / (g / 2), q = blockIdx.x % (g / 2);
    for (int64_t c = threadIdx.x; c < y.cols; c += ROW_THREADS) {
        int quarter = (int)(c / x.cols);
        y.row(blockIdx.x)[c] = x.row((int64_t)(2 * p + quarter / 2) * g + 2 * q + quarter % 2)[c % x.cols];
    }
}

static void cuda_pixel_shuffle(struct backend *b, struct tensor y, struct tensor x, int g)
{
    WITH_TYPE(
        T, x.dtype,
        LAUNCH((pixel_shuffle<T>), grid_of(y.rows), ROW_THREADS, 0, b, view_of<T>(y), view_of<T>(x), g));
}

struct neighbours { /* neighbours of output i in a line of input values, with edges repeated */
    int first, second;
    float part; /* weight of the second one */
};

__device__ __forceinline__ neighbours between(int i, int in, int out)
{
    float x = fmaxf(((float)i + 0.5f) * ((float)in / (float)out) - 0.5f, 0.0f);
    int first = (int)x;
    return neighbours{first, first + (first < in - 1), x - (float)first};
}

template <class T> __global__ void resize_grid(view<T> y, view<float> table, int side, int grid, int cols)
{
    neighbours v = between(blockIdx.x / cols, side, grid), h = between(blockIdx.x % cols, side, grid);
    const float *a = table.row((int64_t)v.first * side + h.first),
                *b = table.row((int64_t)v.first * side + h.second),
                *c = table.row((int64_t)v.second * side + h.first),
                *d = table.row((int64_t)v.second * side + h.second);
    for (int64_t i = threadIdx.x; i < y.cols; i += ROW_THREADS) {
        float above = (1 - h.part) * a[i] + h.part * b[i], below = (1 - h.part) * c[i] + h.part * d[i];
        store(y.row(blockIdx.x) + i, (1 - v.part) * above + v.part * below);
    }
}

static void cuda_resize_grid(struct backend *b, struct tensor y, struct tensor table, int rows, int cols)
{
    int side = static_cast<int>(lrint(sqrt(static_cast<double>(table.rows)))),
        grid = rows > cols ? rows : cols;
    WITH_TYPE(T, y.dtype,
              LAUNCH((resize_grid<T>), grid_of(rows * cols), ROW_THREADS, 0, b, view_of<T>(y),
                     view_of<float>(table), side, grid, cols));
}

/* ---- rows of many tensors ------------------------------------------------------------------------------ */

enum { MOST_ROWS = 128 };

struct places {
    void *at[MOST_ROWS];
};

/* Copies one row per block, in words of 4 or 2 bytes, since rows may have any address. */
template <class W> __global__ void scatter_rows(places dst, const W *src, int64_t stride, int64_t n)
{
    overlap_wait();
    W *to = static_cast<W *>(dst.at[blockIdx.x]);
    for (int64_t c = threadIdx.x; c < n; c += ROW_THREADS)
        to[c] = src[blockIdx.x * stride + c];
}

template <class W> __global__ void gather_rows(W *dst, int64_t stride, places src, int64_t n)
{
    const W *from = static_cast<const W *>(src.at[blockIdx.x]);
    for (int64_t c = threadIdx.x; c < n; c += ROW_THREADS)
        dst[blockIdx.x * stride + c] = from[c];
}

static int take_places(places *p, const struct tensor *t, struct tensor all, int64_t first)
{
    int n = 0;
    for (; n < MOST_ROWS && first + n < all.rows; n++) {
        if (t[first + n].rows != 1 || t[first + n].cols != all.cols || t[first + n].dtype != all.dtype)
            bug("row %lld is not like the others", (long long)(first + n));
        p->at[n] = t[first + n].data;
    }
    return n;
}

static void cuda_scatter(struct backend *b, const struct tensor *dst, struct tensor src)
{
    places p = {}; /* zeroed because a graph compares all of it */
    for (int64_t r = 0; r < src.rows; r += MOST_ROWS) {
        unsigned n = static_cast<unsigned>(take_places(&p, dst, src, r));
        struct tensor from = tensor_rows(src, r, n);
        if (dtype_size(src.dtype) == 2)
            LAUNCH_OVERLAPPED((scatter_rows<uint16_t>), n, ROW_THREADS, 0, b, p,
                              static_cast<const uint16_t *>(from.data), from.stride, from.cols);
        else
            LAUNCH_OVERLAPPED((scatter_rows<uint32_t>), n, ROW_THREADS, 0, b, p,
                              static_cast<const uint32_t *>(from.data), from.stride, from.cols);
    }
}

static void cuda_gather(struct backend *b, struct tensor dst, const struct tensor *src)
{
    places p = {}; /* zeroed because a graph compares all of it */
    for (int64_t r = 0; r < dst.rows; r += MOST_ROWS) {
        unsigned n = static_cast<unsigned>(take_places(&p, src, dst, r));
        struct tensor to = tensor_rows(dst, r, n);
        if (dtype_size(dst.dtype) == 2)
            LAUNCH((gather_rows<uint16_t>), n, ROW_THREADS, 0, b, static_cast<uint16_t *>(to.data), to.stride,
                   p, to.cols);
        else
            LAUNCH((gather_rows<uint32_t>), n, ROW_THREADS, 0, b, static_cast<uint32_t *>(to.data), to.stride,
                   p, to.cols);
    }
}

void rows_fill(struct ops *o)
{
    o->scatter = cuda_scatter;
    o->gather = cuda_gather;
    o->embed = cuda_embed;
    o->rmsnorm = cuda_rmsnorm;
    o->layernorm = cuda_layernorm;
    o->gated_norm = cuda_gated_norm;
    o->add = cuda_add;
    o->pixel_shuffle = cuda_pixel_shuffle;
    o->resize_grid = cuda_resize_grid;
}
