/* delta.cu - the gated delta rule (ops/ref_delta.c), of one token of each of a batch and of many tokens.
 *
 * Columns of a head's state never meet: S[:, c] takes v[c] and gives y[c].  So a thread keeps a part of
 * one column in registers, 32 of 128 numbers, and the four threads of a column, lanes of one warp, add
 * their parts of two dot products for each token.  A block has 32 columns of a head: 128 blocks for 32
 * heads.
 *
 * One token is limited by the state, read and written once: 8 dk dv bytes for each head (2 MB each way for
 * 32 heads), which are requested before anything else.  Many tokens go through the recurrence one by one:
 * 130 operations a thread and token, about 450 cycles one after the other, 0.6 ms for 2,048 tokens where
 * the products of a 4B model take 25 ms for all layers.  So a prompt in bf16 goes through delta_chunks.cu,
 * all but a few last tokens.  Estimated, not measured.
 *
 * q and k of some tokens are normalised into shared memory by the whole block, again in every block of a
 * head: 32 times less work than the recurrence.  Other sizes of heads have a plain kernel, a thread for a
 * column.  Both add in an order that does not depend on how many tokens or sessions there are.
 */
#include "delta.cuh"

namespace
{

enum {
    COLUMNS = 32, /* of a block */
    DELTA_THREADS = COLUMNS * SHARES,
    DELTA_WARPS = DELTA_THREADS / WARP,
    TOKENS = 16, /* whose q and k are in shared memory at once */
    PLAIN_COLUMNS = 64
};

/* ---- heads of 128 by 128 ------------------------------------------------------------------------------- */

/* A block: 32 columns of a head of a session, over its tokens. */
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
        __syncthreads(); /* those before have been used */
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

/* A thread: a column of a head of a session, which stays in memory. */
template <class T> __global__ void delta_plain(delta<T> d, states at)
{
    int per = (d.at.value + PLAIN_COLUMNS - 1) / PLAIN_COLUMNS, head = blockIdx.x / per,
        column = blockIdx.x % per * PLAIN_COLUMNS + threadIdx.x;
    if (column >= d.at.value)
        return; /* there is no barrier */
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
    if (d.at.key == DELTA && d.at.value == DELTA)
        LAUNCH((delta_walk<T>), grid_of(d.at.value_heads * (DELTA / COLUMNS), sessions), DELTA_THREADS, 0, b,
               d, at);
    else
        LAUNCH((delta_plain<T>), grid_of(d.at.value_heads * blocks_for(d.at.value, PLAIN_COLUMNS), sessions),
               PLAIN_COLUMNS, 0, b, d, at);
}

/* Rows of n sessions, so many tokens of each. */
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
