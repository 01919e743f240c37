/* kernels_rows.h - row-wise operations: norms, sums, copies, embedding, pixel shuffle, position table.
 *
 * A row is loaded into f32 scratch, processed, and rounded once when it is stored. Threads are assigned
 * ranges of rows. */
#pragma once

#include "ops/kernels_core.h"

enum { SMALL_ROWS = 32 << 10 /* values not worth waking a thread for */ };

struct rows_task {
    struct backend *b;
    struct tensor y, x, z, w, bias;
    const int32_t *ids;
    float eps;
    int groups, grid;
};

static void run_rows_task(struct rows_task *k, int64_t rows, int64_t cols, pool_fn *fn)
{
    pool_for(k->b->pool, rows, 1 + SMALL_ROWS / (cols + 1), fn, k);
}

/* ---- norms --------------------------------------------------------------------------------------------- */

/* Returns the sum of squares of n values; `v` is zero-padded to whole vectors. */
ALWAYS_INLINE float sum_squares(const float *v, int64_t n)
{
    vec sum = {0};
    for (int64_t i = 0; i < n; i += VL)
        sum += *(const vec_at *)(v + i) * *(const vec_at *)(v + i);
    return sum_lanes(sum);
}

ALWAYS_INLINE float sum_values(const float *v, int64_t n)
{
    vec sum = {0};
    for (int64_t i = 0; i < n; i += VL)
        sum += *(const vec_at *)(v + i);
    return sum_lanes(sum);
}

/* Returns VL of n weights starting at i; the last vector may be partial. */
ALWAYS_INLINE vec weights_at(const float *w, int64_t i, int64_t n)
{
    return i + VL <= n ? *(const vec_at *)(w + i) : load_part(w + i, false, n - i);
}

static void rmsnorm_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t n = k->x.cols;
    float *v = cpu_scratch(k->b, thread, (size_t)padded(n) * sizeof *v);
    const float *w = k->w.data;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, v);
        vec scale = splat(1.0f / sqrtf(sum_squares(v, n) / (float)n + k->eps));
        for (int64_t i = 0; i < n; i += VL)
            *(vec_at *)(v + i) = weights_at(w, i, n) * (*(vec_at *)(v + i) * scale);
        store_row(k->y, r, 0, n, v);
    }
}

static void layernorm_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t n = k->x.cols, whole = padded(n);
    float *v = cpu_scratch(k->b, thread, (size_t)whole * sizeof *v);
    const float *w = k->w.data, *bias = k->bias.data;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, v);
        vec mean = splat(sum_values(v, n) / (float)n);
        for (int64_t i = 0; i < n; i += VL)
            *(vec_at *)(v + i) -= mean;
        memset(v + n, 0, (size_t)(whole - n) * sizeof *v);
        vec scale = splat(1.0f / sqrtf(sum_squares(v, n) / (float)n + k->eps));
        for (int64_t i = 0; i < n; i += VL)
            *(vec_at *)(v + i) = *(vec_at *)(v + i) * scale * weights_at(w, i, n) + weights_at(bias, i, n);
        store_row(k->y, r, 0, n, v);
    }
}

static void gated_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t n = k->x.cols / k->groups, whole = padded(n);
    float *q = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *q), *z = q + whole;
    const float *w = k->w.data;
    for (int64_t r = begin; r < end; r++) {
        for (int64_t c = 0; c < k->x.cols; c += n) { /* one group at a time: out may be y */
            load_row(k->x, r, c, n, q);
            load_row(k->z, r, c, n, z);
            for (int64_t i = 0; i < n; i += VL)
                *(vec_at *)(q + i) *= silu_vec(*(vec_at *)(z + i));
            vec scale = splat(1.0f / sqrtf(sum_squares(q, n) / (float)n + k->eps));
            for (int64_t i = 0; i < n; i += VL)
                *(vec_at *)(q + i) = weights_at(w + c, i, n) * (*(vec_at *)(q + i) * scale);
            store_row(k->y, r, c, n, q);
        }
    }
}

static void fast_rmsnorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    struct rows_task k = {.b = b, .y = y, .x = x, .w = w, .eps = eps};
    run_rows_task(&k, x.rows, x.cols, rmsnorm_range);
}

static void fast_layernorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                           struct tensor bias, float eps)
{
    struct rows_task k = {.b = b, .y = y, .x = x, .w = w, .bias = bias, .eps = eps};
    run_rows_task(&k, x.rows, x.cols, layernorm_range);
}

static void fast_gated_norm(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                            struct tensor w, int groups, float eps)
{
    struct rows_task k = {.b = b, .y = out, .x = y, .z = z, .w = w, .groups = groups, .eps = eps};
    run_rows_task(&k, y.rows, 4 * y.cols, gated_range);
}

/* ---- sums and copies ----------------------------------------------------------------------------------- */

static void add_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t n = k->y.cols, whole = padded(n);
    float *sum = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *sum), *x = sum + whole;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->y, r, 0, n, sum);
        load_row(k->x, r, 0, n, x);
        for (int64_t i = 0; i < n; i += VL)
            *(vec_at *)(sum + i) += *(vec_at *)(x + i);
        store_row(k->y, r, 0, n, sum);
    }
}

static void fast_add(struct backend *b, struct tensor h, struct tensor y)
{
    struct rows_task k = {.b = b, .y = h, .x = y};
    run_rows_task(&k, h.rows, h.cols, add_range);
}

static void copy_row(struct tensor y, int64_t to, struct tensor x, int64_t from, float *scratch)
{
    if (y.dtype == x.dtype) {
        memcpy(element(y, to, 0), element(x, from, 0), (size_t)x.cols * (x.dtype == DT_BF16 ? 2 : 4));
    } else {
        load_row(x, from, 0, x.cols, scratch);
        store_row(y, to, 0, x.cols, scratch);
    }
}

static void copy_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    float *scratch = cpu_scratch(k->b, thread, (size_t)padded(k->x.cols) * sizeof *scratch);
    for (int64_t r = begin; r < end; r++)
        copy_row(k->y, r, k->x, k->ids ? k->ids[r] : r, scratch);
}

static bool is_float(struct tensor t)
{
    return t.dtype == DT_F32 || t.dtype == DT_BF16;
}

static void fast_copy(struct backend *b, struct tensor y, struct tensor x)
{
    struct rows_task k = {.b = b, .y = y, .x = x};
    if (!is_float(y) || !is_float(x) || y.rows != x.rows || y.cols != x.cols)
        tensor_convert(y, x);
    else
        run_rows_task(&k, y.rows, y.cols, copy_range);
}

static void fast_embed(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids)
{
    struct rows_task k = {.b = b, .y = y, .x = table, .ids = ids};
    run_rows_task(&k, y.rows, y.cols, copy_range);
}

/* Concatenates the four rows of x that row (p, q) of y covers. */
static void shuffle_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t half = k->grid / 2, n = k->x.cols;
    float *scratch = cpu_scratch(k->b, thread, (size_t)padded(n) * sizeof *scratch);
    for (int64_t i = begin; i < end; i++) {
        for (int part = 0; part < 4; part++) {
            int64_t r = 2 * (i / half) + part / 2, c = 2 * (i % half) + part % 2;
            copy_row(tensor_cols(k->y, part * n, n), i, k->x, r * k->grid + c, scratch);
        }
    }
}

static void fast_pixel_shuffle(struct backend *b, struct tensor y, struct tensor x, int g)
{
    struct rows_task k = {.b = b, .y = y, .x = x, .grid = g};
    run_rows_task(&k, y.rows, y.cols, shuffle_range);
}

/* ---- position table ------------------------------------------------------------------------------------ */

/* Computes the two neighbours of output i of `out` on a line of `in` values. Returns the second one's
 * weight. */
static float neighbours(int64_t i, int64_t in, int64_t out, int64_t at[2])
{
    float x = ((float)i + 0.5f) * ((float)in / (float)out) - 0.5f;
    x = x > 0 ? x : 0;
    at[0] = (int64_t)x;
    at[1] = at[0] + (at[0] < in - 1);
    return x - (float)at[0];
}

/* Resizes rows of the table. grid: columns of y; groups: side of the square that contains y. */
static void resize_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t n = k->x.cols, side = lrint(sqrt((double)k->x.rows)), r[2], q[2];
    float *scratch = cpu_scratch(k->b, thread, (size_t)padded(n) * sizeof *scratch);
    for (int64_t i = begin; i < end; i++) {
        vec fy = splat(neighbours(i / k->grid, side, k->groups, r)), one = splat(1.0f);
        vec fx = splat(neighbours(i % k->grid, side, k->groups, q));
        const float *in[4];
        for (int j = 0; j < 4; j++)
            in[j] = (const float *)(const void *)element(k->x, r[j / 2] * side + q[j % 2], 0);
        for (int64_t c = 0; c < n; c += VL) {
            vec v[4];
            for (int j = 0; j < 4; j++)
                v[j] = weights_at(in[j], c, n);
            *(vec_at *)(scratch + c) =
                (one - fy) * ((one - fx) * v[0] + fx * v[1]) + fy * ((one - fx) * v[2] + fx * v[3]);
        }
        store_row(k->y, i, 0, n, scratch);
    }
}

static void fast_resize_grid(struct backend *b, struct tensor y, struct tensor table, int rows, int cols)
{
    struct rows_task k = {.b = b, .y = y, .x = table, .grid = cols, .groups = rows > cols ? rows : cols};
    run_rows_task(&k, y.rows, y.cols, resize_range);
}

/* ---- rotation ------------------------------------------------------------------------------------------ */

static void rotate_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct rows_task *k = arg;
    int64_t heads = k->groups, d = k->x.cols / heads, half = d / 2, scratch = padded(half);
    float *first = cpu_scratch(k->b, thread, (size_t)(4 * scratch) * sizeof *first),
          *second = first + scratch, *cosines = second + scratch, *sines = cosines + scratch;
    for (int64_t t = begin; t < end; t++) {
        load_row(k->z, t, 0, half, cosines);
        load_row(k->z, t, half, half, sines);
        for (int64_t h = 0; h < heads; h++) {
            load_row(k->x, t, h * d, half, first);
            load_row(k->x, t, h * d + half, half, second);
            for (int64_t i = 0; i < half; i += VL) {
                vec a = *(vec_at *)(first + i), z = *(vec_at *)(second + i), c = *(vec_at *)(cosines + i),
                    s = *(vec_at *)(sines + i);
                *(vec_at *)(first + i) = a * c - z * s;
                *(vec_at *)(second + i) = z * c + a * s;
            }
            store_row(k->x, t, h * d, half, first);
            store_row(k->x, t, h * d + half, half, second);
        }
    }
}

static void fast_rotate(struct backend *b, struct tensor x, struct tensor table, int heads)
{
    struct rows_task k = {.b = b, .x = x, .z = table, .groups = heads};
    run_rows_task(&k, x.rows, x.cols, rotate_range);
}
