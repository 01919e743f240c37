/* delta_decode.cu - fused decode step of a Gated DeltaNet layer for one token of each session of a batch:
 * convolution, gates, the delta rule and the gated norm of each head in one launch.
 *
 * The operation is memory-bound: the states are read and written once, 8 dk dv bytes per head (4 MB for 32
 * heads of 128 by 128). The other bf16 data are x, z, the output, and the convolution state twice, in
 * total 0.14 MB. Compared with the separate operations, this saves three launches and the memory traffic
 * of v, gates and y.
 *
 * A block computes one value head of one session. With heads of 128 by 128, a thread has 32 rows of four
 * columns in registers. All 64 KiB are requested before anything else, if possible while the preceding
 * product still runs. They arrive while the block computes the convolution, including that of the key
 * head, which it shares with other blocks. Those blocks increment a counter after reading their part of
 * the convolution state, and the last one writes the new state.
 *
 * Values are rounded to the activation type where the separate operations store them, and sums have the
 * same order, so that the results have the same bits. Not measured. */
#include "delta.cuh"

namespace
{

enum { DECODE_THREADS = 128, DECODE_WARPS = DECODE_THREADS / WARP, EACH = 4 /* columns per thread */ };

template <class T> struct decode {
    view<T> out, x;
    view<const T> z, ab;
    taps conv;
    const float *a, *dt_bias, *norm;
    float eps;
    delta_columns at;
    unsigned *arrived; /* [sessions][key_heads], zero before and after */
    bool early;        /* the preceding kernel writes no states, so they may be requested before it has
                        * ended */
};

/* Shared memory: q, k [key] and v, later y [value]. With heads of 128 also the normalized q and k. */
struct decode_room {
    float *q, *k, *v, *unit;
    __device__ __forceinline__ decode_room(float *at, const delta_columns &c)
        : q(at), k(q + c.key), v(k + c.key), unit(v + c.value)
    {
    }
};

/* State of a head of 128 by 128. A thread has four columns of a quarter of the rows. */
struct decode_state {
    float S[ROWS_EACH][EACH], *from;
    int64_t stride;
    int column, share;

    __device__ __forceinline__ void load(const view<float> &state, int head)
    {
        int lane = threadIdx.x % WARP;
        share = lane / 8;
        column = threadIdx.x / WARP * 32 + lane % 8 * EACH;
        from = state.row((int64_t)head * DELTA) + column;
        stride = state.stride;
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++) {
            const float4 v = load_settled(reinterpret_cast<float4 *>(from + row_of(share, i) * stride));
            S[i][0] = v.x, S[i][1] = v.y, S[i][2] = v.z, S[i][3] = v.w;
        }
    }

    /* Processes the token: v becomes y, rounded. */
    template <class T> __device__ __forceinline__ void step(const decode_room &w, float decay, float beta)
    {
        float y[EACH];
        if (threadIdx.x / WARP == 0)
            normalise(w.unit, w.q, DELTA_SCALE);
        else if (threadIdx.x / WARP == 1)
            normalise(w.unit + DELTA, w.k, 1);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < EACH; c++)
            y[c] = w.v[column + c];
        delta_step<EACH>(S, w.unit, w.unit + DELTA, share, y, decay, beta);
#pragma unroll
        for (int i = 0; i < ROWS_EACH; i++)
            *reinterpret_cast<float4 *>(from + row_of(share, i) * stride) =
                float4{S[i][0], S[i][1], S[i][2], S[i][3]};
        __syncthreads(); /* all shares have read v */
        if (share == 0)
#pragma unroll
            for (int c = 0; c < EACH; c++)
                w.v[column + c] = rounded<T>(y[c]);
    }
};

/* Convolves q, k and v of a head and updates the convolution state. */
template <class T>
__device__ __forceinline__ void convolve(const decode<T> &m, const decode_room &w, int head,
                                         const view<T> &conv)
{
    const delta_columns &at = m.at;
    view<T> in = {m.x.row(blockIdx.y), 1, m.x.cols, m.x.stride};
    int keep = m.conv.count - 1, per = at.value_heads / at.key_heads;
    auto column = [&](int i) { return i < at.key ? at.q(head) + i : at.k(head) + i - at.key; };
    for (int i = threadIdx.x; i < 2 * at.key; i += DECODE_THREADS)
        w.q[i] = rounded<T>(conv_one(m.conv, in, conv, 0, column(i)));
    for (int i = threadIdx.x; i < at.value; i += DECODE_THREADS) { /* no other block reads these */
        w.v[i] = rounded<T>(conv_one(m.conv, in, conv, 0, at.v(head) + i));
        conv_keep(keep, in, conv, 1, at.v(head) + i);
    }
    if (last_of(m.arrived + blockIdx.y * at.key_heads + at.key_head(head), per))
        for (int i = threadIdx.x; i < 2 * at.key; i += DECODE_THREADS)
            conv_keep(keep, in, conv, 1, column(i));
}

/* FAST: heads of 128 by 128; otherwise any sizes. */
template <class T, bool FAST>
__global__ void __launch_bounds__(DECODE_THREADS) delta_decode(decode<T> m, states convs, states of)
{
    DYNAMIC_SHARED(float, room);
    const delta_columns &at = m.at;
    decode_room w(room, at);
    int head = blockIdx.x;
    int64_t session = blockIdx.y;
    view<float> state = of.of<float>(session);
    decode_state S;
    if (FAST && m.early)
        S.load(state, head);
    overlap_wait();
    if (FAST && !m.early)
        S.load(state, head);
    convolve(m, w, head, convs.of<T>(session));
    const T *ab = m.ab.row(session);
    float g = log_decay(number(ab[head]), m.dt_bias[head], m.a[head]),
          beta = sigmoid(number(ab[at.value_heads + head]));
    if (FAST) {
        S.template step<T>(w, expf(g), beta);
    } else {
        for (int c = threadIdx.x; c < at.value; c += DECODE_THREADS)
            w.v[c] = rounded<T>(delta_step_any(state.row((int64_t)head * at.key) + c, state.stride, at.key,
                                               w.q, w.k, w.v[c], g, beta));
    }
    __syncthreads(); /* y is complete */
    float r = inverse_size(w.v, at.value, m.eps);
    const T *z = m.z.row(session) + (int64_t)head * at.value;
    T *out = m.out.row(session) + (int64_t)head * at.value;
    for (int i = threadIdx.x; i < at.value; i += DECODE_THREADS)
        store(out + i, gated(w.v[i], r, m.norm[i], number(z[i])));
}

template <class T, bool FAST>
void launch_decode(struct backend *b, const decode<T> &m, const states &conv, const states &of, int sessions)
{
    size_t shared = static_cast<size_t>(2 * (FAST ? 2 : 1) * m.at.key + m.at.value) * sizeof(float);
    if (shared > 48 << 10)
        bug("a delta rule with heads of %d by %d", m.at.key, m.at.value);
    LAUNCH_OVERLAPPED((delta_decode<T, FAST>), grid_of(m.at.value_heads, sessions), DECODE_THREADS, shared, b,
                      m, conv, of);
}

void cuda_delta_batch(struct backend *b, struct tensor out, struct tensor z, struct tensor x,
                      struct tensor ab, const struct delta_batch *e)
{
    const struct delta_shape *s = e->shape;
    for (int64_t i = 0; i < out.rows;) {
        states conv, of;
        int n = states_take(&of, e->states + i, states_take(&conv, e->conv_states + i, out.rows - i));
        bool fast = s->key == DELTA && s->value == DELTA && aligned(&of, n, sizeof(float));
        WITH_TYPE(T, out.dtype, {
            decode<T> m = {view_of<T>(tensor_rows(out, i, n)),
                           view_of<T>(tensor_rows(x, i, n)),
                           view_of<const T>(tensor_rows(z, i, n)),
                           view_of<const T>(tensor_rows(ab, i, n)),
                           taps_of(e->conv, tensor{}),
                           vector(e->a),
                           vector(e->dt_bias),
                           vector(e->norm),
                           e->eps,
                           columns_of(s),
                           groups_arrived(b, s->key_heads),
                           cuda_of(b)->after_product};
            (fast ? launch_decode<T, true> : launch_decode<T, false>)(b, m, conv, of, n);
        });
        i += n;
    }
}

} // namespace

void delta_decode_fill(struct ops *o)
{
    o->delta_batch = cuda_delta_batch;
}
