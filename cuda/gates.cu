/* gates.cu - elementwise operations of Qwen hybrid layers: gates, head norms, rotary embeddings, and the
 * position table of the vision encoder.
 *
 * All of them are limited by memory, and take microseconds between two large products. If a sum over a
 * head is needed, a warp processes one head of a row. Otherwise a thread processes an element, or a pair
 * that is rotated. */
#include "delta.cuh"

namespace
{

enum { GATE_THREADS = 256, GATE_WARPS = GATE_THREADS / WARP, MOST_GRID = 32768 /* rows per launch */ };

/* Runs a statement for rows [first, first + n), because the second dimension of a grid is limited to
 * 65535. */
#define EACH_ROWS(first, n, all, ...)                                                                        \
    for (int64_t first = 0; first < (all); first += MOST_GRID) {                                             \
        int64_t n = least((all)-first, MOST_GRID);                                                           \
        __VA_ARGS__;                                                                                         \
    }

__device__ __forceinline__ int64_t my_column()
{
    return (int64_t)blockIdx.x * GATE_THREADS + threadIdx.x;
}

/* ---- elements ------------------------------------------------------------------------------------------ */

template <class T>
__global__ void delta_gates(view<float> gates, view<const T> x, view<const T> z, const float *a,
                            const float *dt_bias)
{
    int64_t h = my_column(), t = blockIdx.y;
    if (h >= x.cols)
        return;
    gates.row(t)[h] = log_decay(number(x.row(t)[h]), dt_bias[h], a[h]);
    gates.row(t)[x.cols + h] = sigmoid(number(z.row(t)[h]));
}

template <class T> __global__ void gate_heads(view<T> y, view<const T> p, int d)
{
    overlap_wait();
    int64_t c = my_column(), t = blockIdx.y;
    if (c < y.cols)
        store(y.row(t) + c, number(y.row(t)[c]) * sigmoid(number(p.row(t)[(c / d * 2 + 1) * d + c % d])));
}

template <class T> __global__ void swiglu(view<T> y, view<const T> g, view<const T> u)
{
    overlap_wait();
    int64_t c = my_column(), t = blockIdx.y;
    if (c < y.cols)
        store(y.row(t) + c, silu(number(g.row(t)[c])) * number(u.row(t)[c]));
}

template <class T> __global__ void add_gated(view<T> y, view<const T> x, view<const T> g)
{
    overlap_wait();
    int64_t c = my_column(), t = blockIdx.y;
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
    int64_t i = my_column(), t = blockIdx.y;
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
    int part = blockIdx.x * GATE_WARPS + threadIdx.x / WARP;
    if (part >= parts)
        return; /* safe: the whole warp returns, and no barrier follows */
    int64_t t = blockIdx.y, first = (int64_t)part * d;
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
    int head = blockIdx.x * GATE_WARPS + threadIdx.x / WARP, half = (int)table.cols / 2;
    if (head >= heads)
        return;
    int64_t t = blockIdx.y;
    const T *from = x.row(t) + head * (x.cols / heads);
    T *to = y.row(t) + (int64_t)head * d;
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
__global__ void sample_grid(view<T> y, view<const float> table, int64_t first, int64_t rows, int64_t cols,
                            int merge, int64_t side)
{
    int64_t c = my_column(), i = first + blockIdx.y, r[2], q[2];
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

const float *vector(struct tensor t)
{
    return static_cast<const float *>(t.data);
}

dim3 elements(int64_t cols, int64_t rows)
{
    return grid_of(blocks_for(cols, GATE_THREADS), rows);
}

dim3 warps(int64_t heads, int64_t rows)
{
    return grid_of(blocks_for(heads, GATE_WARPS), rows);
}

template <class T> view<const T> rows_of(struct tensor t, int64_t first, int64_t n)
{
    return view_of<const T>(tensor_rows(t, first, n));
}

void cuda_delta_gates(struct backend *b, struct tensor gates, struct tensor x, struct tensor z,
                      struct tensor a, struct tensor dt_bias)
{
    EACH_ROWS(t, n, x.rows,
              WITH_TYPE(T, x.dtype,
                        LAUNCH((delta_gates<T>), elements(x.cols, n), GATE_THREADS, 0, b,
                               view_of<float>(tensor_rows(gates, t, n)), rows_of<T>(x, t, n),
                               rows_of<T>(z, t, n), vector(a), vector(dt_bias))));
}

void cuda_gate_heads(struct backend *b, struct tensor y, struct tensor p, int heads)
{
    EACH_ROWS(t, n, y.rows,
              WITH_TYPE(T, y.dtype,
                        LAUNCH_OVERLAPPED((gate_heads<T>), elements(y.cols, n), GATE_THREADS, 0, b,
                                          view_of<T>(tensor_rows(y, t, n)), rows_of<T>(p, t, n),
                                          static_cast<int>(y.cols / heads))));
}

void cuda_swiglu(struct backend *b, struct tensor y, struct tensor g, struct tensor u)
{
    EACH_ROWS(t, n, y.rows,
              WITH_TYPE(T, y.dtype,
                        LAUNCH_OVERLAPPED((swiglu<T>), elements(y.cols, n), GATE_THREADS, 0, b,
                                          view_of<T>(tensor_rows(y, t, n)), rows_of<T>(g, t, n),
                                          rows_of<T>(u, t, n))));
}

void cuda_add_gated(struct backend *b, struct tensor y, struct tensor x, struct tensor g)
{
    EACH_ROWS(t, n, y.rows,
              WITH_TYPE(T, y.dtype,
                        LAUNCH_OVERLAPPED((add_gated<T>), elements(y.cols, n), GATE_THREADS, 0, b,
                                          view_of<T>(tensor_rows(y, t, n)), rows_of<T>(x, t, n),
                                          rows_of<T>(g, t, n))));
}

void cuda_rotate(struct backend *b, struct tensor x, struct tensor table, int heads)
{
    int64_t pairs = heads * (table.cols / 2);
    EACH_ROWS(
        t, n, x.rows,
        WITH_TYPE(T, x.dtype,
                  LAUNCH_OVERLAPPED((rotate<T>), elements(pairs, n), GATE_THREADS, 0, b,
                                    view_of<T>(tensor_rows(x, t, n)), rows_of<float>(table, t, n), pairs)));
}

void cuda_norm_gate(struct backend *b, struct tensor out, struct tensor y, struct tensor z, struct tensor w,
                    float eps)
{
    int parts = static_cast<int>(y.cols / w.cols);
    EACH_ROWS(t, n, y.rows,
              WITH_TYPE(T, y.dtype,
                        LAUNCH((norm_gate<T>), warps(parts, n), GATE_THREADS, 0, b,
                               view_of<T>(tensor_rows(out, t, n)), rows_of<T>(y, t, n), rows_of<T>(z, t, n),
                               vector(w), static_cast<int>(w.cols), parts, eps)));
}

void cuda_norm_rotate(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                      struct tensor table, int heads, float eps)
{
    EACH_ROWS(
        t, n, y.rows,
        WITH_TYPE(T, y.dtype,
                  LAUNCH_OVERLAPPED((norm_rotate<T>), warps(heads, n), GATE_THREADS, 0, b,
                                    view_of<T>(tensor_rows(y, t, n)), rows_of<T>(x, t, n), vector(w),
                                    rows_of<float>(table, t, n), static_cast<int>(w.cols), heads, eps)));
}

void cuda_sample_grid(struct backend *b, struct tensor y, struct tensor table, int cols, int merge)
{
    int64_t side = llrint(sqrt(static_cast<double>(table.rows))), rows = y.rows / cols;
    EACH_ROWS(t, n, y.rows,
              WITH_TYPE(T, y.dtype,
                        LAUNCH((sample_grid<T>), elements(y.cols, n), GATE_THREADS, 0, b, view_of<T>(y),
                               view_of<const float>(table), t, rows, cols, merge, side)));
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
