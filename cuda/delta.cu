/* delta.cu - gated delta rule (ops/ref_delta.c) for one token of each session of a batch, and for many
 * tokens.
 *
 * The columns of a head's state are independent: S[:, c] takes v[c] and gives y[c]. A thread keeps a
 * quarter of one column in registers, 32 of 128 numbers. The four threads of a column are lanes of one
 * warp and add their parts of two dot products per token. A block has 32 columns of a head, which gives
 * 128 blocks for 32 heads.
 *
 * A single token is limited by memory: the state is read and written once, 8 dk dv bytes per head (2 MB
 * each way for 32 heads), and is requested before anything else. Many tokens are processed sequentially:
 * 130 operations per thread and token take about 450 cycles, or 0.6 ms per 2,048 tokens, whereas the
 * products of a 4B model take 25 ms for all layers. Prompts in bf16 therefore use delta_chunks.cu, except
 * for the last few tokens. These times are estimates, not measurements.
 *
 * The whole block normalizes q and k of several tokens into shared memory. Each block of a head repeats
 * this, which is 32 times less work than the recurrence. Heads of other sizes use a simple kernel with one
 * thread per column. The order of both sums does not depend on the number of tokens or sessions. */
#include "delta.cuh"

namespace
{

enum {
    COLUMNS = 32, /* per block */
    DELTA_THREADS = COLUMNS * SHARES,
    DELTA_WARPS = DELTA_THREADS / WARP,
    TOKENS = 16, /* tokens whose q and k are in shared memory at once */
    PLAIN_COLUMNS = 64
};

/* ---- heads of 128 by 128 ------------------------------------------------------------------------------- */

/* One block per 32 columns of a head of a session. It processes all tokens of the session. */
template <class T> __global__ void __launch_bounds__(DELTA_THREADS) delta_walk(delta<T> d, states at)
{
    SHARED(float, q, TOKENS *DELTA);
    SHARED(float, k, TOKENS *DELTA);
    int slices = DELTA / COLUMNS, head = blockIdx.x / slices, session = blockIdx.y, warp = threadIdx.x / WARP,
        lane = threadIdx.x % WARP, share = lane / 8,
        column = blockIdx.x % slices * COLUMNS + warp * 8 + lane % 8;
    view<float> state = at.of<float>(session);
    float *from = state.row((int64_t)head * DELTA) + column, S[ROWS_EACH][1];
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++)
        S[i][0] = from[row_of(share, i) * state.stride];
    int64_t first = (int64_t)session * d.tokens;
    for (int t = 0; t < d.tokens; t += TOKENS) {
        int n = d.tokens - t < TOKENS ? d.tokens - t : TOKENS;
        __syncthreads(); /* the previous ones have been used */
        for (int i = warp; i < 2 * n; i += DELTA_WARPS) {
            const T *row = d.v.row(first + t + i / 2);
            if (i % 2)
                normalise(k + i / 2 * DELTA, row + d.at.k(head), 1);
            else
                normalise(q + i / 2 * DELTA, row + d.at.q(head), DELTA_SCALE);
        }
        __syncthreads();
        for (int i = 0; i < n; i++) {
            int64_t r = first + t + i;
            const float *gate = d.gates.row(r) + head;
            float y[1] = {number(d.v.row(r)[d.at.v(head) + column])};
            delta_step<1>(S, q + i * DELTA, k + i * DELTA, share, y, expf(gate[0]), gate[d.at.value_heads]);
            if (share == 0)
                store(d.y.row(r) + (int64_t)head * DELTA + column, y[0]);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++)
        from[row_of(share, i) * state.stride] = S[i][0];
}

/* ---- other sizes --------------------------------------------------------------------------------------- */

/* One thread per column of a head of a session. The state stays in memory. */
template <class T> __global__ void delta_plain(delta<T> d, states at)
{
    int per = (d.at.value + PLAIN_COLUMNS - 1) / PLAIN_COLUMNS, head = blockIdx.x / per,
        column = blockIdx.x % per * PLAIN_COLUMNS + threadIdx.x;
    if (column >= d.at.value)
        return; /* safe: no barrier follows */
    view<float> state = at.of<float>(blockIdx.y);
    float *S = state.row((int64_t)head * d.at.key) + column;
    for (int t = 0; t < d.tokens; t++) {
        int64_t r = (int64_t)blockIdx.y * d.tokens + t;
        const T *row = d.v.row(r);
        const float *gate = d.gates.row(r) + head;
        store(d.y.row(r) + (int64_t)head * d.at.value + column,
              delta_step_any(S, state.stride, d.at.key, row + d.at.q(head), row + d.at.k(head),
                             number(row[d.at.v(head) + column]), gate[0], gate[d.at.value_heads]));
    }
}

template <class T> void launch_delta(struct backend *b, const delta<T> &d, const states &at, int sessions)
{
    if (d.at.key == DELTA && d.at.value == DELTA && aligned(&at, sessions, sizeof(float)))
        LAUNCH((delta_walk<T>), grid_of(d.at.value_heads * (DELTA / COLUMNS), sessions), DELTA_THREADS, 0, b,
               d, at);
    else
        LAUNCH((delta_plain<T>), grid_of(d.at.value_heads * blocks_for(d.at.value, PLAIN_COLUMNS), sessions),
               PLAIN_COLUMNS, 0, b, d, at);
}

/* Runs n sessions with the same number of tokens each; their rows are consecutive. */
void run_delta(struct backend *b, struct tensor y, struct tensor v, struct tensor gates, const states &at,
               const struct delta_shape *s, int sessions, int64_t tokens)
{
    if (tokens > 1 << 30)
        bug("a delta rule over %lld tokens", (long long)tokens);
    WITH_TYPE(T, y.dtype, {
        delta<T> d = {view_of<T>(y), view_of<const T>(v), view_of<const float>(gates), columns_of(s),
                      static_cast<int>(tokens)};
        launch_delta(b, d, at, sessions);
    });
}

void cuda_delta_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                     struct tensor state, const struct delta_shape *s)
{
    states at;
    int64_t done = delta_chunks(b, y, v, gates, state, s), rest = y.rows - done;
    if (rest == 0)
        return;
    states_take(&at, &state, 1);
    run_delta(b, tensor_rows(y, done, rest), tensor_rows(v, done, rest), tensor_rows(gates, done, rest), at,
              s, 1, rest);
}

void cuda_delta_step_batch(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                           const struct tensor *of, const struct delta_shape *s)
{
    for (int64_t i = 0; i < y.rows;) {
        states at;
        int n = states_take(&at, of + i, y.rows - i);
        run_delta(b, tensor_rows(y, i, n), tensor_rows(v, i, n), tensor_rows(gates, i, n), at, s, n, 1);
        i += n;
    }
}

} // namespace

void delta_fill(struct ops *o)
{
    o->delta_scan = cuda_delta_scan;
    o->delta_step_batch = cuda_delta_step_batch;
}
