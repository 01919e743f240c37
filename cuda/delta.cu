/* delta.cu - the gated delta rule (ops/ref_delta.c), of one token of each of a batch and of many tokens.
 *
 * Columns of a head's state never meet: S[:, c] takes v[c] and gives y[c].  So a thread keeps a part of one
 * column in registers, 32 of 128 numbers, and the four threads of a column, lanes of one warp, add their
 * parts of two dot products for each token.  A block has 32 columns of a head: 128 blocks for 32 heads.
 *
 * One token is limited by the state, read and written once: 8 dk dv bytes for each head (2 MB each way for 32
 * heads), which are requested before anything else.  Many tokens go through the recurrence one by one: 130
 * operations a thread and token, about 450 cycles one after the other, 0.6 ms for 2,048 tokens where
 * the products of a 4B model take 25 ms for all layers.  Chunks would use the tensor cores, and
 * substitution between them would not; they are not here.  Neither way has been measured yet.
 *
 * q and k of some tokens are normalised into shared memory by the whole block, again in every block of
 * a head: 32 times less work than the recurrence.  Other sizes of heads have a plain kernel, a thread for a
 * column.  Both add in an order that does not depend on how many tokens or sessions there are.
 */
#include "ssm.cuh"

namespace
{

enum {
    DELTA = 128,  /* dk and dv of the fast kernel */
    COLUMNS = 32, /* of a block */
    SHARES = 4,   /* threads of a column */
    DELTA_THREADS = COLUMNS * SHARES,
    DELTA_WARPS = DELTA_THREADS / WARP,
    ROWS_EACH = DELTA / SHARES, /* of a thread */
    TOKENS = 16,                /* whose q and k are in shared memory at once */
    PLAIN_COLUMNS = 64
};

template <class T> struct delta {
    view<T> y;
    view<const T> v;
    view<const float> gates;
    delta_shape s;
    int tokens; /* of each session, one session's after the other's */

    /* First columns of q and of k of a value head. */
    __device__ __forceinline__ int64_t query(int head) const
    {
        return (int64_t)(s.tiled ? head % s.key_heads : head / (s.value_heads / s.key_heads)) * s.key;
    }
    __device__ __forceinline__ int64_t key(int head) const
    {
        return (int64_t)s.key_heads * s.key + query(head);
    }
    __device__ __forceinline__ int64_t value(int head) const
    {
        return 2 * (int64_t)s.key_heads * s.key + (int64_t)head * s.value;
    }
};

/* ---- heads of 128 by 128 ------------------------------------------------------------------------------- */

/* Row i of a thread's share: fours of neighbours, so that four shares read 16 neighbours. */
__device__ __forceinline__ int row_of(int share, int i)
{
    return i / 4 * 16 + share * 4 + i % 4;
}

/* q / |q| / sqrt(dk) or k / |k| of a token, by one warp. */
template <class T> __device__ __forceinline__ void normalise(float *to, const T *from, float by)
{
    int lane = threadIdx.x % WARP;
    float x[4], sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[i] = number(from[lane * 4 + i]);
        sum += x[i] * x[i];
    }
    float r = by / sqrtf(warp_sum(sum) + 1e-6f);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[lane * 4 + i] = x[i] * r;
}

/* The sum over the four shares of a column; all of them get it. */
__device__ __forceinline__ float column_sum(float v)
{
    v += __shfl_xor_sync(ALL_LANES, v, 8);
    v += __shfl_xor_sync(ALL_LANES, v, 16);
    return v;
}

/* One token: decays S, moves it towards v, answers q. */
__device__ __forceinline__ float delta_step(float S[ROWS_EACH], const float *q, const float *k, int share,
                                            float v, float decay, float beta)
{
    float read = 0, answer = 0;
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++) {
        S[i] *= decay;
        read = fmaf(S[i], k[row_of(share, i)], read);
    }
    float move = beta * (v - column_sum(read));
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++) {
        S[i] = fmaf(k[row_of(share, i)], move, S[i]);
        answer = fmaf(S[i], q[row_of(share, i)], answer);
    }
    return column_sum(answer);
}

/* A block: 32 columns of a head of a session, over its tokens. */
template <class T> __global__ void __launch_bounds__(DELTA_THREADS) delta_columns(delta<T> d, states at)
{
    SHARED(float, q, TOKENS *DELTA);
    SHARED(float, k, TOKENS *DELTA);
    int slices = DELTA / COLUMNS, head = blockIdx.x / slices, session = blockIdx.y, warp = threadIdx.x / WARP,
        lane = threadIdx.x % WARP, share = lane / 8,
        column = blockIdx.x % slices * COLUMNS + warp * 8 + lane % 8;
    view<float> state = at.of<float>(session);
    float *from = state.row((int64_t)head * DELTA) + column, S[ROWS_EACH];
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++)
        S[i] = from[row_of(share, i) * state.stride];
    int64_t first = (int64_t)session * d.tokens;
    for (int t = 0; t < d.tokens; t += TOKENS) {
        int n = d.tokens - t < TOKENS ? d.tokens - t : TOKENS;
        __syncthreads(); /* those before have been used */
        for (int i = warp; i < 2 * n; i += DELTA_WARPS) {
            const T *row = d.v.row(first + t + i / 2);
            if (i % 2)
                normalise(k + i / 2 * DELTA, row + d.key(head), 1);
            else
                normalise(q + i / 2 * DELTA, row + d.query(head), 0.08838834764831845f);
        }
        __syncthreads();
        for (int i = 0; i < n; i++) {
            int64_t r = first + t + i;
            const float *gate = d.gates.row(r) + head;
            float y =
                delta_step(S, q + i * DELTA, k + i * DELTA, share, number(d.v.row(r)[d.value(head) + column]),
                           expf(gate[0]), gate[d.s.value_heads]);
            if (share == 0)
                store(d.y.row(r) + (int64_t)head * DELTA + column, y);
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++)
        from[row_of(share, i) * state.stride] = S[i];
}

/* ---- other sizes --------------------------------------------------------------------------------------- */

template <class T> __device__ __forceinline__ float inverse_length(const T *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum = fmaf(number(x[i]), number(x[i]), sum);
    return 1.0f / sqrtf(sum + 1e-6f);
}

/* A thread: a column of a head of a session, which stays in memory. */
template <class T> __global__ void delta_plain(delta<T> d, states at)
{
    int per = (d.s.value + PLAIN_COLUMNS - 1) / PLAIN_COLUMNS, head = blockIdx.x / per,
        column = blockIdx.x % per * PLAIN_COLUMNS + threadIdx.x;
    if (column >= d.s.value)
        return; /* there is no barrier */
    view<float> state = at.of<float>(blockIdx.y);
    float *S = state.row((int64_t)head * d.s.key) + column;
    for (int t = 0; t < d.tokens; t++) {
        int64_t row = (int64_t)blockIdx.y * d.tokens + t;
        const T *q = d.v.row(row) + d.query(head), *k = d.v.row(row) + d.key(head);
        float rq = inverse_length(q, d.s.key) / sqrtf((float)d.s.key), rk = inverse_length(k, d.s.key);
        float decay = expf(d.gates.row(row)[head]), read = 0, answer = 0;
        for (int i = 0; i < d.s.key; i++)
            read = fmaf(S[i * state.stride] * decay, number(k[i]) * rk, read);
        float move =
            d.gates.row(row)[d.s.value_heads + head] * (number(d.v.row(row)[d.value(head) + column]) - read);
        for (int i = 0; i < d.s.key; i++) {
            float s = fmaf(number(k[i]) * rk, move, S[i * state.stride] * decay);
            S[i * state.stride] = s;
            answer = fmaf(s, number(q[i]) * rq, answer);
        }
        store(d.y.row(row) + (int64_t)head * d.s.value + column, answer);
    }
}

template <class T> void launch_delta(struct backend *b, const delta<T> &d, const states &at, int sessions)
{
    if (d.s.key == DELTA && d.s.value == DELTA)
        LAUNCH((delta_columns<T>), grid_of(d.s.value_heads * (DELTA / COLUMNS), sessions), DELTA_THREADS, 0,
               b, d, at);
    else
        LAUNCH((delta_plain<T>), grid_of(d.s.value_heads * blocks_for(d.s.value, PLAIN_COLUMNS), sessions),
               PLAIN_COLUMNS, 0, b, d, at);
}

/* Rows of n sessions, so many tokens of each. */
void run_delta(struct backend *b, struct tensor y, struct tensor v, struct tensor gates, const states &at,
               const struct delta_shape *s, int sessions, int64_t tokens)
{
    if (tokens > 1 << 30)
        bug("a delta rule over %lld tokens", (long long)tokens);
    WITH_TYPE(T, y.dtype, {
        delta<T> d = {view_of<T>(y), view_of<const T>(v), view_of<const float>(gates), *s,
                      static_cast<int>(tokens)};
        launch_delta(b, d, at, sessions);
    });
}

void cuda_delta_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                     struct tensor state, const struct delta_shape *s)
{
    states at;
    if (y.rows == 0)
        return;
    states_take(&at, &state, 1);
    run_delta(b, y, v, gates, at, s, 1, y.rows);
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
