/* delta.cuh - declarations shared by the gated delta rule kernels: column layout, gates, one step of the
 * recurrence. */
#pragma once

#include "ssm.cuh"

enum {
    DELTA = 128, /* dk and dv of the fast kernels */
    SHARES = 4,  /* threads per column */
    ROWS_EACH = DELTA / SHARES,
};

/* 1 / sqrt(DELTA) */
#define DELTA_SCALE 0.08838834764831845f

/* First columns of q, k and v in a row for value head `head`. */
struct delta_columns {
    int key_heads, value_heads, key, value;
    bool tiled;
    __device__ __forceinline__ int key_head(int head) const
    {
        return tiled ? head % key_heads : head / (value_heads / key_heads);
    }
    __device__ __forceinline__ int64_t q(int head) const
    {
        return (int64_t)key_head(head) * key;
    }
    __device__ __forceinline__ int64_t k(int head) const
    {
        return (int64_t)key_heads * key + q(head);
    }
    __device__ __forceinline__ int64_t v(int head) const
    {
        return 2 * (int64_t)key_heads * key + (int64_t)head * value;
    }
};

static inline delta_columns columns_of(const struct delta_shape *s)
{
    return delta_columns{s->key_heads, s->value_heads, s->key, s->value, s->tiled};
}

/* Arguments. A row of v has q, k and v of a token; a row of gates has g of all value heads, then beta. */
template <class T> struct delta {
    view<T> y;
    view<const T> v;
    view<const float> gates;
    delta_columns at;
    int tokens; /* per session; the tokens of a session are consecutive */
};

/* ---- gates --------------------------------------------------------------------------------------------- */

/* Returns g = a softplus(raw + bias). */
__device__ __forceinline__ float log_decay(float raw, float bias, float a)
{
    float dt = raw + bias;
    return a * (dt > 20 ? dt : log1pf(expf(dt)));
}

/* Applies the gated norm to one output: y times the inverse root mean square of its head, the weight, and
 * SiLU(z). */
__device__ __forceinline__ float gated(float y, float inverse, float w, float z)
{
    return w * (y * inverse) * silu(z);
}

/* ---- one token, heads of 128 by 128 -------------------------------------------------------------------- */

/* Returns the row of element i of a thread's share: groups of four rows, so that the four shares read 16
 * adjacent rows. */
__device__ __forceinline__ int row_of(int share, int i)
{
    return i / 4 * 16 + share * 4 + i % 4;
}

/* Normalizes q or k of a token by one warp: q / |q| / sqrt(dk) or k / |k|. */
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

/* Processes one token for C columns per thread: decays S, updates it towards v, and replaces v by the
 * output for q. Sums are over the four shares of a column. Their order does not depend on C. */
template <int C>
__device__ __forceinline__ void delta_step(float S[ROWS_EACH][C], const float *q, const float *k, int share,
                                           float v[C], float decay, float beta)
{
    float read[C] = {}, answer[C] = {};
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++)
#pragma unroll
        for (int c = 0; c < C; c++) {
            S[i][c] *= decay;
            read[c] = fmaf(S[i][c], k[row_of(share, i)], read[c]);
        }
#pragma unroll
    for (int c = 0; c < C; c++)
        v[c] = beta * (v[c] - warp_sum<8>(read[c]));
#pragma unroll
    for (int i = 0; i < ROWS_EACH; i++)
#pragma unroll
        for (int c = 0; c < C; c++) {
            S[i][c] = fmaf(k[row_of(share, i)], v[c], S[i][c]);
            answer[c] = fmaf(S[i][c], q[row_of(share, i)], answer[c]);
        }
#pragma unroll
    for (int c = 0; c < C; c++)
        v[c] = warp_sum<8>(answer[c]);
}

/* ---- other sizes --------------------------------------------------------------------------------------- */

template <class T> __device__ __forceinline__ float inverse_length(const T *x, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum = fmaf(number(x[i]), number(x[i]), sum);
    return 1.0f / sqrtf(sum + 1e-6f);
}

/* Processes one token for one column whose state stays in memory. q and k are not normalized yet. Returns
 * the output. */
template <class T>
__device__ __forceinline__ float delta_step_any(float *S, int64_t stride, int n, const T *q, const T *k,
                                                float v, float g, float beta)
{
    float rq = inverse_length(q, n) / sqrtf((float)n), rk = inverse_length(k, n);
    float decay = expf(g), read = 0, answer = 0;
    for (int i = 0; i < n; i++)
        read = fmaf(S[i * stride] * decay, number(k[i]) * rk, read);
    float move = beta * (v - read);
    for (int i = 0; i < n; i++) {
        float s = fmaf(number(k[i]) * rk, move, S[i * stride] * decay);
        S[i * stride] = s;
        answer = fmaf(s, number(q[i]) * rq, answer);
    }
    return answer;
}

/* Processes the first tokens of a session in chunks, as many as are worthwhile (delta_chunks.cu). Returns
 * their number. */
int64_t delta_chunks(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                     struct tensor state, const struct delta_shape *s);
