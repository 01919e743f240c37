/* ssm.cu - Mamba-2 convolution and recurrence token by token.
 *
 * Both are memory-bound. The convolution reads each input once from memory (and, for each run of RUN rows,
 * the K - 1 preceding rows again from the cache) and writes each output once: 4 bytes per channel and
 * token in bf16. A thread has 8 channels, 16 bytes, and processes RUN rows with the last K - 1 rows in
 * registers. The thread of the first rows reads the old state and also writes the new one, so that no
 * other thread can interfere.
 *
 * A step reads and writes a session's state once, 8 H P N bytes (10.5 MB for 128 heads of 80 by 128). All
 * other data are less than 1 % of that. A block has one head of one session, and each of its 8 warps has P
 * / 8 whole rows in registers, 16 bytes per lane and row. With P = 80, a block has all of its 40 KiB in
 * flight at once, and two blocks fit on a multiprocessor. The H blocks of one session are about as many as
 * a GPU has multiprocessors; more sessions give more blocks.
 *
 * The same kernel processes many tokens, with the state in registers between them. It is the scan for f32
 * and for shapes that scan.cu does not support, with the same bits as single steps. */
#include "ssm.cuh"

enum { RUN = 8, RUN_ANY = 16, CONV_THREADS = 64 };

/* ---- convolution --------------------------------------------------------------------------------------- */

/* Computes the outputs one by one, for up to RUN_ANY + 1 taps: all rows that need the state are in the
 * first run. */
template <class T> __global__ void conv_any(view<T> v, view<T> x, taps k, states of, int64_t rows)
{
    int64_t c = (int64_t)blockIdx.x * CONV_THREADS + threadIdx.x, first = blockIdx.z * rows;
    if (c >= v.cols)
        return;
    view<T> in = {x.row(first), rows, x.cols, x.stride}, state = of.of<T>(blockIdx.z);
    int64_t t0 = (int64_t)blockIdx.y * RUN_ANY, end = min(t0 + RUN_ANY, rows);
    for (int64_t t = t0; t < end; t++)
        store(v.row(first + t) + c, conv_one(k, in, state, t, c));
    if (blockIdx.y == 0)
        conv_keep(k.count - 1, in, state, rows, c);
}

/* Computes eight channels per thread, with four taps. */
template <class T> __global__ void conv_four(view<T> v, view<T> x, taps k, states of, int64_t rows)
{
    int64_t c = ((int64_t)blockIdx.x * CONV_THREADS + threadIdx.x) * 8, first = blockIdx.z * rows;
    if (c >= v.cols)
        return;
    view<T> in = {x.row(first), rows, x.cols, x.stride}, state = of.of<T>(blockIdx.z);
    int64_t t0 = (int64_t)blockIdx.y * RUN, end = min(t0 + RUN, rows);
    float w[8][4], bias[8], seen[3][8], next[8], sum[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float4 four = load4(k.w + (c + i) * 4);
        w[i][0] = four.x, w[i][1] = four.y, w[i][2] = four.z, w[i][3] = four.w;
        bias[i] = k.bias ? k.bias[c + i] : 0.0f;
    }
#pragma unroll
    for (int r = 0; r < 3; r++)
        load8(seen[r], t0 - 3 + r >= 0 ? in.row(t0 - 3 + r) + c : state.row(t0 + r) + c);
    for (int64_t t = t0; t < end; t++) {
        load8(next, in.row(t) + c);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float s =
                fmaf(w[i][2], seen[2][i], fmaf(w[i][1], seen[1][i], fmaf(w[i][0], seen[0][i], bias[i])));
            sum[i] = silu(fmaf(w[i][3], next[i], s));
            seen[0][i] = seen[1][i], seen[1][i] = seen[2][i], seen[2][i] = next[i];
        }
        store8(v.row(first + t) + c, sum);
    }
    if (blockIdx.y > 0)
        return;
    if (rows <= RUN) { /* the last rows read are the new state */
#pragma unroll
        for (int r = 0; r < 3; r++)
            store8(state.row(r) + c, seen[r]);
    } else {
        for (int i = 0; i < 8; i++)
            conv_keep(3, in, state, rows, c + i);
    }
}

/* Convolves consecutive sequences, each with its own state. */
static void conv_run(struct backend *b, struct tensor v, struct tensor x, struct tensor w, struct tensor bias,
                     const struct tensor *state, int64_t sequences)
{
    if (v.rows == 0)
        return;
    int64_t rows = v.rows / sequences;
    taps k = taps_of(w, bias);
    if (k.count < 1 || k.count > RUN_ANY + 1)
        bug("a convolution of %d taps", k.count);
    for (int64_t s = 0; s < sequences;) {
        states of;
        int n = states_take(&of, state + s, sequences - s);
        struct tensor to = tensor_rows(v, s * rows, n * rows), from = tensor_rows(x, s * rows, n * rows);
        bool fast = k.count == 4 && k.stride == 4 && v.cols % 8 == 0 && aligned(to) && aligned(from) &&
                    aligned(w) && aligned(&of, n, dtype_size(v.dtype));
        dim3 grid = grid_of(blocks_for(v.cols, fast ? 8 * CONV_THREADS : CONV_THREADS),
                            blocks_for(rows, fast ? RUN : RUN_ANY), n);
        WITH_TYPE(T, v.dtype,
                  LAUNCH((fast ? conv_four<T> : conv_any<T>), grid, CONV_THREADS, 0, b, view_of<T>(to),
                         view_of<T>(from), k, of, rows));
        s += n;
    }
}

static void cuda_conv_tokens(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                             struct tensor bias, struct tensor state)
{
    conv_run(b, v, xbc, w, bias, &state, 1);
}

static void cuda_conv_batch(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                            struct tensor bias, const struct tensor *states)
{
    conv_run(b, v, xbc, w, bias, states, v.rows);
}

/* ---- recurrence ---------------------------------------------------------------------------------------- */

/* P: head dimension, for a state size of 128; 0: any sizes. */
template <class T, class N, int P>
__global__ void __launch_bounds__(SSM_THREADS)
    ssm_walk(view<T> y, view<T> v, view<T> dt, layer k, ssm_states of, int64_t rows)
{
    DYNAMIC_SHARED(float, row_of_warp); /* [SSM_WARPS][state], for other sizes */
    int h = blockIdx.x, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int64_t first = blockIdx.y * rows, x0 = (int64_t)h * k.head_dim,
            b0 = k.inner + (int64_t)k.group_of(h) * k.state, c0 = b0 + (int64_t)k.groups * k.state;
    view<N> state = of.of<N>(blockIdx.y);
    uint32_t key = of.key[blockIdx.y];
    if (P > 0) {
        const int R = P > 0 ? P / SSM_WARPS : 1;
        rows128<N, R> S;
        x0 += warp * R;
        S.load(state, x0);
        S.arrive();
        for (int64_t t = first; t < first + rows; t++) {
            const T *in = v.row(t);
            float4 B = load4(in + b0 + 4 * lane), C = load4(in + c0 + 4 * lane);
            float x = lane < R ? number(in[x0 + lane]) : 0.0f;
            float d = time_step(k, number(dt.row(t)[h]), h);
            float sum = S.step(expf(d * k.a[h]), d, x, B, C);
            if (lane < R)
                store(y.row(t) + x0 + lane, fmaf(k.d[h], x, sum));
        }
        S.store(state, x0, key);
    } else {
        float *S = row_of_warp + warp * k.state;
        for (int64_t row = x0 + warp; row < x0 + k.head_dim; row += SSM_WARPS) {
            take_row(S, state.row(row), k.state);
            for (int64_t t = first; t < first + rows; t++) {
                const T *in = v.row(t);
                float x = number(in[row]), d = time_step(k, number(dt.row(t)[h]), h);
                float sum = step_row(S, k.state, expf(d * k.a[h]), d * x, in + b0, in + c0);
                if (lane == 0)
                    store(y.row(t) + row, fmaf(k.d[h], x, sum));
            }
            give_row(state.row(row), S, k.state, key, row * stochastic_pairs(k.state));
        }
    }
}

void ssm_walk_run(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                  const struct tensor *state, const uint32_t *keys, int64_t sequences,
                  const struct ssm_shape *s, const struct ssm_const *c)
{
    if (y.rows == 0)
        return;
    int64_t rows = y.rows / sequences;
    for (int64_t i = 0; i < sequences;) {
        ssm_states of;
        int n = states_take(&of, state + i, keys ? keys + i : nullptr, sequences - i);
        struct tensor to = tensor_rows(y, i * rows, n * rows), from = tensor_rows(v, i * rows, n * rows),
                      steps = tensor_rows(dt, i * rows, n * rows);
        bool fast = s->state == 128 && s->heads * s->head_dim % 8 == 0 && aligned(from) &&
                    aligned(&of, n, dtype_size(state->dtype));
        dim3 grid = grid_of(s->heads, n);
        bool wide = fast && (s->head_dim == 80 || s->head_dim == 64);
        size_t shared = wide ? 0 : static_cast<size_t>(SSM_WARPS) * s->state * sizeof(float);
        WITH_STATE(N, state->dtype,
                   WITH_TYPE(T, y.dtype,
                             LAUNCH((!wide               ? ssm_walk<T, N, 0>
                                     : s->head_dim == 80 ? ssm_walk<T, N, 80>
                                                         : ssm_walk<T, N, 64>),
                                    grid, SSM_THREADS, shared, b, view_of<T>(to), view_of<T>(from),
                                    view_of<T>(steps), layer_of(s, c), of, rows)));
        i += n;
    }
}

static void cuda_ssm_step_batch(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                                const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                                const struct ssm_const *c)
{
    ssm_walk_run(b, y, v, dt, states, keys, y.rows, s, c);
}

void ssm_fill(struct ops *o)
{
    o->conv_tokens = cuda_conv_tokens;
    o->conv_batch = cuda_conv_batch;
    o->ssm_step_batch = cuda_ssm_step_batch;
}
