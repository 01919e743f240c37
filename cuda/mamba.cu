/* mamba.cu - fused decode step of a Mamba-2 layer for one token of each session of a batch: convolution,
 * time step, state update, D x, gate and norm in one launch.
 *
 * The operation is memory-bound: the states are read and written once, 8 H P N bytes per session (10.5 MB
 * for 128 heads of 80 by 128), and half of that in f16. The other bf16 data are z, x, B, C, dt, the
 * output, and the convolution state twice, in total 0.24 MB. Compared with the separate operations, this
 * saves three launches and the memory traffic of v and y; v is never stored.
 *
 * A block processes one or more heads of one group of one session. With one session it has one head, so
 * that H blocks keep the GPU busy. With many sessions it has more, because each block computes B and C of
 * its group again. It requests its first rows of the state before anything else, if possible while the
 * preceding product still runs, and computes the convolution while they arrive. The norm spans all heads
 * of a group. The block of a group that finishes last, determined by a counter in memory, reads the
 * outputs of the others from the L2 cache and normalizes them. It also writes the new convolution state of
 * B and C, which all blocks of the group read until then. The order in which blocks finish changes no bit.
 *
 * Delayed state write-back. With 16 and more sessions, the states are the largest memory stream besides
 * the weights, half of it for writing. The update of a state by one token is determined by little data, 23
 * KB: x, B and a time step. These inputs are stored in a ring buffer of WORK_RING tokens. A step reads the
 * stored f32 state, replays the tokens of the ring in registers, in their order and with the same
 * operations, and adds its own token. The results have the same bits as if the state were written each
 * time. A token that finds the ring full writes the state, every ninth time. The ring adds 2 % to the
 * bytes on average, and 2 multiplications and additions per element and replayed token, well below the
 * arithmetic that a multiprocessor can do while the state arrives. A ring of 16 would save another 4 % of
 * the bytes and double the arithmetic. Not measured separately.
 *
 * x, B, C and y are rounded to the activation type where the separate operations store them, and sums have
 * the same order, so that the results have the same bits. */
#include "ssm.cuh"

enum { WRITE = 128 /* flag in a count: write the state, after which the ring is empty */ };

template <class T> struct mixer {
    view<T> out, z, xbc, dt;
    taps conv;
    const float *norm;
    float eps;
    layer k;
    int part;          /* heads per block */
    unsigned *arrived; /* [sessions][groups], zero before and after */
    bool early;        /* the preceding kernel writes no states, so they may be requested before it has
                        * ended */
};

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

/* Inputs of tokens: B [tokens][N], x [tokens][part P], time steps and decays [tokens][part]. */
struct mixer_inputs {
    float *B, *x, *dt, *decay;
};

/* Shared memory for this token and `count` tokens of the ring, and, for sizes other than the fast ones
 * (`any`), one state row per warp [N]. Both B are first, for their alignment. */
struct mixer_room {
    mixer_inputs now, old;
    float *C, *rows;
    __device__ __forceinline__ mixer_room(float *at, const layer &k, int part, int count, bool any)
    {
        int width = part * k.head_dim;
        old.B = at;
        now.B = old.B + count * k.state;
        C = now.B + k.state;
        now.x = C + k.state;
        now.dt = now.x + width;
        now.decay = now.dt + part;
        rows = now.decay + part;
        old.x = rows + (any ? SSM_WARPS * k.state : 0);
        old.dt = old.x + count * width;
        old.decay = old.dt + count * part;
    }
};

/* Computes x, B and C by the convolution, and the time steps. Updates the convolution state of x, which no
 * other block reads. */
template <class T>
__device__ __forceinline__ void convolve(const mixer<T> &m, const mixer_room &w, view<T> in, view<T> state,
                                         int session, int group, int head)
{
    const layer &k = m.k;
    int N = k.state, width = m.part * k.head_dim;
    for (int i = threadIdx.x; i < 2 * N; i += SSM_THREADS) { /* B, then C */
        int64_t c = k.inner + (int64_t)(i < N ? group : k.groups + group) * N + i % N;
        w.now.B[i] = rounded<T>(conv_one(m.conv, in, state, 0, c));
    }
    for (int i = threadIdx.x; i < width; i += SSM_THREADS) {
        int64_t c = (int64_t)head * k.head_dim + i;
        w.now.x[i] = rounded<T>(conv_one(m.conv, in, state, 0, c));
        conv_keep(m.conv.count - 1, in, state, 1, c);
    }
    for (int i = threadIdx.x; i < m.part; i += SSM_THREADS) {
        w.now.dt[i] = time_step(k, number(m.dt.row(session)[head + i]), head + i);
        w.now.decay[i] = expf(w.now.dt[i] * k.a[head + i]);
    }
}

/* Applies the norm of a group in the block that finishes last. That block also updates the convolution
 * state of B and C, since all blocks of the group have read it by then. */
template <class T>
__device__ __forceinline__ void finish_group(const mixer<T> &m, view<T> in, view<T> conv, int group,
                                             int session)
{
    const layer &k = m.k;
    int size = k.heads / k.groups * k.head_dim;
    T *y = m.out.row(session) + (int64_t)group * size;
    gated_norm_group<SSM_THREADS>(y, y, m.z.row(session) + (int64_t)group * size,
                                  m.norm + (int64_t)group * size, size, m.eps);
    for (int i = threadIdx.x; i < 2 * k.state; i += SSM_THREADS)
        conv_keep(m.conv.count - 1, in, conv, 1,
                  k.inner + (int64_t)(i < k.state ? group : k.groups + group) * k.state + i % k.state);
}

template <class T>
__device__ __forceinline__ void take_ring(const mixer<T> &m, const mixer_inputs &w, const rings &r,
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
__device__ __forceinline__ void give_ring(const mixer<T> &m, const mixer_inputs &w, const rings &r,
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

/* P: head dimension, for a state size of 128; 0: any sizes. RING: states are written seldom. */
template <class T, class N, int P, bool RING>
__global__ void __launch_bounds__(SSM_THREADS, 2)
    mamba_step(mixer<T> m, states convs, ssm_states ssms, rings ring)
{
    DYNAMIC_SHARED(float, room);
    const int R = P > 0 ? P / SSM_WARPS : 1;
    const layer &k = m.k;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, per = k.heads / k.groups,
              parts = per / m.part, group = blockIdx.x / parts,
              head = group * per + blockIdx.x % parts * m.part, session = blockIdx.y,
              count = RING ? ring.count[session] & (WRITE - 1) : 0, width = m.part * k.head_dim;
    const bool write = !RING || ring.count[session] & WRITE;
    const mixer_room w(room, k, m.part, count, P == 0);
    view<T> in = {m.xbc.row(session), 1, m.xbc.cols, m.xbc.stride}, conv = convs.of<T>(session);
    view<N> state = ssms.of<N>(session);
    const uint32_t key = ssms.key[session];
    T *y = m.out.row(session);
    rows128<N, R> S;
    if (P > 0 && m.early)
        S.load_early(state, (int64_t)head * P + warp * R);
    overlap_wait();
    if (P > 0 && !m.early)
        S.load(state, (int64_t)head * P + warp * R);
    take_ring(m, w.old, ring, ssms, count, session, group, head);
    convolve(m, w, in, conv, session, group, head);
    __syncthreads();
    if (!write)
        give_ring(m, w.now, ring, ssms, count, session, group, head);
    for (int i = 0; i < m.part; i++) {
        const float *x = w.now.x + i * k.head_dim, decay = w.now.decay[i], dt = w.now.dt[i];
        const int64_t row = (int64_t)(head + i) * k.head_dim + (P > 0 ? warp * R : 0);
        if (P > 0) {
            if (i > 0)
                S.load(state, row);
            S.arrive();
#pragma unroll 1
            for (int e = 0; e < count; e++)
                S.replay(w.old.decay[e * m.part + i], w.old.dt[e * m.part + i],
                         lane < R ? w.old.x[e * width + i * P + warp * R + lane] : 0.0f,
                         load4(w.old.B + e * k.state + 4 * lane));
            float mine = lane < R ? x[warp * R + lane] : 0.0f;
            float sum = S.step(decay, dt, mine, load4(w.now.B + 4 * lane), load4(w.C + 4 * lane));
            if (write)
                S.store(state, row, key);
            if (lane < R)
                store(y + row + lane, fmaf(k.d[head + i], mine, sum));
            continue;
        }
        float *one = w.rows + warp * k.state; /* a warp has one row at a time, in shared memory */
        for (int p = warp; p < k.head_dim; p += SSM_WARPS) {
            take_row(one, state.row(row + p), k.state);
            for (int e = 0; e < count; e++)
                replay_row(one, k.state, w.old.decay[e * m.part + i],
                           w.old.dt[e * m.part + i] * w.old.x[e * width + i * k.head_dim + p],
                           w.old.B + e * k.state);
            float sum = step_row(one, k.state, decay, dt * x[p], w.now.B, w.C);
            if (write)
                give_row(state.row(row + p), one, k.state, key, (row + p) * stochastic_pairs(k.state));
            if (lane == 0)
                store(y + row + p, fmaf(k.d[head + i], x[p], sum));
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

/* Allocates the counters of finished blocks of groups of heads, which are zero between launches. */
int counts_open(struct backend *b, int64_t groups, struct err *e)
{
    struct cuda *c = cuda_of(b);
    size_t bytes = work_counts(groups);
    if (c->counts_room >= bytes)
        return 0;
    CUDA(cudaFree(c->counts)); /* waits for pending users */
    c->counts_room = 0;
    c->counts = static_cast<unsigned *>(cuda_try_memory(b, bytes, e));
    if (!c->counts)
        return -1;
    CUDA(cudaMemsetAsync(c->counts, 0, bytes, c->stream));
    c->counts_room = bytes;
    return 0;
}

unsigned *groups_arrived(struct backend *b, int64_t groups)
{
    struct err e = ERR_INIT;
    if (counts_open(b, groups, &e))
        die(e.kind, "%s", e.text);
    return cuda_of(b)->counts;
}

static int64_t distance(struct tensor from, struct tensor to)
{
    return static_cast<char *>(to.data) - static_cast<char *>(from.data);
}

/* Takes the rings of the first of n sessions, as far as their distance from the state is the same. Returns
 * their number. */
static int rings_take(rings *out, const struct tensor *ssm, const struct ssm_ring *ring, int64_t first, int n)
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

/* Returns the bytes of a block's shared memory with n heads and `ring` earlier tokens. */
static size_t mixer_bytes(int state, int head_dim, int n, int ring, bool any)
{
    int each = n * (head_dim + 2) + state;
    return static_cast<size_t>((ring + 1) * each + (any ? SSM_WARPS + 1 : 1) * state) * sizeof(float);
}

/* Returns the heads per block: as many heads of a group as leave four blocks per multiprocessor, and as
 * fit into shared memory. */
static int heads_together(const struct cuda *c, const struct ssm_shape *s, int64_t sessions, int ring)
{
    int per = s->heads / s->groups, best = 1;
    for (int n = 2; n <= per; n++)
        if (per % n == 0 && s->heads / n * sessions >= 4 * c->processors &&
            mixer_bytes(s->state, s->head_dim, n, ring, false) <= 32 << 10)
            best = n;
    return best;
}

/* The sessions of a launch. */
struct mixer_sessions {
    states conv;
    ssm_states ssm;
    rings ring;
    int n;
};

template <class T, class N, bool RING>
static void launch(struct backend *b, const mixer<T> &m, const mixer_sessions &s, int P)
{
    auto kernel = P == 80   ? mamba_step<T, N, 80, RING>
                  : P == 64 ? mamba_step<T, N, 64, RING>
                            : mamba_step<T, N, 0, RING>;
    size_t shared = mixer_bytes(m.k.state, m.k.head_dim, m.part, RING ? WORK_RING : 0, P != 80 && P != 64);
    allow_shared(kernel, shared);
    LAUNCH_OVERLAPPED(kernel, grid_of(m.k.heads / m.part, s.n), SSM_THREADS, shared, b, m, s.conv, s.ssm,
                      s.ring);
}

static void cuda_mamba_batch(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                             struct tensor dt, const struct mamba_batch *e)
{
    enum dtype type = e->ssm_states->dtype;
    for (int64_t i = 0; i < out.rows;) {
        mixer_sessions s = {};
        int n = states_take(&s.conv, e->conv_states + i, out.rows - i);
        n = states_take(&s.ssm, e->ssm_states + i, e->keys && !e->ring ? e->keys + i : nullptr, n);
        s.n = e->ring ? rings_take(&s.ring, e->ssm_states + i, e->ring, i, n) : n;
        bool fast = e->shape->state == 128 && aligned(&s.ssm, s.n, dtype_size(type));
        int P = fast ? e->shape->head_dim : 0;
        WITH_TYPE(T, out.dtype, {
            auto rows = [=](struct tensor t) { return view_of<T>(tensor_rows(t, i, s.n)); };
            mixer<T> m = {rows(out),
                          rows(z),
                          rows(xbc),
                          rows(dt),
                          taps_of(e->conv, e->conv_bias),
                          static_cast<const float *>(e->norm.data),
                          e->eps,
                          layer_of(e->shape, e->constants),
                          heads_together(cuda_of(b), e->shape, s.n, e->ring ? WORK_RING : 0),
                          groups_arrived(b, e->shape->groups),
                          cuda_of(b)->after_product};
            if (e->ring)
                launch<T, float, true>(b, m, s, P);
            else
                WITH_STATE(N, type, (launch<T, N, false>(b, m, s, P)));
        });
        i += s.n;
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

void mamba_fill(struct ops *o)
{
    o->mamba_batch = cuda_mamba_batch;
    o->ssm_flush = cuda_ssm_flush;
}
