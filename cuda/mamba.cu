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
 * x, B, C and y are rounded to the activation type where the separate operations store them, and sums have
 * the same order, so that the results have the same bits. */
#include "mamba.cuh"

/* P: head dimension, for a state size of 128; 0: any sizes. */
template <class T, class N, int P>
__global__ void __launch_bounds__(SSM_THREADS, 2) mamba_batch(mixer<T> m, states convs, ssm_states ssms)
{
    DYNAMIC_SHARED(float, room);
    const int R = P > 0 ? P / SSM_WARPS : 1;
    const layer &k = m.k;
    mixer_room w(room, k, m.part);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, per = k.heads / k.groups, parts = per / m.part,
        group = blockIdx.x / parts, head = group * per + blockIdx.x % parts * m.part, session = blockIdx.y;
    view<T> in = {m.xbc.row(session), 1, m.xbc.cols, m.xbc.stride}, conv = convs.of<T>(session);
    view<N> state = ssms.of<N>(session);
    uint32_t key = ssms.key[session];
    T *y = m.out.row(session);
    rows128<N, R> S;
    if (P > 0 && m.early)
        S.load_early(state, (int64_t)head * P + warp * R);
    overlap_wait();
    if (P > 0 && !m.early)
        S.load(state, (int64_t)head * P + warp * R);
    convolve(m, w, in, conv, group, head);
    for (int i = threadIdx.x; i < m.part; i += SSM_THREADS) {
        w.dt[i] = time_step(k, number(m.dt.row(session)[head + i]), head + i);
        w.decay[i] = expf(w.dt[i] * k.a[head + i]);
    }
    __syncthreads();
    for (int i = 0; i < m.part; i++) {
        int64_t row = (int64_t)(head + i) * k.head_dim;
        const float *x = w.x + i * k.head_dim;
        if (P > 0) {
            row += warp * R;
            if (i > 0)
                S.load(state, row);
            S.arrive();
            float mine = lane < R ? x[warp * R + lane] : 0.0f;
            float sum = S.step(w.decay[i], w.dt[i], mine, load4(w.B + 4 * lane), load4(w.C + 4 * lane));
            S.store(state, row, key);
            if (lane < R)
                store(y + row + lane, fmaf(k.d[head + i], mine, sum));
        } else {
            float *one = w.rows + warp * k.state;
            for (int p = warp; p < k.head_dim; p += SSM_WARPS) {
                take_row(one, state.row(row + p), k.state);
                float sum = step_row(one, k.state, w.decay[i], w.dt[i] * x[p], w.B, w.C);
                give_row(state.row(row + p), one, k.state, key, (row + p) * stochastic_pairs(k.state));
                if (lane == 0)
                    store(y + row + p, fmaf(k.d[head + i], x[p], sum));
            }
        }
    }
    if (!last_of(m.arrived + session * k.groups + group, parts))
        return;
    finish_group(m, in, conv, group, session);
}

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

template <class T, class N, int P>
static void launch(struct backend *b, const mixer<T> &m, const states &conv, const ssm_states &ssm,
                   int sessions)
{
    dim3 grid = grid_of(m.k.heads / m.part, sessions);
    size_t shared = ((P ? 2 : 2 + SSM_WARPS) * m.k.state + m.part * (m.k.head_dim + 2)) * sizeof(float);
    allow_shared(mamba_batch<T, N, P>, shared);
    LAUNCH_OVERLAPPED((mamba_batch<T, N, P>), grid, SSM_THREADS, shared, b, m, conv, ssm);
}

static void cuda_mamba_batch(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                             struct tensor dt, const struct mamba_batch *e)
{
    if (e->ring) {
        mamba_replay(b, out, z, xbc, dt, e);
        return;
    }
    for (int64_t i = 0; i < out.rows;) {
        states conv;
        ssm_states ssm;
        int64_t left = out.rows - i;
        enum dtype type = e->ssm_states->dtype;
        int n = states_take(&ssm, e->ssm_states + i, e->keys ? e->keys + i : nullptr,
                            states_take(&conv, e->conv_states + i, left));
        bool fast = e->shape->state == 128 && aligned(&ssm, n, dtype_size(type));
        int P = fast ? e->shape->head_dim : 0;
        WITH_TYPE(T, out.dtype, {
            mixer<T> m = mixer_of<T>(b, out, z, xbc, dt, e, i, n, 0);
            WITH_STATE(N, type,
                       (P == 80   ? launch<T, N, 80>
                        : P == 64 ? launch<T, N, 64>
                                  : launch<T, N, 0>)(b, m, conv, ssm, n));
        });
        i += n;
    }
}

void mamba_fill(struct ops *o)
{
    o->mamba_batch = cuda_mamba_batch;
}
