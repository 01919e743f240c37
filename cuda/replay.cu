/* replay.cu - fused decode step of a Mamba-2 layer with delayed state write-back: f32 states are written
 * only every ninth token (16 and more sessions).
 *
 * With many sessions, the states are the largest memory stream besides the weights: 10.5 MB per session,
 * layer and token (128 heads of 80 by 128), half of it for writing. The update of a state by one token
 * is determined by little data, 23 KB: x, B and a time step. These inputs are stored in a ring buffer of
 * WORK_RING tokens. A step reads the stored state, replays the tokens of the ring in registers, in their
 * order and with the same operations, and adds its own token. The results have the same bits as if the
 * state were written each time. A token that finds the ring full writes the state.
 *
 * Compared with 5.2 MB read per step, 5.2 MB are written every ninth time, and the ring adds 2 % on
 * average. The cost is 2 additional multiplications and additions per element and replayed token, for
 * about 4 tokens on average with a ring of 8. This is well below the arithmetic that a multiprocessor can
 * do while the state arrives. A ring of 16 would save another 4 % of the bytes and double the arithmetic.
 *
 * Convolution and norm are as in mamba.cu. Not measured. */
#include "mamba.cuh"

enum { WRITE = 128 /* flag in a count: write the state, after which the ring is empty */ };

/* The rings of a launch. The distance from a session's state to its ring is the same for all. */
struct rings {
    int64_t in, dt;    /* bytes from the state to x and B [.., inner + G N], and to the time steps [.., H] */
    int64_t in_stride; /* in elements */
    uint8_t count[SESSIONS];
    template <class T> __device__ __forceinline__ T *inputs(const states &s, int session, int token) const
    {
        return reinterpret_cast<T *>(static_cast<char *>(s.at[session]) + in) + token * in_stride;
    }
    __device__ __forceinline__ float *steps(const states &s, int session, int token, int heads) const
    {
        return reinterpret_cast<float *>(static_cast<char *>(s.at[session]) + dt) + token * heads;
    }
};

/* Shared memory for the ring's tokens: B [count][N] first, for its alignment; x [count][part P], time
 * steps and decays [count][part]. */
struct replay_room {
    float *B, *x, *dt, *decay;
    __device__ __forceinline__ replay_room(float *first, float *at, const layer &k, int part, int count)
        : B(first), x(at), dt(x + count * part * k.head_dim), decay(dt + count * part)
    {
    }
};

template <class T>
__device__ __forceinline__ void take_ring(const mixer<T> &m, const replay_room &w, const rings &r,
                                          const states &ssms, int count, int session, int group, int head)
{
    const layer &k = m.k;
    const int width = m.part * k.head_dim;
    for (int e = 0; e < count; e++) {
        const T *in = r.inputs<T>(ssms, session, e);
        for (int i = threadIdx.x; i < k.state; i += SSM_THREADS)
            w.B[e * k.state + i] = number(in[k.inner + (int64_t)group * k.state + i]);
        for (int i = threadIdx.x; i < width; i += SSM_THREADS)
            w.x[e * width + i] = number(in[(int64_t)head * k.head_dim + i]);
        for (int i = threadIdx.x; i < m.part; i += SSM_THREADS) {
            float dt = r.steps(ssms, session, e, k.heads)[head + i];
            w.dt[e * m.part + i] = dt;
            w.decay[e * m.part + i] = expf(dt * k.a[head + i]);
        }
    }
}

/* Appends this token to the ring. B is stored once for all heads of its group. */
template <class T>
__device__ __forceinline__ void give_ring(const mixer<T> &m, const mixer_room &w, const rings &r,
                                          const states &ssms, int count, int session, int group, int head)
{
    const layer &k = m.k;
    T *in = r.inputs<T>(ssms, session, count);
    for (int i = threadIdx.x; i < m.part * k.head_dim; i += SSM_THREADS)
        store(in + (int64_t)head * k.head_dim + i, w.x[i]);
    for (int i = threadIdx.x; i < m.part; i += SSM_THREADS)
        r.steps(ssms, session, count, k.heads)[head + i] = w.dt[i];
    if (head % (k.heads / k.groups) == 0)
        for (int i = threadIdx.x; i < k.state; i += SSM_THREADS)
            store(in + k.inner + (int64_t)group * k.state + i, w.B[i]);
}

/* Processes head i of the block for any sizes: a warp has one row of the state at a time, in shared
 * memory. */
template <class T>
__device__ static void replay_any(const mixer<T> &m, const mixer_room &w, const replay_room &old,
                                  view<float> state, T *y, int i, int head, int count, bool write)
{
    const layer &k = m.k;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, width = m.part * k.head_dim;
    const int64_t row = (int64_t)head * k.head_dim;
    const float *x = w.x + i * k.head_dim;
    float *one = w.rows + warp * k.state;
    for (int p = warp; p < k.head_dim; p += SSM_WARPS) {
        take_row(one, state.row(row + p), k.state);
        for (int e = 0; e < count; e++)
            replay_row(one, k.state, old.decay[e * m.part + i],
                       old.dt[e * m.part + i] * old.x[e * width + i * k.head_dim + p], old.B + e * k.state);
        float sum = step_row(one, k.state, w.decay[i], w.dt[i] * x[p], w.B, w.C);
        if (write)
            give_row(state.row(row + p), one, k.state, 0, 0);
        if (lane == 0)
            store(y + row + p, fmaf(k.d[head], x[p], sum));
    }
}

/* P: head dimension, for a state size of 128; 0: any sizes. */
template <class T, int P>
__global__ void __launch_bounds__(SSM_THREADS, 2) mamba_ring(mixer<T> m, states convs, states ssms, rings r)
{
    overlap_wait();
    DYNAMIC_SHARED(float, room);
    const int R = P > 0 ? P / SSM_WARPS : 1;
    const layer &k = m.k;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, per = k.heads / k.groups,
              parts = per / m.part, group = blockIdx.x / parts,
              head = group * per + blockIdx.x % parts * m.part, session = blockIdx.y,
              count = r.count[session] & (WRITE - 1);
    const bool write = r.count[session] & WRITE;
    mixer_room w(room + count * k.state, k, m.part);
    replay_room old(room, w.rows + (P > 0 ? 0 : SSM_WARPS * k.state), k, m.part, count);
    view<T> in = {m.xbc.row(session), 1, m.xbc.cols, m.xbc.stride}, conv = convs.of<T>(session);
    view<float> state = ssms.of<float>(session);
    T *y = m.out.row(session);
    rows128<float, R> S;
    if (P > 0)
        S.load(state, (int64_t)head * P + warp * R);
    take_ring(m, old, r, ssms, count, session, group, head);
    convolve(m, w, in, conv, group, head);
    for (int i = threadIdx.x; i < m.part; i += SSM_THREADS) {
        w.dt[i] = time_step(k, number(m.dt.row(session)[head + i]), head + i);
        w.decay[i] = expf(w.dt[i] * k.a[head + i]);
    }
    __syncthreads();
    if (!write)
        give_ring(m, w, r, ssms, count, session, group, head);
    for (int i = 0; i < m.part; i++) {
        int64_t row = (int64_t)(head + i) * k.head_dim;
        const float *x = w.x + i * k.head_dim;
        const int width = m.part * k.head_dim;
        if (P > 0) {
            row += warp * R;
            if (i > 0)
                S.load(state, row);
            S.arrive();
#pragma unroll 1
            for (int e = 0; e < count; e++)
                S.replay(old.decay[e * m.part + i], old.dt[e * m.part + i],
                         lane < R ? old.x[e * width + i * P + warp * R + lane] : 0.0f,
                         load4(old.B + e * k.state + 4 * lane));
            float mine = lane < R ? x[warp * R + lane] : 0.0f;
            float sum = S.step(w.decay[i], w.dt[i], mine, load4(w.B + 4 * lane), load4(w.C + 4 * lane));
            if (write)
                S.store(state, row, 0);
            if (lane < R)
                store(y + row + lane, fmaf(k.d[head + i], mine, sum));
        } else {
            replay_any(m, w, old, state, y, i, head + i, count, write);
        }
    }
    if (last_of(m.arrived + session * k.groups + group, parts))
        finish_group(m, in, conv, group, session);
}

/* Applies the tokens of one session's ring to its state. One head per block, one row per warp. */
template <class T> __global__ void ring_flush(layer k, states ssms, rings r)
{
    DYNAMIC_SHARED(float, rows);
    const int warp = threadIdx.x / WARP, head = blockIdx.x, group = k.group_of(head), count = r.count[0];
    float *one = rows + warp * k.state, *B = rows + SSM_WARPS * k.state;
    view<float> state = ssms.of<float>(0);
    for (int e = 0; e < count; e++)
        for (int i = threadIdx.x; i < k.state; i += SSM_THREADS)
            B[e * k.state + i] = number(r.inputs<T>(ssms, 0, e)[k.inner + (int64_t)group * k.state + i]);
    __syncthreads();
    for (int p = warp; p < k.head_dim; p += SSM_WARPS) {
        const int64_t row = (int64_t)head * k.head_dim + p;
        take_row(one, state.row(row), k.state);
        for (int e = 0; e < count; e++) {
            float dt = r.steps(ssms, 0, e, k.heads)[head], x = number(r.inputs<T>(ssms, 0, e)[row]);
            replay_row(one, k.state, expf(dt * k.a[head]), dt * x, B + e * k.state);
        }
        give_row(state.row(row), one, k.state, 0, 0);
    }
}

/* ---- host ------------------------------------------------------------------------------------------ */

static int64_t distance(struct tensor from, struct tensor to)
{
    return static_cast<char *>(to.data) - static_cast<char *>(from.data);
}

/* Takes the rings of the first of n sessions, as far as their distance from the state is the same. Returns
 * their number. */
static int rings_take(rings *out, const struct tensor *ssm, const struct ssm_ring *ring, int first, int n)
{
    const struct tensor *in = ring->in + first, *dt = ring->dt + first;
    int taken = 0;
    out->in = distance(ssm[0], in[0]);
    out->dt = distance(ssm[0], dt[0]);
    out->in_stride = in[0].stride;
    for (; taken < n && distance(ssm[taken], in[taken]) == out->in &&
           distance(ssm[taken], dt[taken]) == out->dt && in[taken].stride == out->in_stride;
         taken++)
        out->count[taken] = static_cast<uint8_t>(ring->count[first + taken] |
                                                 (ring->write && ring->write[first + taken] ? WRITE : 0));
    return taken;
}

template <class T, int P>
static void launch(struct backend *b, const mixer<T> &m, const states &conv, const states &ssm,
                   const rings &r, int sessions)
{
    dim3 grid = grid_of(m.k.heads / m.part, sessions);
    size_t own = (P ? 2 : 2 + SSM_WARPS) * m.k.state + m.part * (m.k.head_dim + 2),
           old = WORK_RING * (m.k.state + m.part * (m.k.head_dim + 2));
    size_t shared = (own + old) * sizeof(float);
    allow_shared(mamba_ring<T, P>, shared);
    LAUNCH_OVERLAPPED((mamba_ring<T, P>), grid, SSM_THREADS, shared, b, m, conv, ssm, r);
}

void mamba_replay(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc, struct tensor dt,
                  const struct mamba_batch *e)
{
    for (int64_t i = 0; i < out.rows;) {
        states conv, ssm;
        rings r = {};
        int n = states_take(&ssm, e->ssm_states + i, states_take(&conv, e->conv_states + i, out.rows - i));
        n = rings_take(&r, e->ssm_states + i, e->ring, static_cast<int>(i), n);
        bool fast = e->shape->state == 128 && aligned(&ssm, n, sizeof(float));
        int P = fast ? e->shape->head_dim : 0;
        WITH_TYPE(T, out.dtype, {
            mixer<T> m = mixer_of<T>(b, out, z, xbc, dt, e, i, n, WORK_RING);
            (P == 80 ? launch<T, 80> : P == 64 ? launch<T, 64> : launch<T, 0>)(b, m, conv, ssm, r, n);
        });
        i += n;
    }
}

static void cuda_ssm_flush(struct backend *b, struct tensor state, const struct ssm_ring *ring,
                           const struct ssm_shape *s, const struct ssm_const *c)
{
    states ssm;
    rings r = {};
    states_take(&ssm, &state, 1);
    rings_take(&r, &state, ring, 0, 1);
    size_t shared = static_cast<size_t>(SSM_WARPS + WORK_RING) * s->state * sizeof(float);
    WITH_TYPE(T, ring->in->dtype, {
        allow_shared(ring_flush<T>, shared);
        LAUNCH(ring_flush<T>, grid_of(s->heads), SSM_THREADS, shared, b, layer_of(s, c), ssm, r);
    });
}

void replay_fill(struct ops *o)
{
    o->ssm_flush = cuda_ssm_flush;
}
