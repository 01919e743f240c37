/* kernels_gates.h - row-wise gates, head norms and rotations around the delta rule and attention of
 * Qwen3.5.
 *
 * As in kernels_rows.h, a part of a row is loaded into f32 scratch, processed, and rounded once when it is
 * stored; threads are assigned ranges of rows. */
#pragma once

#include "ops/kernels_rows.h"
#include "ops/kernels_ssm.h"

struct gates_task {
    struct backend *b;
    struct tensor y, x, z, w, table;
    int64_t heads;
    float eps;
};

static void run_gates_task(struct gates_task *k, int64_t rows, int64_t cols, pool_fn *fn)
{
    pool_for(k->b->pool, rows, 1 + SMALL_ROWS / (cols + 1), fn, k);
}

/* Returns 1 / (1 + e^-x), with x clamped to at least -87 so that the exponential stays finite. */
ALWAYS_INLINE vec sigmoid_vec(vec x)
{
    return splat(1.0f) / (splat(1.0f) + exp_vec(-VEC_MAX(splat(-87.0f), x)));
}

/* ---- MLP ----------------------------------------------------------------------------------------------- */

static void swiglu_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gates_task *k = arg;
    int64_t n = k->y.cols, whole = padded(n);
    float *g = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *g), *u = g + whole;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, g);
        load_row(k->z, r, 0, n, u);
        for (int64_t i = 0; i < n; i += VL)
            *(vec_at *)(g + i) = silu_vec(*(const vec_at *)(g + i)) * *(const vec_at *)(u + i);
        store_row(k->y, r, 0, n, g);
    }
}

static void fast_swiglu(struct backend *b, struct tensor y, struct tensor g, struct tensor u)
{
    struct gates_task k = {.b = b, .y = y, .x = g, .z = u};
    run_gates_task(&k, y.rows, 4 * y.cols, swiglu_range);
}

static void add_gated_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gates_task *k = arg;
    int64_t n = k->y.cols, whole = padded(n);
    float *sum = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *sum), *x = sum + whole;
    for (int64_t r = begin; r < end; r++) {
        vec by = sigmoid_vec(splat(load_value(k->z, r, 0)));
        load_row(k->y, r, 0, n, sum);
        load_row(k->x, r, 0, n, x);
        for (int64_t i = 0; i < n; i += VL)
            *(vec_at *)(sum + i) += by * *(const vec_at *)(x + i);
        store_row(k->y, r, 0, n, sum);
    }
}

static void fast_add_gated(struct backend *b, struct tensor y, struct tensor x, struct tensor g)
{
    struct gates_task k = {.b = b, .y = y, .x = x, .z = g};
    run_gates_task(&k, y.rows, y.cols, add_gated_range);
}

/* ---- delta rule ---------------------------------------------------------------------------------------- */

static void delta_gates_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gates_task *k = arg;
    int64_t n = k->x.cols, whole = padded(n);
    float *x = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *x), *z = x + whole;
    const float *a = k->w.data, *bias = k->table.data;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, x);
        load_row(k->z, r, 0, n, z);
        for (int64_t i = 0; i < n; i += VL) {
            *(vec_at *)(x + i) =
                weights_at(a, i, n) * softplus_vec(*(const vec_at *)(x + i) + weights_at(bias, i, n));
            *(vec_at *)(z + i) = sigmoid_vec(*(const vec_at *)(z + i));
        }
        store_row(k->y, r, 0, n, x);
        store_row(k->y, r, n, n, z);
    }
}

static void fast_delta_gates(struct backend *b, struct tensor gates, struct tensor x, struct tensor z,
                             struct tensor a, struct tensor dt_bias)
{
    struct gates_task k = {.b = b, .y = gates, .x = x, .z = z, .w = a, .table = dt_bias};
    run_gates_task(&k, x.rows, 8 * x.cols, delta_gates_range);
}

static void norm_gate_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gates_task *k = arg;
    int64_t n = k->w.cols, whole = padded(n);
    float *y = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *y), *z = y + whole;
    const float *w = k->w.data;
    for (int64_t r = begin; r < end; r++)
        for (int64_t c = 0; c < k->x.cols; c += n) {
            load_row(k->x, r, c, n, y);
            load_row(k->z, r, c, n, z);
            vec by = splat(1.0f / sqrtf(sum_squares(y, n) / (float)n + k->eps));
            for (int64_t i = 0; i < n; i += VL)
                *(vec_at *)(y + i) = weights_at(w, i, n) * (*(const vec_at *)(y + i) * by) *
                                     silu_vec(*(const vec_at *)(z + i));
            store_row(k->y, r, c, n, y);
        }
}

static void fast_norm_gate(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                           struct tensor w, float eps)
{
    struct gates_task k = {.b = b, .y = out, .x = y, .z = z, .w = w, .eps = eps};
    run_gates_task(&k, y.rows, 4 * y.cols, norm_gate_range);
}

/* ---- attention ----------------------------------------------------------------------------------------- */

/* Rotates pairs (i, i + half) of v by the angles with the given cosines and sines. */
ALWAYS_INLINE void rotate(float *v, const float *cosines, const float *sines, int64_t half)
{
    int64_t i = 0;
    for (; i + VL <= half; i += VL) {
        vec c = *(const vec_at *)(cosines + i), s = *(const vec_at *)(sines + i),
            low = *(const vec_at *)(v + i), high = *(const vec_at *)(v + half + i);
        *(vec_at *)(v + i) = low * c - high * s;
        *(vec_at *)(v + half + i) = high * c + low * s;
    }
    for (; i < half; i++) {
        float low = v[i], high = v[half + i];
        v[i] = low * cosines[i] - high * sines[i];
        v[half + i] = high * cosines[i] + low * sines[i];
    }
}

static void norm_rotate_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gates_task *k = arg;
    int64_t n = k->w.cols, half = k->table.cols / 2, apart = k->x.cols / k->heads;
    float *v = cpu_scratch(k->b, thread, (size_t)padded(n) * sizeof *v);
    const float *w = k->w.data;
    for (int64_t r = begin; r < end; r++) {
        const float *turn = (const float *)k->table.data + r * k->table.stride;
        for (int64_t h = 0; h < k->heads; h++) {
            load_row(k->x, r, h * apart, n, v);
            vec by = splat(1.0f / sqrtf(sum_squares(v, n) / (float)n + k->eps));
            for (int64_t i = 0; i < n; i += VL)
                *(vec_at *)(v + i) = weights_at(w, i, n) * (*(const vec_at *)(v + i) * by);
            rotate(v, turn, turn + half, half);
            store_row(k->y, r, h * n, n, v);
        }
    }
}

static void fast_norm_rotate(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                             struct tensor table, int heads, float eps)
{
    struct gates_task k = {.b = b, .y = y, .x = x, .w = w, .table = table, .heads = heads, .eps = eps};
    run_gates_task(&k, y.rows, 2 * y.cols, norm_rotate_range);
}

static void gate_heads_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gates_task *k = arg;
    int64_t n = k->y.cols / k->heads, whole = padded(n);
    float *y = cpu_scratch(k->b, thread, 2 * (size_t)whole * sizeof *y), *z = y + whole;
    for (int64_t r = begin; r < end; r++)
        for (int64_t h = 0; h < k->heads; h++) {
            load_row(k->y, r, h * n, n, y);
            load_row(k->z, r, (2 * h + 1) * n, n, z);
            for (int64_t i = 0; i < n; i += VL)
                *(vec_at *)(y + i) *= sigmoid_vec(*(const vec_at *)(z + i));
            store_row(k->y, r, h * n, n, y);
        }
}

static void fast_gate_heads(struct backend *b, struct tensor y, struct tensor p, int heads)
{
    struct gates_task k = {.b = b, .y = y, .z = p, .heads = heads};
    run_gates_task(&k, y.rows, 4 * y.cols, gate_heads_range);
}
