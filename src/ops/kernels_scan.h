/* kernels_scan.h - chunked scan of the Mamba-2 recurrence over many tokens.
 *
 * Threads are assigned heads. Inside a chunk everything is a product of small matrices, and C B^T is
 * computed once for all heads of a group. Equations: scan_chunk in ref_mamba.c.
 *
 * With the dot instruction a bf16 scan multiplies pairs of bf16: B, C and x are used as they are; the
 * other factor of each product is rounded to bf16: the weights of earlier tokens, the state as seen by a
 * chunk's tokens, and x times its weight in the next state. Sums and the state itself are f32. C is read
 * in place, and x is packed once for its two products.
 *
 * f16 states are converted to f32 for a thread's heads at the first chunk and back after the last. */
#pragma once

#include "ops/kernels_ssm.h"

/* Scratch of one thread. Products take words: f32, or pairs of bf16 that are adjacent along the columns of
 * a right factor and the rows of a left one; "/w" then means half as many. Rows are padded to whole
 * vectors. */
struct chunk {
    uint32_t *B, *C, *Bt, *M, *x, *xf, *St; /* [Q/w][N] [Q][N] [N/w][Q] [Q][Q/w] [Q/w][P] [Q/w][P] [N/w][P] */
    float *CB, *y, *U;                      /* [Q][Q] of a group; [Q][P] [P][N] of a head */
    /* [Q]: time steps; their running sums times a, each as the sum of two floats; the exponentials of
     * those; weights in the next state */
    float *d, *sum, *low, *decay, *part;
    float *wide; /* [heads][P][N]: f32 copies of f16 states, starting with head `first` */
    int64_t first;
    int64_t Q, P, N;    /* floats per padded row */
    int64_t group;      /* group of B and C; -1 at the start of a chunk */
    struct matrix left; /* C as a left factor */
    bool pair;          /* words are pairs of bf16 */
};

/* Returns whether pairs of bf16 can be used: an even number of states, and rows of v that are whole words. */
static bool scan_in_pairs(const struct ssm_task *k)
{
    return HAS_DOT && k->v.dtype == DT_BF16 && k->s->state % 2 == 0 && k->v.stride % 2 == 0;
}

static void chunk_init(struct chunk *w, const struct ssm_task *k, int thread, int64_t heads)
{
    int64_t q = k->s->chunk, p = k->s->head_dim, n = k->s->state;
    int64_t Q = padded(q), P = padded(p), N = padded(n);
    int64_t words = 2 * q * N + n * Q + 2 * q * Q + 3 * q * P + n * P + (1 + heads) * p * N + 5 * Q;
    uint32_t *at = cpu_scratch(k->b, thread, (size_t)words * sizeof *at);
    *w = (struct chunk){.Q = Q, .P = P, .N = N, .pair = scan_in_pairs(k)};
    w->B = at, at += q * N;
    w->C = at, at += q * N;
    w->Bt = at, at += n * Q;
    w->M = at, at += q * Q;
    w->x = at, at += q * P;
    w->xf = at, at += q * P;
    w->St = at, at += n * P;
    w->CB = (float *)at, at += q * Q;
    w->y = (float *)at, at += q * P;
    w->U = (float *)at, at += p * N;
    w->wide = (float *)at, at += heads * p * N;
    w->d = (float *)at;
    w->sum = w->d + Q;
    w->low = w->sum + Q;
    w->decay = w->low + Q;
    w->part = w->decay + Q;
}

/* Returns the state of a head as f32. */
static struct tensor head_state(const struct ssm_task *k, const struct chunk *w, int64_t h)
{
    int64_t P = k->s->head_dim, N = k->s->state;
    if (k->states->dtype == DT_F32)
        return tensor_rows(*k->states, h * P, P);
    return (struct tensor){w->wide + (h - w->first) * P * w->N, DT_F32, P, N, w->N};
}

/* Converts the f16 states of heads [begin, end) to f32, or back with stochastic rounding. */
static void convert_states(const struct ssm_task *k, const struct chunk *w, int64_t begin, int64_t end,
                           bool back)
{
    int64_t P = k->s->head_dim, N = k->s->state;
    for (int64_t r = begin * P; r < end * P; r++) {
        uint16_t *half = (uint16_t *)k->states->data + r * k->states->stride;
        float *wide = w->wide + (r - begin * P) * w->N;
        for (int64_t n = 0; n < N; n += VL)
            if (back)
                store_state(half + n, true, N - n, *(const vec_at *)(wide + n),
                            stochastic_counters(*k->keys, r * stochastic_pairs(N) + n / 2));
            else
                *(vec_at *)(wide + n) = load_state(half + n, true, N - n);
    }
}

static int64_t words_of(const struct chunk *w, int64_t n)
{
    return w->pair ? ceil_div(n, 2) : n;
}

static void scan_product(const struct chunk *w, float *c, int64_t ldc, struct matrix a, const uint32_t *b,
                         int64_t ldb, int64_t rows, int64_t depth, int64_t cols, enum start start)
{
    if (w->pair)
        product_pair(c, ldc, a, b, ldb, rows, depth, cols, start);
    else
        product_f32(c, ldc, a, b, ldb, rows, depth, cols, start);
}

/* Sets out[c][r] = word c of row r of t, for any number of rows. */
static void transposed(uint32_t *out, int64_t ld, struct tensor t, bool pair)
{
    for (int64_t r = 0; r < t.rows; r += VL)
        pack_rows(out + r, ld, tensor_rows(t, r, least(VL, t.rows - r)), pair);
}

/* Loads B and C of a group for L tokens starting at t0, and computes the lower triangle of C B^T. */
static void load_group(const struct ssm_task *k, struct chunk *w, int64_t group, int64_t t0, int64_t L)
{
    struct tensor B = tensor_rows(ssm_b(k, group), t0, L), C = tensor_rows(ssm_c(k, group), t0, L);
    pack_columns(w->B, w->N, B, w->pair);
    transposed(w->Bt, w->Q, B, w->pair);
    if (!w->pair)
        pack_columns(w->C, w->N, C, false);
    w->left = w->pair ? (struct matrix){C.data, C.stride / 2, 1} : (struct matrix){w->C, w->N, 1};
    for (int64_t i = 0; i < L; i += MR) {
        int64_t n = least(MR, L - i);
        struct matrix rows = {(const char *)w->left.at + i * w->left.row * WORD, w->left.row, 1};
        scan_product(w, w->CB + i * w->Q, w->Q, rows, w->Bt, w->Q, n, words_of(w, B.cols), padded(i + n),
                     FROM_ZERO);
    }
    w->group = group;
}

/* Returns exp(c_i - c_j) for j and the VL - 1 tokens after it. */
ALWAYS_INLINE vec decay_between(const struct chunk *w, int64_t i, int64_t j)
{
    return exp_vec(splat(w->sum[i]) - *(const vec_at *)(w->sum + j) +
                   (splat(w->low[i]) - *(const vec_at *)(w->low + j)));
}

/* Computes time steps and running sums of a head, zero-padded to whole vectors, and each token's weight in
 * the state after the last token: exp(c_L - c_j) dt_j. A token that decays the state to zero makes c reach
 * thousands, while later differences stay small: the sums are f64, and two floats keep the precision. */
static void load_times(const struct ssm_task *k, struct chunk *w, int64_t h, int64_t t0, int64_t L)
{
    for (int64_t i = 0; i < L; i++)
        w->d[i] = load_value(k->dt, t0 + i, h) + k->c->dt_bias[h];
    for (int64_t i = L; i < padded(L); i++)
        w->d[i] = 0;
    double acc = 0;
    for (int64_t i = 0; i < L; i += VL)
        *(vec_at *)(w->d + i) = time_steps(k->s, *(const vec_at *)(w->d + i));
    for (int64_t i = 0; i < padded(L); i++) {
        w->d[i] = i < L ? w->d[i] : 0;
        acc += w->d[i] * k->c->a[h];
        w->sum[i] = (float)acc;
        w->low[i] = (float)(acc - (double)w->sum[i]);
    }
    for (int64_t i = 0; i < L; i += VL) {
        *(vec_at *)(w->decay + i) = exp_vec(*(const vec_at *)(w->sum + i));
        *(vec_at *)(w->part + i) = decay_between(w, L - 1, i) * *(const vec_at *)(w->d + i);
    }
}

/* Computes M_ij = (C_i . B_j) exp(c_i - c_j) dt_j for j <= i, then zeros as far as a block of rows reads. */
ALWAYS_INLINE void weigh(struct chunk *w, int64_t L, const bool pair)
{
    const int64_t size = pair ? 2 : 4;
    uvec lane;
    for (unsigned j = 0; j < VL; j++)
        lane[j] = j;
    for (int64_t i = 0; i < L; i++) {
        char *M = (char *)w->M + i * w->Q * size;
        const float *CB = w->CB + i * w->Q;
        int64_t j = 0, end = least(padded(i + MR), w->Q);
        for (; j <= i; j += VL) {
            vec m = *(const vec_at *)(CB + j) * decay_between(w, i, j) * *(const vec_at *)(w->d + j);
            uvec seen = (uvec)(lane + (unsigned)j <= (unsigned)i);
            store_vec(M + j * size, pair, (vec)((uvec)m & seen));
        }
        for (; j < end; j += VL)
            store_vec(M + j * size, pair, (vec){0});
    }
}

/* Returns VL values of x_i. */
ALWAYS_INLINE vec x_of(const struct chunk *w, int64_t i, int64_t p)
{
    if (!w->pair)
        return *(const vec_at *)(w->x + i * w->P + p);
    uvec both = *(const uvec_at *)(w->x + i / 2 * w->P + p);
    return i % 2 ? (vec)(both & 0xffff0000u) : (vec)(both << 16);
}

/* Multiplies each x_j by its token's weight in the next state. */
static void share_x(struct chunk *w, int64_t P, int64_t L)
{
    for (int64_t j = 0; j < L; j += w->pair ? 2 : 1) {
        uint32_t *to = w->xf + (w->pair ? j / 2 : j) * w->P;
        for (int64_t p = 0; p < P; p += VL) {
            vec x = splat(w->part[j]) * x_of(w, j, p);
            if (w->pair) { /* an odd last token is paired with zero */
                uvec low = (uvec)vec_from_bf16(vec_to_bf16(x)), next = {0};
                if (j + 1 < L)
                    next = (uvec)vec_from_bf16(vec_to_bf16(splat(w->part[j + 1]) * x_of(w, j + 1, p)));
                x = (vec)(low >> 16 | next);
            }
            *(vec_at *)(to + p) = x;
        }
    }
}

/* Computes S' = exp(c_L) S + sum_j exp(c_L - c_j) dt_j x_j B_j^T. */
static void carry_state(const struct ssm_task *k, struct chunk *w, int64_t h, int64_t L)
{
    int64_t P = k->s->head_dim, N = k->s->state;
    share_x(w, P, L);
    scan_product(w, w->U, w->N, (struct matrix){w->xf, 1, w->P}, w->B, w->N, P, words_of(w, L), w->N,
                 FROM_ZERO);
    struct tensor state = head_state(k, w, h);
    for (int64_t p = 0; p < P; p++) {
        float *S = (float *)state.data + p * state.stride;
        for (int64_t n = 0; n < N; n++)
            S[n] = w->decay[L - 1] * S[n] + w->U[p * w->N + n];
    }
}

/* Packs the state of a head as a right factor, rounded first for pairs; U is the scratch. */
static void pack_state(const struct ssm_task *k, struct chunk *w, int64_t h)
{
    int64_t P = k->s->head_dim;
    struct tensor S = head_state(k, w, h), rounded = {w->U, DT_BF16, P, S.cols, w->N};
    for (int64_t p = 0; w->pair && p < P; p++) {
        const float *from = (const float *)(const void *)element(S, p, 0);
        char *to = element(rounded, p, 0);
        for (int64_t n = 0; n < S.cols; n += VL)
            store_vec(to + 2 * n, true,
                      n + VL <= S.cols ? *(const vec_at *)(from + n)
                                       : load_part(from + n, false, S.cols - n));
    }
    transposed(w->St, w->P, w->pair ? rounded : S, w->pair);
}

/* Computes y_i = exp(c_i) S C_i + sum_j M_ij x_j + D x_i, then the state from which the next chunk starts. */
static void scan_head(const struct ssm_task *k, struct chunk *w, int64_t h, int64_t t0, int64_t L)
{
    int64_t P = k->s->head_dim;
    load_times(k, w, h, t0, L);
    pack_state(k, w, h);
    pack_columns(w->x, w->P, tensor_rows(ssm_x(k, h), t0, L), w->pair);
    scan_product(w, w->y, w->P, w->left, w->St, w->P, L, words_of(w, k->s->state), w->P, FROM_ZERO);
    for (int64_t i = 0; i < L; i++) {
        float *y = w->y + i * w->P;
        for (int64_t p = 0; p < P; p += VL)
            *(vec_at *)(y + p) = splat(w->decay[i]) * *(vec_at *)(y + p) + splat(k->c->d[h]) * x_of(w, i, p);
    }
    if (w->pair)
        weigh(w, L, true);
    else
        weigh(w, L, false);
    scan_product(w, w->y, w->P, (struct matrix){w->M, words_of(w, w->Q), 1}, w->x, w->P, L, words_of(w, L),
                 w->P, FROM_SUM_TRIANGLE);
    for (int64_t i = 0; i < L; i++)
        store_row(k->y, t0 + i, h * P, P, w->y + i * w->P);
    carry_state(k, w, h, L);
}

static void scan_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct ssm_task *k = arg;
    bool half = k->states->dtype == DT_F16;
    struct chunk w;
    chunk_init(&w, k, thread, half ? end - begin : 0);
    w.first = begin;
    if (half)
        convert_states(k, &w, begin, end, false);
    int64_t per = k->s->heads / k->s->groups;
    for (int64_t t = 0; t < k->y.rows; t += k->s->chunk) {
        int64_t L = least(k->s->chunk, k->y.rows - t);
        w.group = -1;
        for (int64_t h = begin; h < end; h++) {
            if (h / per != w.group)
                load_group(k, &w, h / per, t, L);
            scan_head(k, &w, h, t, L);
        }
    }
    if (half)
        convert_states(k, &w, begin, end, true);
}

static void fast_ssm_scan(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                          struct tensor state, uint32_t key, const struct ssm_shape *s,
                          const struct ssm_const *c)
{
    struct ssm_task k = {b, y, v, dt, &state, &key, s, c};
    int64_t per_head = y.rows * s->head_dim * s->state;
    pool_for(b->pool, s->heads, 1 + SMALL_STATE / (per_head + 1), scan_range, &k);
}
