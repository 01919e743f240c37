/* mamba.cuh - declarations shared by the decode kernels of a Mamba-2 layer (mamba.cu, replay.cu). */
#ifndef HOLORUN_CUDA_MAMBA_CUH
#define HOLORUN_CUDA_MAMBA_CUH

#include "ssm.cuh"

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

/* Shared memory: B, C [N], x [part P], time steps and decays [part]; for other sizes also one state row
 * per warp [N]. */
struct mixer_room {
    float *B, *C, *x, *dt, *decay, *rows;
    __device__ __forceinline__ mixer_room(float *at, const layer &k, int part)
        : B(at), C(at + k.state), x(C + k.state), dt(x + part * k.head_dim), decay(dt + part),
          rows(decay + part)
    {
    }
};

/* Convolves x, B and C, and updates the convolution state of x, which no other block reads. */
template <class T>
__device__ __forceinline__ void convolve(const mixer<T> &m, const mixer_room &w, view<T> in, view<T> state,
                                         int group, int head)
{
    const layer &k = m.k;
    int N = k.state, width = m.part * k.head_dim;
    for (int i = threadIdx.x; i < 2 * N; i += SSM_THREADS) { /* B, then C */
        int64_t c = k.inner + (int64_t)(i < N ? group : k.groups + group) * N + i % N;
        w.B[i] = rounded<T>(conv_one(m.conv, in, state, 0, c));
    }
    for (int i = threadIdx.x; i < width; i += SSM_THREADS) {
        int64_t c = (int64_t)head * k.head_dim + i;
        w.x[i] = rounded<T>(conv_one(m.conv, in, state, 0, c));
        conv_keep(m.conv.count - 1, in, state, 1, c);
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

/* Returns the heads per block: as many heads of a group as leave four blocks per multiprocessor, and as
 * fit into shared memory together with those of `ring` earlier tokens. */
static inline int heads_together(const struct cuda *c, const struct ssm_shape *s, int64_t sessions, int ring)
{
    int per = s->heads / s->groups, best = 1;
    for (int n = 2; n <= per; n++)
        if (per % n == 0 && s->heads / n * sessions >= 4 * c->processors &&
            2 * s->state + n * (s->head_dim + 2) + ring * (s->state + n * (s->head_dim + 2)) <= 8192)
            best = n;
    return best;
}

/* Returns the kernel arguments for the n sessions of a batch from row `first` on. `ring`: tokens per ring
 * buffer. */
template <class T>
static mixer<T> mixer_of(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                         struct tensor dt, const struct mamba_batch *e, int64_t first, int n, int ring)
{
    return {view_of<T>(tensor_rows(out, first, n)),
            view_of<T>(tensor_rows(z, first, n)),
            view_of<T>(tensor_rows(xbc, first, n)),
            view_of<T>(tensor_rows(dt, first, n)),
            taps_of(e->conv, e->conv_bias),
            static_cast<const float *>(e->norm.data),
            e->eps,
            layer_of(e->shape, e->constants),
            heads_together(cuda_of(b), e->shape, n, ring),
            groups_arrived(b, e->shape->groups),
            cuda_of(b)->after_product};
}

/* Implements mamba_batch with a ring buffer of inputs (replay.cu). */
void mamba_replay(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc, struct tensor dt,
                  const struct mamba_batch *e);

#endif
