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

/* Lets the next kernel begin before overlap_wait, which also does so. That kernel may then run while the one
 * before this kernel still does. Until its own wait it reads only weights: states are read early only after a
 * product (host.cuh: after_product), and products do not call this. */
__device__ __forceinline__ void next_may_begin()
{
#if !defined CUDA_EMULATED && defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Normalizes a row: w x / sqrt(mean x^2 + eps), or, if centered, subtracts the mean first and adds the bias.
 * Each thread keeps EACH groups of eight numbers: read once, with all loads issued first. y may be x, and the
 * compiler could not move the loads of a second pass above the stores to y. */
template <int EACH, bool CENTERED, class T>
__global__ void norm_rows(view<T> y, view<T> x, const float *w, const float *bias, float eps)
{
    next_may_begin();
    overlap_wait();
    const T *from = x.row(blockIdx.x);
    T *to = y.row(blockIdx.x);
    int size = (int)x.cols;
    float v[EACH][8] = {}, sum = 0, mean = 0;
    auto column = [](int i) { return 8 * (i * ROW_THREADS + (int)threadIdx.x); };
#pragma unroll
    for (int i = 0; i < EACH; i++)
        load_some(v[i], from + column(i), size - column(i));
    if (CENTERED) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int k = 0; k < 8; k++)
                mean += v[i][k];
        mean = block_sum(mean) / (float)size;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            v[i][k] = column(i) + k < size ? v[i][k] - mean : 0.0f;
            sum = fmaf(v[i][k], v[i][k], sum);
        }
    float r = 1.0f / sqrtf(block_sum(sum) / (float)size + eps);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        float gain[8], more[8] = {};
        int n = size - column(i);
        if (n <= 0)
            continue;
        load_some(gain, w + column(i), n);
        if (CENTERED)
            load_some(more, bias + column(i), n);
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[i][k] = gain[k] * (v[i][k] * r) + more[k];
        store_some(to + column(i), v[i], n);
    }
}

/* The same for rows longer than the registers of a block: each pass reads x again, from the cache. A thread
 * writes only numbers that it reads itself, so that y may be x. */
template <bool CENTERED, class T>
__global__ void norm_long_rows(view<T> y, view<T> x, const float *w, const float *bias, float eps)
{
    next_may_begin();
    overlap_wait();
    const T *from = x.row(blockIdx.x);
    T *to = y.row(blockIdx.x);
    float sum = 0, mean = 0;
    if (CENTERED) {
        for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
            mean += number(from[c]);
        mean = block_sum(mean) / (float)x.cols;
    }
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS) {
        float v = number(from[c]) - mean;
        sum = fmaf(v, v, sum);
    }
    float r = 1.0f / sqrtf(block_sum(sum) / (float)x.cols + eps);
    for (int64_t c = threadIdx.x; c < x.cols; c += ROW_THREADS)
        store(to + c, w[c] * ((number(from[c]) - mean) * r) + (CENTERED ? bias[c] : 0.0f));
}

template <bool CENTERED, class T>
static void launch_norm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                        struct tensor bias, float eps)
{
    const int64_t once = 8 * ROW_THREADS;
    auto kernel = x.cols <= once       ? norm_rows<1, CENTERED, T>
                  : x.cols <= 3 * once ? norm_rows<3, CENTERED, T>
                  : x.cols <= 8 * once ? norm_rows<8, CENTERED, T>
                                       : norm_long_rows<CENTERED, T>;
    LAUNCH_OVERLAPPED(kernel, grid_of(x.rows), ROW_THREADS, 0, b, view_of<T>(y), view_of<T>(x), vector(w),
                      vector(bias), eps);
}

static void cuda_rmsnorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    WITH_TYPE(T, x.dtype, (launch_norm<false, T>(b, y, x, w, tensor{}, eps)));
}

static void cuda_layernorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                           struct tensor bias, float eps)
{
    WITH_TYPE(T, x.dtype, (launch_norm<true, T>(b, y, x, w, bias, eps)));
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
                     vector(w), static_cast<int>(y.cols / groups), eps));
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

/* Copies one row per block to or from its place, in words of 4 or 2 bytes: rows may have any address. */
template <class W, bool TO> __global__ void copy_rows(places each, W *rows, int64_t stride, int64_t n)
{
    overlap_wait();
    W *place = static_cast<W *>(each.at[blockIdx.x]), *row = rows + blockIdx.x * stride;
    for (int64_t c = threadIdx.x; c < n; c += ROW_THREADS)
        (TO ? place : row)[c] = (TO ? row : place)[c];
}

template <bool TO> static void copy_places(struct backend *b, const struct tensor *t, struct tensor all)
{
    for (int64_t first = 0; first < all.rows; first += MOST_ROWS) {
        places p = {}; /* zeroed because a graph compares all of it */
        int64_t n = least(all.rows - first, MOST_ROWS);
        for (int64_t i = 0; i < n; i++) {
            const struct tensor &one = t[first + i];
            if (one.rows != 1 || one.cols != all.cols || one.dtype != all.dtype)
                bug("row %lld is not like the others", (long long)(first + i));
            p.at[i] = one.data;
        }
        void *rows = tensor_rows(all, first, n).data;
        if (dtype_size(all.dtype) == 2)
            LAUNCH_OVERLAPPED((copy_rows<uint16_t, TO>), grid_of(n), ROW_THREADS, 0, b, p,
                              static_cast<uint16_t *>(rows), all.stride, all.cols);
        else
            LAUNCH_OVERLAPPED((copy_rows<uint32_t, TO>), grid_of(n), ROW_THREADS, 0, b, p,
                              static_cast<uint32_t *>(rows), all.stride, all.cols);
    }
}

static void cuda_scatter(struct backend *b, const struct tensor *dst, struct tensor src)
{
    copy_places<true>(b, dst, src);
}

static void cuda_gather(struct backend *b, struct tensor dst, const struct tensor *src)
{
    copy_places<false>(b, src, dst);
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
