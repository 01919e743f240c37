/* ssm.cuh - declarations shared by the Mamba-2 kernels: sizes, states of sessions, f16 states, one step of
 * a row.
 *
 * A row of the state has the N values of one channel. Whichever kernel updates it, for N = 128 or other
 * sizes, lane l of a warp has values 4l..4l+3 of each 128, and sums are added in the same order. The bits
 * of a step do not depend on the kernel.
 *
 * States are f32, or f16 with stochastic rounding (ops/stochastic_round.h), which halves the largest
 * memory stream besides the weights. Pairs of neighbours are in one lane and share one hash: about 16
 * integer instructions per 8 bytes read and written. */
#pragma once

#include "host.cuh"
#include "ops/stochastic_round.h"

enum {
    SSM_THREADS = 256, /* block size of kernels that process a state */
    SSM_WARPS = SSM_THREADS / WARP,
    SESSIONS = WORK_SESSIONS, /* per launch */
};

/* State addresses of the sessions of a launch, passed by value. */
struct states {
    void *at[SESSIONS];
    int64_t stride;
    template <class S> __device__ __forceinline__ view<S> of(int session) const
    {
        return view<S>{static_cast<S *>(at[session]), 0, 0, stride};
    }
};

/* Takes the first of n states that fit in one launch and have the same stride. Returns their number. */
static inline int states_take(states *out, const struct tensor *t, int64_t n)
{
    int taken = 0;
    out->stride = t[0].stride;
    for (; taken < n && taken < SESSIONS && t[taken].stride == out->stride; taken++)
        out->at[taken] = t[taken].data;
    for (int i = taken; i < SESSIONS; i++) /* zeroed because a graph compares all of it */
        out->at[i] = nullptr;
    return taken;
}

/* SSM states with their stochastic rounding keys. */
struct ssm_states : states {
    uint32_t key[SESSIONS];
};

static inline int states_take(ssm_states *out, const struct tensor *t, const uint32_t *keys, int64_t n)
{
    int taken = states_take(static_cast<states *>(out), t, n);
    for (int i = 0; i < SESSIONS; i++)
        out->key[i] = keys && i < taken ? keys[i] : 0;
    return taken;
}

static inline bool aligned(const states *s, int n, size_t size)
{
    for (int i = 0; i < n; i++)
        if (!rows_aligned(s->at[i], s->stride, size))
            return false;
    return true;
}

/* Sizes and constants of a layer on the device. */
struct layer {
    int heads, head_dim, state, groups, inner; /* H, P, N, G, H P */
    float dt_min, dt_max;
    const float *a, *dt_bias, *d; /* [H] */
    __device__ __forceinline__ int group_of(int head) const
    {
        return head / (heads / groups);
    }
};

static inline layer layer_of(const struct ssm_shape *s, const struct ssm_const *c)
{
    return layer{s->heads,  s->head_dim, s->state, s->groups,  s->heads * s->head_dim,
                 s->dt_min, s->dt_max,   c->a,     c->dt_bias, c->d};
}

/* Returns clamp(softplus(raw + bias)). */
__device__ __forceinline__ float time_step(const layer &k, float raw, int head)
{
    float v = raw + k.dt_bias[head], d = v > 20.0f ? v : log1pf(expf(v));
    return d < k.dt_min ? k.dt_min : d > k.dt_max ? k.dt_max : d;
}

/* Processes consecutive sequences of y.rows / sequences tokens, each with its own state (ssm.cu). */
void ssm_walk_run(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                  const struct tensor *state, const uint32_t *keys, int64_t sequences,
                  const struct ssm_shape *s, const struct ssm_const *c);

/* Runs a statement with S as the type of a state's elements. */
#define WITH_STATE(S, dtype_, ...)                                                                           \
    do {                                                                                                     \
        if ((dtype_) == DT_F16) {                                                                            \
            using S = f16;                                                                                   \
            __VA_ARGS__;                                                                                     \
        } else if ((dtype_) == DT_F32) {                                                                     \
            using S = float;                                                                                 \
            __VA_ARGS__;                                                                                     \
        } else {                                                                                             \
            bug("no state on the device of %s", dtype_name(dtype_));                                         \
        }                                                                                                    \
    } while (0)

/* ---- elements of a state ------------------------------------------------------------------------------- */

struct f16 {
    uint16_t bits;
};

/* Converts two f16 in a word, the first in its lower half. */
__device__ __forceinline__ float2 f32_of_f16x2(unsigned both)
{
#ifdef CUDA_EMULATED
    return float2{f16_to_f32((uint16_t)both), f16_to_f32((uint16_t)(both >> 16))};
#else
    float2 v;
    asm("{\n .reg .f16 a, b;\n mov.b32 {a, b}, %2;\n cvt.f32.f16 %0, a;\n cvt.f32.f16 %1, b;\n}"
        : "=f"(v.x), "=f"(v.y)
        : "r"(both));
    return v;
#endif
}

/* Rounds towards zero. */
__device__ __forceinline__ unsigned truncate2(float a, float b)
{
#ifdef CUDA_EMULATED
    return f16_truncate(a) | (unsigned)f16_truncate(b) << 16;
#else
    unsigned r;
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
#endif
}

/* Rounds the values of pair `pair` stochastically. */
__device__ __forceinline__ unsigned round2(float a, float b, uint32_t key, int64_t pair)
{
    uint32_t random = stochastic_bits(key, (uint32_t)pair);
    return truncate2(stochastic_dither(a, random & F16_MASK),
                     stochastic_dither(b, random >> (32 - STOCHASTIC_BITS)));
}

__device__ __forceinline__ float2 load2(const float *p)
{
    return *reinterpret_cast<const float2 *>(p);
}

__device__ __forceinline__ float2 load2(const f16 *p)
{
    return f32_of_f16x2(*reinterpret_cast<const unsigned *>(p));
}

__device__ __forceinline__ void store2(float *p, float a, float b, uint32_t, int64_t)
{
    *reinterpret_cast<float2 *>(p) = float2{a, b};
}

__device__ __forceinline__ void store2(f16 *p, float a, float b, uint32_t key, int64_t pair)
{
    *reinterpret_cast<unsigned *>(p) = round2(a, b, key, pair);
}

/* Converts four loaded values to f32. */
__device__ __forceinline__ float4 f32_of_f16x4(float4 v)
{
    return v;
}

__device__ __forceinline__ float4 f32_of_f16x4(uint2 v)
{
    float2 a = f32_of_f16x2(v.x), b = f32_of_f16x2(v.y);
    return float4{a.x, a.y, b.x, b.y};
}

__device__ __forceinline__ void store4(float *p, float4 v, uint32_t, int64_t)
{
    *reinterpret_cast<float4 *>(p) = v;
}

__device__ __forceinline__ void store4(f16 *p, float4 v, uint32_t key, int64_t pair)
{
    *reinterpret_cast<uint2 *>(p) = uint2{round2(v.x, v.y, key, pair), round2(v.z, v.w, key, pair + 1)};
}

template <class S> struct four;
template <> struct four<float> {
    using type = float4;
};
template <> struct four<f16> {
    using type = uint2;
};

/* ---- four and eight values ----------------------------------------------------------------------------- */

__device__ __forceinline__ float4 load4(const float *p)
{
    return *reinterpret_cast<const float4 *>(p);
}

__device__ __forceinline__ float4 load4(const bf16 *p)
{
    const uint2 v = *reinterpret_cast<const uint2 *>(p);
    return float4{__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u), __uint_as_float(v.y << 16),
                  __uint_as_float(v.y & 0xffff0000u)};
}

/* Loads the first n of four values, with zeros after them. */
template <class T> __device__ __forceinline__ float4 load_some(const T *p, int n)
{
    return float4{n > 0 ? number(p[0]) : 0.0f, n > 1 ? number(p[1]) : 0.0f, n > 2 ? number(p[2]) : 0.0f,
                  n > 3 ? number(p[3]) : 0.0f};
}

__device__ __forceinline__ void store_some(float *p, int n, float4 v)
{
    if (n > 0)
        p[0] = v.x;
    if (n > 1)
        p[1] = v.y;
    if (n > 2)
        p[2] = v.z;
    if (n > 3)
        p[3] = v.w;
}

/* Returns element n of a row of a state. */
__device__ __forceinline__ float state_number(const float *row, int n)
{
    return row[n];
}

__device__ __forceinline__ float state_number(const f16 *row, int n)
{
    return f32_of_f16x2(row[n].bits).x;
}

__device__ __forceinline__ void state_store(float *row, int n, float v, uint32_t, int64_t)
{
    row[n] = v;
}

__device__ __forceinline__ void state_store(f16 *row, int n, float v, uint32_t key, int64_t first)
{
    row[n].bits =
        (uint16_t)(n % 2 ? round2(0, v, key, first + n / 2) >> 16 : round2(v, 0, key, first + n / 2));
}

/* Copy a row of any length to a warp's buffer and back; `first` is its first pair. Each lane has the
 * elements that step_row assigns to it. */
template <class S> __device__ __forceinline__ void take_row(float *to, const S *row, int N)
{
    for (int n = threadIdx.x % WARP * 4; n < N; n += 4 * WARP)
        for (int i = n; i < N && i < n + 4; i++)
            to[i] = state_number(row, i);
}

template <class S>
__device__ __forceinline__ void give_row(S *row, const float *from, int N, uint32_t key, int64_t first)
{
    for (int n = threadIdx.x % WARP * 4; n < N; n += 4 * WARP)
        for (int i = n; i < N && i < n + 4; i++)
            state_store(row, i, from[i], key, first);
}

/* ---- a step of one row --------------------------------------------------------------------------------- */

/* Computes S = decay S + dx B. */
__device__ __forceinline__ float4 advance(float4 S, float decay, float dx, float4 B)
{
    return float4{fmaf(decay, S.x, dx * B.x), fmaf(decay, S.y, dx * B.y), fmaf(decay, S.z, dx * B.z),
                  fmaf(decay, S.w, dx * B.w)};
}

__device__ __forceinline__ float dot(float4 S, float4 C)
{
    return fmaf(S.w, C.w, fmaf(S.z, C.z, fmaf(S.y, C.y, S.x * C.x)));
}

/* Processes one step of a row of any length in the layout of take_row. Returns S C in all lanes. */
template <class T>
__device__ __forceinline__ float step_row(float *S, int N, float decay, float dx, const T *B, const T *C)
{
    float sum = 0;
    for (int n = threadIdx.x % WARP * 4; n < N; n += 4 * WARP) {
        float4 next = advance(load_some(S + n, N - n), decay, dx, load_some(B + n, N - n));
        store_some(S + n, N - n, next);
        sum += dot(next, load_some(C + n, N - n));
    }
    return warp_sum(sum);
}

/* Processes a step without its output: the state is the same. */
__device__ __forceinline__ void replay_row(float *S, int N, float decay, float dx, const float *B)
{
    for (int n = threadIdx.x % WARP * 4; n < N; n += 4 * WARP)
        store_some(S + n, N - n, advance(load_some(S + n, N - n), decay, dx, load_some(B + n, N - n)));
}

/* R rows of 128 values in registers. All loads are issued before `arrive` uses the first. */
template <class N, int R> struct rows128 {
    typename four<N>::type coming[R];
    float4 S[R];
    __device__ __forceinline__ void load(view<N> state, int64_t row)
    {
#pragma unroll
        for (int r = 0; r < R; r++)
            coming[r] = *reinterpret_cast<const typename four<N>::type *>(state.row(row + r) +
                                                                          4 * (threadIdx.x % WARP));
    }
    /* Issues the loads before overlap_wait. */
    __device__ __forceinline__ void load_early(view<N> state, int64_t row)
    {
#pragma unroll
        for (int r = 0; r < R; r++)
            coming[r] = load_settled(reinterpret_cast<const typename four<N>::type *>(
                state.row(row + r) + 4 * (threadIdx.x % WARP)));
    }
    __device__ __forceinline__ void arrive()
    {
#pragma unroll
        for (int r = 0; r < R; r++)
            S[r] = f32_of_f16x4(coming[r]);
    }
    __device__ __forceinline__ void store(view<N> state, int64_t row, uint32_t key) const
    {
#pragma unroll
        for (int r = 0; r < R; r++) {
            N *at = state.row(row + r) + 4 * (threadIdx.x % WARP);
            store4(at, S[r], key, (row + r) * stochastic_pairs(128) + 2 * (threadIdx.x % WARP));
        }
    }
    /* Processes a step without its output. */
    __device__ __forceinline__ void replay(float decay, float dt, float x, float4 B)
    {
        float dx = dt * x;
#pragma unroll
        for (int r = 0; r < R; r++)
            S[r] = advance(S[r], decay, __shfl_sync(ALL_LANES, dx, r), B);
    }
    /* Processes a step. Lane r < R has x of row r and gets its S C; dt is the time step. */
    __device__ __forceinline__ float step(float decay, float dt, float x, float4 B, float4 C)
    {
        float mine = 0, dx = dt * x;
#pragma unroll
        for (int r = 0; r < R; r++) {
            S[r] = advance(S[r], decay, __shfl_sync(ALL_LANES, dx, r), B);
            float sum = warp_sum(dot(S[r], C));
            mine = (int)threadIdx.x % WARP == r ? sum : mine;
        }
        return mine;
    }
};

/* ---- convolution of one output --------------------------------------------------------------------- */

struct taps {
    const float *w, *bias; /* [C, K], [C] or NULL */
    int64_t stride;
    int count; /* K */
};

static inline taps taps_of(struct tensor w, struct tensor bias)
{
    return taps{static_cast<const float *>(w.data), static_cast<const float *>(bias.data), w.stride,
                static_cast<int>(w.cols)};
}

/* Returns the output of channel c and row t. Rows before the first are those of the state. */
template <class T>
__device__ __forceinline__ float conv_one(const taps &k, view<T> x, view<T> state, int64_t t, int64_t c)
{
    float sum = k.bias ? k.bias[c] : 0.0f;
    int64_t keep = k.count - 1;
    for (int64_t i = 0; i <= keep; i++) {
        int64_t from = t - keep + i;
        sum =
            fmaf(k.w[c * k.stride + i], number(from >= 0 ? x.row(from)[c] : state.row(keep + from)[c]), sum);
    }
    return silu(sum);
}

/* Computes the new convolution state of channel c after `rows` rows of x. */
template <class T>
__device__ __forceinline__ void conv_keep(int keep, view<T> x, view<T> state, int64_t rows, int64_t c)
{
    for (int64_t r = 0; r < keep; r++) { /* oldest first: reads stay ahead of writes */
        int64_t from = rows - keep + r;
        state.row(r)[c] = from >= 0 ? x.row(from)[c] : state.row(rows + r)[c];
    }
}
