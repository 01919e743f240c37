/* kernels_ssm.h - the Mamba-2 mixer between its projections: convolution and one step of the recurrence.
 *
 * Convolution: threads are assigned blocks of channels and process the rows in order, with the last K of
 * them in a ring buffer. Step: threads are assigned heads; a state row is updated and multiplied by C in
 * one pass over memory. Both also run one token of several sessions: threads are then assigned heads of
 * all sessions. f16 states are converted when they are read and rounded stochastically when they are
 * written (stochastic_round.h): by a step in the same pass, by a scan (kernels_scan.h) once for all its
 * chunks. */
#pragma once

#include "ops/kernels_core.h"
#include "ops/stochastic_round.h"

/* ---- convolution --------------------------------------------------------------------------------------- */

enum {
    CHANNELS = 128,         /* channels per block */
    CONV_AHEAD = 8,         /* rows to prefetch: too far apart for the hardware prefetcher */
    MOST_TAPS = 16,         /* maximum K of a config */
    SMALL_CONV = 8 << 10,   /* outputs not worth waking a thread for */
    SMALL_STATE = 64 << 10, /* state values not worth waking a thread for */
};

struct conv_task {
    struct backend *b;
    struct tensor v, xbc, w, bias;
    const struct tensor *states; /* one per sequence */
    int64_t sequences, rows;     /* consecutive, `rows` rows each */
};

/* Loads taps and bias of channels [c, c + n), by tap; missing ones are zero. */
static void load_taps(const struct conv_task *a, int64_t c, int64_t n, float *taps)
{
    int64_t K = a->w.cols;
    memset(taps, 0, (size_t)(K + 1) * CHANNELS * sizeof *taps);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < K; k++)
            taps[k * CHANNELS + i] = ((const float *)a->w.data)[(c + i) * a->w.stride + k];
    if (a->bias.data)
        load_row(a->bias, 0, c, n, taps + K * CHANNELS);
}

/* Computes channels [c, c + n) of one sequence: `ring` has row t - K + 1 + k in slot (t + k) mod K. */
static void conv_block(const struct conv_task *a, int64_t sequence, int64_t c, int64_t n, const float *taps,
                       float *ring, float *sum)
{
    int64_t K = a->w.cols, T = a->rows, first = sequence * T;
    const float *bias = taps + K * CHANNELS;
    for (int64_t k = 0; k < K - 1; k++)
        load_row(a->states[sequence], k, c, n, ring + k * CHANNELS);
    for (int64_t t = 0; t < T; t++) {
        prefetch_columns(a->xbc, first + t + CONV_AHEAD, c, n);
        load_row(a->xbc, first + t, c, n, ring + (t + K - 1) % K * CHANNELS);
        const float *rows[MOST_TAPS];
        for (int64_t k = 0; k < K; k++)
            rows[k] = ring + (t + k) % K * CHANNELS;
        for (int64_t i = 0; i < n; i += VL) {
            vec s = *(const vec_at *)(bias + i);
            for (int64_t k = 0; k < K; k++)
                s += *(const vec_at *)(taps + k * CHANNELS + i) * *(const vec_at *)(rows[k] + i);
            *(vec_at *)(sum + i) = silu_vec(s);
        }
        store_row(a->v, first + t, c, n, sum);
    }
    for (int64_t k = 0; k < K - 1; k++)
        store_row(a->states[sequence], k, c, n, ring + (T + k) % K * CHANNELS);
}

static void conv_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct conv_task *a = arg;
    int64_t K = a->w.cols;
    float *taps = cpu_scratch(a->b, thread, (size_t)(2 * K + 2) * CHANNELS * sizeof *taps);
    float *ring = taps + (K + 1) * CHANNELS, *sum = ring + K * CHANNELS;
    for (int64_t i = begin; i < end; i++) {
        int64_t c = i * CHANNELS, n = least(CHANNELS, a->v.cols - c);
        load_taps(a, c, n, taps);
        for (int64_t s = 0; s < a->sequences; s++)
            conv_block(a, s, c, n, taps, ring, sum);
    }
}

static void run_conv(const struct conv_task *a)
{
    pool_for(a->b->pool, ceil_div(a->v.cols, CHANNELS), 1 + SMALL_CONV / (a->v.rows * CHANNELS + 1),
             conv_range, (void *)(uintptr_t)a);
}

static void fast_conv_tokens(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                             struct tensor bias, struct tensor state)
{
    run_conv(&(struct conv_task){b, v, xbc, w, bias, &state, 1, v.rows});
}

static void fast_conv_batch(struct backend *b, struct tensor v, struct tensor xbc, struct tensor w,
                            struct tensor bias, const struct tensor *states)
{
    run_conv(&(struct conv_task){b, v, xbc, w, bias, states, v.rows, 1});
}

/* ---- state space: functions shared by step and scan ---------------------------------------------------- */

struct ssm_task {
    struct backend *b;
    struct tensor y, v, dt;
    const struct tensor *states; /* a step has one per row, a scan one */
    const uint32_t *keys;        /* one per state; NULL: states are f32 */
    const struct ssm_shape *s;
    const struct ssm_const *c;
};

static struct tensor ssm_x(const struct ssm_task *k, int64_t head)
{
    return tensor_cols(k->v, head * k->s->head_dim, k->s->head_dim);
}

static struct tensor ssm_b(const struct ssm_task *k, int64_t group)
{
    return tensor_cols(k->v, (int64_t)k->s->heads * k->s->head_dim + group * k->s->state, k->s->state);
}

static struct tensor ssm_c(const struct ssm_task *k, int64_t group)
{
    return ssm_b(k, k->s->groups + group);
}

/* Returns log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), with log(1 + e) = 2 atanh z, z = e / (2 + e) <= 1/3. */
ALWAYS_INLINE vec softplus_vec(vec x)
{
    vec e = exp_vec((vec)((uvec)x | 0x80000000u)), z = e / (splat(2.0f) + e), u = z * z;
    vec q = u * splat(0.281783353f) + splat(0.279606028f);
    q = q * u + splat(0.400249103f);
    q = q * u + splat(0.666663147f);
    q = q * u + splat(2.0f);
    return VEC_MAX(splat(0.0f), x) + q * z;
}

/* Returns time steps clamp(softplus(raw)) from raw values that include the bias. */
ALWAYS_INLINE vec time_steps(const struct ssm_shape *s, vec raw)
{
    vec d = VEC_MAX(splat(s->dt_min), softplus_vec(raw));
    return -VEC_MAX(splat(-s->dt_max), -d);
}

/* ---- states in f16 ------------------------------------------------------------------------------------- */

/* Returns the hash counters of VL values starting at `pair`; see stochastic_bits(). */
ALWAYS_INLINE uvec stochastic_counters(uint32_t key, int64_t pair)
{
    uvec lane;
    for (unsigned j = 0; j < VL; j++)
        lane[j] = j / 2 * STOCHASTIC_STRIDE;
    return lane + (key + (uint32_t)pair * STOCHASTIC_STRIDE);
}

/* Returns stochastic_bits(), reduced to each value's own bits. */
ALWAYS_INLINE uvec stochastic_noise(uvec x)
{
    uvec shift;
    for (unsigned j = 0; j < VL; j++)
        shift[j] = j % 2 * (32 - STOCHASTIC_BITS);
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return (x ^ x >> 16) >> shift & F16_MASK;
}

/* Rounds VL adjacent values like stochastic_round_f16(). Positive floats are ordered like their exponents. */
ALWAYS_INLINE hvec stochastic_round(vec v, uvec counters)
{
    vec random = (vec)(stochastic_noise(counters) | F16_ONE) - splat(1.0f);
    vec e = VEC_MAX((vec)((uvec)v & F16_EXP), splat(0x1p-14f)), below = VEC_MAX(-e, splat(-0x1p15f));
    vec scale = (vec)(((uvec)below & ~F16_SIGN) | ((uvec)v & F16_SIGN));
    return VEC_TRUNCATE_F16(v + random * scale);
}

/* Load the first n <= VL values at p, zero-padded; store n values of v at p. */
ALWAYS_INLINE vec load_state(const void *p, const bool f16, int64_t n)
{
    if (!f16)
        return n < VL ? load_part(p, false, n) : *(const vec_at *)p;
    hvec buf = {0};
    if (n < VL)
        memcpy(&buf, p, (size_t)n * 2);
    else
        buf = *(const hvec_at *)p;
    return VEC_WIDEN_F16(buf);
}

ALWAYS_INLINE void store_state(void *p, const bool f16, int64_t n, vec v, uvec counters)
{
    if (!f16 && n < VL) {
        store_part(p, false, n, v);
    } else if (!f16) {
        *(vec_at *)p = v;
    } else {
        hvec h = stochastic_round(v, counters);
        memcpy(p, &h, (size_t)least(n, VL) * 2);
    }
}

/* ---- one step ------------------------------------------------------------------------------------------ */

/* Updates rows of S for up to VL values of x: S = decay S + (d x) B^T. Returns S C. */
ALWAYS_INLINE vec step_rows(const struct tensor *state, const bool f16, uint32_t key, int64_t row, int64_t n,
                            float decay, const float *dx, const float *B, const float *C)
{
    uvec sums[VL];
    int64_t N = state->cols, size = f16 ? 2 : 4;
    for (int64_t i = 0; i < VL; i++)
        sums[i] = (uvec){0};
    for (int64_t i = 0; i < n; i++) {
        char *S = (char *)state->data + (row + i) * state->stride * size;
        uvec at = stochastic_counters(key, (row + i) * stochastic_pairs(N));
        vec sum = {0}, by = splat(decay), x = splat(dx[i]);
        int64_t j = 0;
        for (; j + VL <= N; j += VL, at += VL / 2 * STOCHASTIC_STRIDE) {
            vec next = by * load_state(S + j * size, f16, VL) + x * *(const vec_at *)(B + j);
            store_state(S + j * size, f16, VL, next, at);
            sum += next * *(const vec_at *)(C + j);
        }
        if (j < N) {
            vec next = by * load_state(S + j * size, f16, N - j) + x * *(const vec_at *)(B + j);
            store_state(S + j * size, f16, N - j, next, at);
            sum += next * *(const vec_at *)(C + j);
        }
        sums[i] = (uvec)sum;
    }
    transpose(sums);
    vec total = (vec)sums[0];
    for (int i = 1; i < VL; i++)
        total += (vec)sums[i];
    return total;
}

OWN_FUNCTION vec step_f32(const struct tensor *state, int64_t row, int64_t n, float decay, const float *dx,
                          const float *B, const float *C)
{
    return step_rows(state, false, 0, row, n, decay, dx, B, C);
}

OWN_FUNCTION vec step_f16(const struct tensor *state, uint32_t key, int64_t row, int64_t n, float decay,
                          const float *dx, const float *B, const float *C)
{
    return step_rows(state, true, key, row, n, decay, dx, B, C);
}

/* Computes one step: heads of a row in sequence, then the next row. */
static void step_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct ssm_task *k = arg;
    int64_t P = k->s->head_dim, N = padded(k->s->state), per = k->s->heads / k->s->groups;
    float *B = cpu_scratch(k->b, thread, (size_t)(2 * N + 2 * padded(P)) * sizeof *B);
    float *C = B + N, *x = C + N, *y = x + padded(P);
    for (int64_t item = begin; item < end; item++) {
        int64_t t = item / k->s->heads, h = item % k->s->heads;
        vec d = time_steps(k->s, splat(load_value(k->dt, t, h) + k->c->dt_bias[h])),
            decay = exp_vec(d * splat(k->c->a[h]));
        load_row(ssm_b(k, h / per), t, 0, k->s->state, B);
        load_row(ssm_c(k, h / per), t, 0, k->s->state, C);
        load_row(ssm_x(k, h), t, 0, P, x);
        for (int64_t p = 0; p < P; p += VL) {
            float dx[VL];
            vec xs = *(const vec_at *)(x + p), scaled = d * xs;
            memcpy(dx, &scaled, sizeof dx);
            const struct tensor *S = &k->states[t];
            int64_t row = h * P + p, n = least(VL, P - p);
            vec sum = S->dtype == DT_F16 ? step_f16(S, k->keys[t], row, n, decay[0], dx, B, C)
                                         : step_f32(S, row, n, decay[0], dx, B, C);
            *(vec_at *)(y + p) = sum + splat(k->c->d[h]) * xs;
        }
        store_row(k->y, t, h * P, P, y);
    }
}

static void fast_ssm_step_batch(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                                const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                                const struct ssm_const *c)
{
    struct ssm_task k = {b, y, v, dt, states, keys, s, c};
    pool_for(b->pool, y.rows * s->heads, 1 + SMALL_STATE / (s->head_dim * s->state + 1), step_range, &k);
}
