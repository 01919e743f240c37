/* kernels_delta.h - the gated delta rule of Gated DeltaNet; equations in ref_delta.c.
 *
 * Threads are assigned value heads. One token: two passes over a head's state, one block of columns at a
 * time, so that the second pass reads from the cache. Many tokens: chunks computed with products of small
 * f32 matrices; the products of keys and queries among themselves are shared by the value heads of a key
 * head. R is solved in blocks of BLOCK rows: the contribution of earlier blocks is a product, inside a
 * block rows are substituted in sequence. */
#pragma once

#include "ops/kernels_gates.h"
#include "ops/kernels_ssm.h"

struct delta_task {
    struct backend *b;
    struct tensor y, v, gates;
    const struct tensor *states; /* a step has one per row, a scan one */
    const struct delta_shape *s;
};

/* Return the first column of value head h, and of its key head in queries and keys. */
static int64_t delta_value_column(const struct delta_shape *s, int64_t h)
{
    return 2 * (int64_t)s->key_heads * s->key + h * s->value;
}

static int64_t delta_key_column(const struct delta_shape *s, int64_t h)
{
    return (s->tiled ? h % s->key_heads : h / (s->value_heads / s->key_heads)) * s->key;
}

/* Loads n columns of row t starting at c, divided by their length and multiplied by `by`; zero-padded to
 * whole vectors. */
static void load_unit(struct tensor v, int64_t t, int64_t c, int64_t n, float by, float *out)
{
    load_row(v, t, c, n, out);
    vec scale = splat(by / sqrtf(sum_squares(out, n) + 1e-6f));
    for (int64_t i = 0; i < n; i += VL)
        *(vec_at *)(out + i) *= scale;
}

/* ---- one token ----------------------------------------------------------------------------------------- */

struct delta_head {         /* one token */
    const float *q, *k, *v; /* [dk], [dk], [dv] */
    float *y;               /* [dv] */
    float decay, beta;
    int64_t dk;
};

/* Updates N vectors of columns starting at c; the last has only `left` lanes if that is below VL. */
ALWAYS_INLINE void delta_columns(const struct delta_head *h, float *S, int64_t ld, int64_t c, const int N,
                                 const bool part, int64_t left)
{
    vec read[8], d[8], y[8];
    UNROLL for (int j = 0; j < N; j++) read[j] = y[j] = (vec){0};
    for (int64_t r = 0; r < h->dk; r++) {
        const float *row = S + r * ld + c;
        vec k = splat(h->k[r]);
        UNROLL for (int j = 0; j < N; j++) read[j] +=
            k * (part ? load_part(row, false, left) : *(const vec_at *)(row + j * VL));
    }
    UNROLL for (int j = 0; j < N; j++)
    {
        d[j] = splat(h->beta) * (*(const vec_at *)(h->v + c + j * VL) - splat(h->decay) * read[j]);
    }
    for (int64_t r = 0; r < h->dk; r++) {
        float *row = S + r * ld + c;
        vec k = splat(h->k[r]), q = splat(h->q[r]), by = splat(h->decay);
        UNROLL for (int j = 0; j < N; j++)
        {
            vec next = by * (part ? load_part(row, false, left) : *(const vec_at *)(row + j * VL)) + k * d[j];
            if (part)
                store_part(row, false, left, next);
            else
                *(vec_at *)(row + j * VL) = next;
            y[j] += q * next;
        }
    }
    UNROLL for (int j = 0; j < N; j++) * (vec_at *)(h->y + c + j * VL) = y[j];
}

OWN_FUNCTION void delta_columns_8(const struct delta_head *h, float *S, int64_t ld, int64_t c)
{
    delta_columns(h, S, ld, c, REGISTERS == 32 ? 8 : 4, false, 0);
}

OWN_FUNCTION void delta_columns_1(const struct delta_head *h, float *S, int64_t ld, int64_t c, int64_t left)
{
    if (left >= VL)
        delta_columns(h, S, ld, c, 1, false, 0);
    else
        delta_columns(h, S, ld, c, 1, true, left);
}

static void delta_step_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct delta_task *k = arg;
    const struct delta_shape *s = k->s;
    int64_t keys = (int64_t)s->key_heads * s->key, DK = padded(s->key), DV = padded(s->value);
    float *q = cpu_scratch(k->b, thread, (size_t)(2 * DK + 2 * DV) * sizeof *q), *v = q + 2 * DK;
    enum { COLUMNS = (REGISTERS == 32 ? 8 : 4) * VL };
    for (int64_t item = begin; item < end; item++) {
        int64_t t = item / s->value_heads, j = item % s->value_heads, of = delta_key_column(s, j);
        const struct tensor *state = &k->states[t];
        struct delta_head h = {q, q + DK, v, v + DV, .dk = s->key};
        load_unit(k->v, t, of, s->key, 1 / sqrtf((float)s->key), q);
        load_unit(k->v, t, keys + of, s->key, 1, q + DK);
        load_row(k->v, t, delta_value_column(s, j), s->value, v);
        h.decay = exp_vec(splat(load_value(k->gates, t, j)))[0];
        h.beta = load_value(k->gates, t, s->value_heads + j);
        float *S = (float *)state->data + j * s->key * state->stride;
        int64_t c = 0;
        for (; c + COLUMNS <= s->value; c += COLUMNS)
            delta_columns_8(&h, S, state->stride, c);
        for (; c < s->value; c += VL)
            delta_columns_1(&h, S, state->stride, c, s->value - c);
        store_row(k->y, t, j * s->value, s->value, h.y);
    }
}

static void fast_delta_step_batch(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                                  const struct tensor *states, const struct delta_shape *s)
{
    struct delta_task k = {b, y, v, gates, states, s};
    pool_for(b->pool, y.rows * s->value_heads, 1 + SMALL_STATE / ((int64_t)s->key * s->value + 1),
             delta_step_range, &k);
}

/* ---- many tokens --------------------------------------------------------------------------------------- */

enum { BLOCK = 16 };

/* Scratch of one thread; rows are padded to whole vectors. */
struct delta_chunk {
    float *q, *k, *faded; /* [C][dk]; faded: each key times its decay to the end of the chunk */
    float *kt;            /* [dk][C] */
    float *kk, *qk;       /* [C][C] of a key head */
    float *A, *W;         /* [C][C] of a value head: -A below the diagonal, W including it */
    float *R, *y;         /* [C][dv] */
    float *S;             /* [dk][dv], if a state's rows are not whole vectors */
    /* [C]: sums of g, each as the sum of two floats; their exponentials; decay to the end of the chunk */
    float *sum, *low, *decay, *part;
    int64_t C, DK, DV; /* floats per padded row */
    int64_t group;     /* key head of these keys and queries; -1 at the start of a chunk */
};

static void delta_chunk_init(struct delta_chunk *w, const struct delta_task *k, int thread)
{
    int64_t c = k->s->chunk, C = padded(c), DK = padded(k->s->key), DV = padded(k->s->value);
    int64_t words = 3 * c * DK + k->s->key * C + 4 * c * C + 2 * c * DV + k->s->key * DV + 4 * C;
    float *at = cpu_scratch(k->b, thread, (size_t)words * sizeof *at);
    *w = (struct delta_chunk){.C = C, .DK = DK, .DV = DV};
    w->q = at, at += c * DK;
    w->k = at, at += c * DK;
    w->faded = at, at += c * DK;
    w->kt = at, at += k->s->key * C;
    w->kk = at, at += c * C;
    w->qk = at, at += c * C;
    w->A = at, at += c * C;
    w->W = at, at += c * C;
    w->R = at, at += c * DV;
    w->y = at, at += c * DV;
    w->S = at, at += k->s->key * DV;
    w->sum = at;
    w->low = w->sum + C;
    w->decay = w->low + C;
    w->part = w->decay + C;
}

/* Loads queries and keys of value head h's key head for L tokens starting at t0, and computes their
 * products. */
static void load_keys(const struct delta_task *k, struct delta_chunk *w, int64_t h, int64_t t0, int64_t L)
{
    const struct delta_shape *s = k->s;
    int64_t of = delta_key_column(s, h), keys = (int64_t)s->key_heads * s->key;
    for (int64_t i = 0; i < L; i++) {
        load_unit(k->v, t0 + i, of, s->key, 1 / sqrtf((float)s->key), w->q + i * w->DK);
        load_unit(k->v, t0 + i, keys + of, s->key, 1, w->k + i * w->DK);
    }
    for (int64_t r = 0; r < L; r += VL) {
        struct tensor rows = {w->k + r * w->DK, DT_F32, least(VL, L - r), s->key, w->DK};
        pack_rows((uint32_t *)w->kt + r, w->C, rows, false);
    }
    product_f32(w->kk, w->C, (struct matrix){w->k, w->DK, 1}, w->kt, w->C, L, s->key, padded(L), FROM_ZERO);
    product_f32(w->qk, w->C, (struct matrix){w->q, w->DK, 1}, w->kt, w->C, L, s->key, padded(L), FROM_ZERO);
}

/* Computes the sums of g of a head, zero-padded to whole vectors. A token that decays the state to zero
 * makes them reach thousands, while later differences stay small: they are summed in f64, and two floats
 * keep the precision. */
static void load_decays(const struct delta_task *k, struct delta_chunk *w, int64_t h, int64_t t0, int64_t L)
{
    double acc = 0;
    for (int64_t i = 0; i < padded(L); i++) {
        acc += i < L ? (double)load_value(k->gates, t0 + i, h) : 0;
        w->sum[i] = (float)acc;
        w->low[i] = (float)(acc - (double)w->sum[i]);
    }
    vec last = splat(w->sum[L - 1]), rest = splat(w->low[L - 1]);
    for (int64_t i = 0; i < L; i += VL) {
        *(vec_at *)(w->decay + i) = exp_vec(*(const vec_at *)(w->sum + i));
        *(vec_at *)(w->part + i) =
            exp_vec(last - *(const vec_at *)(w->sum + i) + (rest - *(const vec_at *)(w->low + i)));
    }
}

/* Computes -A_ij = -beta_i (k_i . k_j) e^(G_i - G_j) below the diagonal, W_ij = (q_i . k_j) e^(G_i - G_j)
 * including it, and zeros after that. */
static void weigh_pairs(const struct delta_task *k, struct delta_chunk *w, int64_t h, int64_t t0, int64_t L)
{
    uvec lane;
    for (unsigned j = 0; j < VL; j++)
        lane[j] = j;
    for (int64_t i = 0; i < L; i++) {
        vec by = splat(-load_value(k->gates, t0 + i, k->s->value_heads + h));
        vec sum = splat(w->sum[i]), low = splat(w->low[i]);
        float *A = w->A + i * w->C, *W = w->W + i * w->C;
        for (int64_t j = 0; j < padded(L); j += VL) {
            uvec seen = (uvec)(lane + (unsigned)j <= (unsigned)i),
                 before = (uvec)(lane + (unsigned)j < (unsigned)i);
            vec d = {0};
            if (j <= i)
                d = exp_vec(sum - *(const vec_at *)(w->sum + j) + (low - *(const vec_at *)(w->low + j)));
            *(vec_at *)(A + j) = (vec)((uvec)(by * *(const vec_at *)(w->kk + i * w->C + j) * d) & before);
            *(vec_at *)(W + j) = (vec)((uvec)(*(const vec_at *)(w->qk + i * w->C + j) * d) & seen);
        }
    }
}

/* Solves (I + A) X = R in place. */
static void solve(struct delta_chunk *w, int64_t L)
{
    for (int64_t first = 0; first < L; first += BLOCK) {
        int64_t end = least(first + BLOCK, L);
        if (first)
            product_f32(w->R + first * w->DV, w->DV, (struct matrix){w->A + first * w->C, w->C, 1}, w->R,
                        w->DV, end - first, first, w->DV, FROM_SUM);
        for (int64_t i = first + 1; i < end; i++)
            for (int64_t c = 0; c < w->DV; c += VL) {
                vec sum = *(const vec_at *)(w->R + i * w->DV + c);
                for (int64_t j = first; j < i; j++)
                    sum += splat(w->A[i * w->C + j]) * *(const vec_at *)(w->R + j * w->DV + c);
                *(vec_at *)(w->R + i * w->DV + c) = sum;
            }
    }
}

/* Computes S = e^(G_L) S + sum_j e^(G_L - G_j) k_j R_jT. */
static void carry_delta(const struct delta_task *k, struct delta_chunk *w, float *S, int64_t ld, int64_t L)
{
    vec by = splat(w->decay[L - 1]);
    for (int64_t r = 0; r < k->s->key; r++)
        for (int64_t c = 0; c < w->DV; c += VL)
            *(vec_at *)(S + r * ld + c) *= by;
    for (int64_t j = 0; j < L; j++)
        for (int64_t c = 0; c < w->DK; c += VL)
            *(vec_at *)(w->faded + j * w->DK + c) =
                splat(w->part[j]) * *(const vec_at *)(w->k + j * w->DK + c);
    product_f32(S, ld, (struct matrix){w->faded, 1, w->DK}, w->R, w->DV, k->s->key, L, w->DV, FROM_SUM);
}

/* Computes a chunk of one head, with a state whose rows are whole vectors. */
static void delta_scan_head(const struct delta_task *k, struct delta_chunk *w, int64_t h, int64_t t0,
                            int64_t L, float *S, int64_t ld)
{
    const struct delta_shape *s = k->s;
    load_decays(k, w, h, t0, L);
    weigh_pairs(k, w, h, t0, L);
    product_f32(w->y, w->DV, (struct matrix){w->k, w->DK, 1}, S, ld, L, s->key, w->DV, FROM_ZERO);
    for (int64_t i = 0; i < L; i++) {
        float *R = w->R + i * w->DV;
        vec beta = splat(load_value(k->gates, t0 + i, s->value_heads + h)), by = splat(w->decay[i]);
        load_row(k->v, t0 + i, delta_value_column(s, h), s->value, R);
        for (int64_t c = 0; c < w->DV; c += VL)
            *(vec_at *)(R + c) =
                beta * (*(const vec_at *)(R + c) - by * *(const vec_at *)(w->y + i * w->DV + c));
    }
    solve(w, L);
    product_f32(w->y, w->DV, (struct matrix){w->q, w->DK, 1}, S, ld, L, s->key, w->DV, FROM_ZERO);
    for (int64_t i = 0; i < L; i++)
        for (int64_t c = 0; c < w->DV; c += VL)
            *(vec_at *)(w->y + i * w->DV + c) *= splat(w->decay[i]);
    product_f32(w->y, w->DV, (struct matrix){w->W, w->C, 1}, w->R, w->DV, L, L, w->DV, FROM_SUM_TRIANGLE);
    for (int64_t i = 0; i < L; i++)
        store_row(k->y, t0 + i, h * s->value, s->value, w->y + i * w->DV);
    carry_delta(k, w, S, ld, L);
}

/* Computes a chunk of one head with any state; copies it to scratch if its rows are not whole vectors. */
static void delta_scan_any(const struct delta_task *k, struct delta_chunk *w, int64_t h, int64_t t0,
                           int64_t L)
{
    int64_t dk = k->s->key, dv = k->s->value;
    struct tensor S = tensor_rows(*k->states, h * dk, dk);
    if (dv % VL == 0) {
        delta_scan_head(k, w, h, t0, L, S.data, S.stride);
        return;
    }
    for (int64_t r = 0; r < dk; r++)
        load_row(S, r, 0, dv, w->S + r * w->DV);
    delta_scan_head(k, w, h, t0, L, w->S, w->DV);
    for (int64_t r = 0; r < dk; r++)
        store_row(S, r, 0, dv, w->S + r * w->DV);
}

static void delta_scan_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct delta_task *k = arg;
    int64_t per = k->s->value_heads / k->s->key_heads, keys = k->s->key_heads;
    struct delta_chunk w;
    delta_chunk_init(&w, k, thread);
    for (int64_t t = 0; t < k->y.rows; t += k->s->chunk) {
        int64_t L = least(k->s->chunk, k->y.rows - t);
        w.group = -1;
        for (int64_t i = begin; i < end; i++) { /* the value heads of a key head in sequence */
            int64_t h = k->s->tiled ? i % per * keys + i / per : i;
            if (i / per != w.group)
                load_keys(k, &w, h, t, L);
            w.group = i / per;
            delta_scan_any(k, &w, h, t, L);
        }
    }
}

static void fast_delta_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor gates,
                            struct tensor state, const struct delta_shape *s)
{
    struct delta_task k = {b, y, v, gates, &state, s};
    int64_t per_head = y.rows * s->key * s->value;
    pool_for(b->pool, s->value_heads, 1 + SMALL_STATE / (per_head + 1), delta_scan_range, &k);
}
