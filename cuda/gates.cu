/* gates.cu - elementwise operations of Qwen hybrid layers: gates, head norms, rotary embeddings, and the
 * position table of the vision encoder.
 *
 * All of them are limited by memory, and take microseconds between two large products. If a sum over a
 * head is needed, a warp processes one head of a row. Otherwise a thread processes an element, or a pair
 * that is rotated. */
#include "delta.cuh"

namespace
{

enum { GATE_THREADS = 256 };

/* ---- elements ------------------------------------------------------------------------------------------ */

template <class T>
__global__ void delta_gates(view<float> gates, view<const T> x, view<const T> z, const float *a,
                            const float *dt_bias)
{
    overlap_wait();
    const auto [t, h] = my_position(x.cols);
    if (h >= x.cols)
        return;
    gates.row(t)[h] = log_decay(number(x.row(t)[h]), dt_bias[h], a[h]);
    gates.row(t)[x.cols + h] = sigmoid(number(z.row(t)[h]));
}

template <class T> __global__ void gate_heads(view<T> y, view<const T> p, int d)
{
    overlap_wait();
    const auto [t, c] = my_position(y.cols);
    if (c < y.cols)
        store(y.row(t) + c, number(y.row(t)[c]) * sigmoid(number(p.row(t)[(c / d * 2 + 1) * d + c % d])));
}

template <class T> __global__ void swiglu(view<T> y, view<const T> g, view<const T> u)
{
    overlap_wait();
    const auto [t, c] = my_position(y.cols);
    if (c < y.cols)
        store(y.row(t) + c, silu(number(g.row(t)[c])) * number(u.row(t)[c]));
}

template <class T> __global__ void add_gated(view<T> y, view<const T> x, view<const T> g)
{
    overlap_wait();
    const auto [t, c] = my_position(y.cols);
    if (c < y.cols)
        store(y.row(t) + c, number(y.row(t)[c]) + sigmoid(number(g.row(t)[0])) * number(x.row(t)[c]));
}

/* Rotates pair i of a head. half: half of the numbers in a row of the table. */
__device__ __forceinline__ float2 turned(float low, float high, const float *table, int i, int half)
{
    float c = table[i], s = table[half + i];
    return float2{low * c - high * s, high * c + low * s};
}

template <class T> __global__ void rotate(view<T> x, view<const float> table, int64_t pairs)
{
    overlap_wait();
    const auto [t, i] = my_position(pairs);
    int half = (int)table.cols / 2;
    if (i >= pairs)
        return;
    T *at = x.row(t) + i / half * table.cols + i % half;
    const float2 v = turned(number(at[0]), number(at[half]), table.row(t), (int)(i % half), half);
    store(at, v.x);
    store(at + half, v.y);
}

/* ---- heads --------------------------------------------------------------------------------------------- */

template <class T>
__global__ void norm_gate(view<T> out, view<const T> y, view<const T> z, const float *w, int d, int parts,
                          float eps)
{
    overlap_wait();
    const auto [t, thread] = my_position(parts * WARP);
    const int64_t first = thread / WARP * d;
    if (thread / WARP >= parts)
        return; /* safe: the whole warp returns, and no barrier follows */
    const T *from = y.row(t) + first;
    float r = inverse_size(from, d, eps);
    for (int i = threadIdx.x % WARP; i < d; i += WARP)
        store(out.row(t) + first + i, gated(number(from[i]), r, w[i], number(z.row(t)[first + i])));
}

/* Normalizes a head and rotates its first dimensions. A lane processes pairs, then the dimensions that are
 * not rotated. It reads both numbers of a pair before writing either, so that y may be x. */
template <class T>
__global__ void norm_rotate(view<T> y, view<const T> x, const float *w, view<const float> table, int d,
                            int heads, float eps)
{
    overlap_wait();
    const auto [t, thread] = my_position(heads * WARP);
    const int64_t head = thread / WARP;
    const int half = (int)table.cols / 2;
    if (head >= heads)
        return;
    const T *from = x.row(t) + head * (x.cols / heads);
    T *to = y.row(t) + head * d;
    float r = inverse_size(from, d, eps);
    for (int i = threadIdx.x % WARP; i < half; i += WARP) {
        const float2 v = turned(w[i] * (number(from[i]) * r), w[half + i] * (number(from[half + i]) * r),
                                table.row(t), i, half);
        store(to + i, v.x);
        store(to + half + i, v.y);
    }
    for (int i = 2 * half + threadIdx.x % WARP; i < d; i += WARP)
        store(to + i, w[i] * (number(from[i]) * r));
}

/* ---- positions of the vision encoder --------------------------------------------------------------- */

/* Interpolates with aligned corners: maps index i of n to a table of `side` rows. Sets at[2] to the two
 * adjacent rows and returns the weight of the second. */
__device__ __forceinline__ float corner_aligned(int64_t i, int64_t n, int64_t side, int64_t at[2])
{
    float f = n > 1 ? (float)i * ((float)(side - 1) / (float)(n - 1)) : 0.0f;
    at[0] = (int64_t)f < side - 1 ? (int64_t)f : side - 1;
    at[1] = at[0] + (at[0] < side - 1);
    return f - (float)at[0];
}

template <class T>
__global__ void sample_grid(view<T> y, view<const float> table, int64_t rows, int64_t cols, int merge,
                            int64_t side)
{
    overlap_wait();
    const auto [i, c] = my_position(y.cols);
    int64_t r[2], q[2];
    if (c >= y.cols)
        return;
    int64_t block = i / (merge * merge), inside = i % (merge * merge), across = cols / merge;
    float fy = corner_aligned(block / across * merge + inside / merge, rows, side, r),
          fx = corner_aligned(block % across * merge + inside % merge, cols, side, q);
    float v = (1 - fy) * (1 - fx) * table.row(r[0] * side + q[0])[c];
    v += (1 - fy) * fx * table.row(r[0] * side + q[1])[c];
    v += fy * (1 - fx) * table.row(r[1] * side + q[0])[c];
    store(y.row(i) + c, v + fy * fx * table.row(r[1] * side + q[1])[c]);
}

/* ---- the operations ------------------------------------------------------------------------------------ */

/* Starts a kernel with T as the type of elements, for `threads` threads in each of some rows. */
#define EACH_ROW(kernel, dtype, rows, threads, b, ...)                                                       \
    WITH_TYPE(T, dtype,                                                                                      \
              LAUNCH_OVERLAPPED((kernel<T>), row_blocks(rows, threads, GATE_THREADS), GATE_THREADS, 0, b,    \
                                __VA_ARGS__))

void cuda_delta_gates(struct backend *b, struct tensor gates, struct tensor x, struct tensor z,
                      struct tensor a, struct tensor dt_bias)
{
    EACH_ROW(delta_gates, x.dtype, x.rows, x.cols, b, view_of<float>(gates), view_of<const T>(x),
             view_of<const T>(z), vector(a), vector(dt_bias));
}

void cuda_gate_heads(struct backend *b, struct tensor y, struct tensor p, int heads)
{
    EACH_ROW(gate_heads, y.dtype, y.rows, y.cols, b, view_of<T>(y), view_of<const T>(p),
             static_cast<int>(y.cols / heads));
}

void cuda_swiglu(struct backend *b, struct tensor y, struct tensor g, struct tensor u)
{
    EACH_ROW(swiglu, y.dtype, y.rows, y.cols, b, view_of<T>(y), view_of<const T>(g), view_of<const T>(u));
}

void cuda_add_gated(struct backend *b, struct tensor y, struct tensor x, struct tensor g)
{
    EACH_ROW(add_gated, y.dtype, y.rows, y.cols, b, view_of<T>(y), view_of<const T>(x), view_of<const T>(g));
}

void cuda_rotate(struct backend *b, struct tensor x, struct tensor table, int heads)
{
    int64_t pairs = heads * (table.cols / 2);
    EACH_ROW(rotate, x.dtype, x.rows, pairs, b, view_of<T>(x), view_of<const float>(table), pairs);
}

void cuda_norm_gate(struct backend *b, struct tensor out, struct tensor y, struct tensor z, struct tensor w,
                    float eps)
{
    int parts = static_cast<int>(y.cols / w.cols);
    EACH_ROW(norm_gate, y.dtype, y.rows, parts * WARP, b, view_of<T>(out), view_of<const T>(y),
             view_of<const T>(z), vector(w), static_cast<int>(w.cols), parts, eps);
}

void cuda_norm_rotate(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                      struct tensor table, int heads, float eps)
{
    EACH_ROW(norm_rotate, y.dtype, y.rows, heads * WARP, b, view_of<T>(y), view_of<const T>(x), vector(w),
             view_of<const float>(table), static_cast<int>(w.cols), heads, eps);
}

void cuda_sample_grid(struct backend *b, struct tensor y, struct tensor table, int cols, int merge)
{
    int64_t side = llrint(sqrt(static_cast<double>(table.rows)));
    EACH_ROW(sample_grid, y.dtype, y.rows, y.cols, b, view_of<T>(y), view_of<const float>(table),
             y.rows / cols, cols, merge, side);
}

} // namespace

void gates_fill(struct ops *o)
{
    o->delta_gates = cuda_delta_gates;
    o->gate_heads = cuda_gate_heads;
    o->swiglu = cuda_swiglu;
    o->add_gated = cuda_add_gated;
    o->rotate = cuda_rotate;
    o->norm_gate = cuda_norm_gate;
    o->norm_rotate = cuda_norm_rotate;
    o->sample_grid = cuda_sample_grid;
}
