/* kernels_attend.h - attention in one pass over the keys (flash attention, Dao et al. 2022); the score
 * matrix is never stored.
 *
 * A unit is the work that shares keys: one KV head of one tile (or of the one causal sequence). Its
 * queries are the rows t * group + g of the `group` query heads that use the head. Keys are processed in
 * blocks of KEYS:
 *
 *     scores   S = Q K^T           MR rows at a time, by the product of kernels_core.h
 *     softmax  P = 2^(c S - c m)   m the largest score so far; earlier sums are rescaled when m grows
 *     values   O += P V
 *
 * K is packed like a weight, V in pairs of rows. With the dot instruction Q, K, P and V are words of two
 * bf16, otherwise f32. 8-bit rows (kv8.h) are dequantized to the type of those words while packing, which
 * is exact. A unit used by several blocks of queries is packed once for all of them, otherwise block by
 * block. Blocks of keys start at fixed positions, so a query's result does not depend on the other queries
 * of the call. */
#pragma once

#include "ops/kernels_core.h"
#include "ops/kernels_quant.h"
#include "ops/kv8.h"

enum {
    KEYS = 256,               /* keys per block */
    QUERIES = 4 * MR,         /* rows per block of queries */
    PACKED_BYTES = 32 << 20,  /* bytes of keys and values packed at once */
    SMALL_ATTENTION = 100000, /* multiplications not worth waking a thread for */
};

struct attention {
    struct backend *b;
    struct tensor y, q, k, v;
    const struct tensor *ks, *vs; /* KV cache of each session, one query each; NULL: k and v */
    int64_t units, heads;         /* units = tiles * heads */
    int64_t n, keys;              /* queries and keys per tile */
    int64_t past;                 /* query t attends to past + t + 1 keys; -1: to all */
    int64_t group, d;             /* query heads per KV head, width of a head */
    bool pair;                    /* words hold two bf16 */
    bool quantized;               /* 8-bit KV cache: rows of kv8.h */
    int64_t dw, dp;               /* words per query or key, padded width of a value */
    int64_t block, blocks;        /* words per packed block, blocks per unit */
    uint32_t *packed;             /* units starting with `first`; NULL: packed block by block */
    int64_t first, last;          /* units of this round */
};

/* The keys of one unit. */
struct sequence {
    struct tensor k, v;
    int64_t keys, past;
};

static struct sequence sequence_of(const struct attention *a, int64_t unit)
{
    int64_t i = unit / a->heads;
    if (a->ks)
        return (struct sequence){a->ks[i], a->vs[i], a->ks[i].rows, a->ks[i].rows - 1};
    return (struct sequence){tensor_rows(a->k, i * a->keys, a->keys), tensor_rows(a->v, i * a->keys, a->keys),
                             a->keys, a->past};
}

/* ---- packing ------------------------------------------------------------------------------------------- */

/* Number of rows to prefetch ahead, also beyond the last one: the rows of one head in a cache are too far
 * apart for the hardware prefetcher. */
enum { AHEAD = 48 };

ALWAYS_INLINE void prefetch_rows(struct tensor t, int64_t r, int64_t n, int64_t col, int64_t cols)
{
    if (t.dtype == DT_F8E4M3)
        for (int64_t i = 0; i < n; i++) {
            const char *row = (const char *)t.data + (r + AHEAD + i) * t.stride + col;
            for (int64_t at = 0; at < cols; at += 64)
                __builtin_prefetch(row + at);
        }
    else
        for (int64_t i = 0; i < n; i++)
            prefetch_columns(t, r + AHEAD + i, col, cols);
}

/* Returns the scratch words for dequantized rows of one head. */
ALWAYS_INLINE int64_t dequantized_words(const struct attention *a)
{
    return a->quantized ? VL * padded(a->d) : 0;
}

/* Dequantizes the columns of `head` in at most VL rows of kv8.h into `scratch`. */
static struct tensor dequantize_rows(const struct attention *a, struct tensor t, int64_t head,
                                     uint32_t *scratch)
{
    int64_t ld = padded(a->d), at = head * a->d, factor_at = a->heads * a->d + head;
    struct tensor out = {scratch, a->pair ? DT_BF16 : DT_F32, t.rows, a->d, ld};
    for (int64_t r = 0; r < t.rows; r++) {
        const uint8_t *row = (const uint8_t *)t.data + r * t.stride;
        vec by = splat(kv8_factor(row[factor_at]) * 256); /* wide_value returns 2^-8 of the value */
        char *to = element(out, r, 0);
        for (int64_t c = 0; c < a->d; c += VL) {
            char part[VL] = {0};
            memcpy(part, row + at + c, (size_t)least(VL, a->d - c));
            store_vec(to + c * (a->pair ? 2 : 4), a->pair, wide_value(part, QUANT_F8) * by);
        }
    }
    return out;
}

/* Returns rows [r, r + n), n <= VL, of a head, dequantized if needed. */
static struct tensor rows_of_head(const struct attention *a, struct tensor t, int64_t head, int64_t r,
                                  int64_t n, uint32_t *scratch)
{
    struct tensor rows = tensor_rows(t, r, n);
    prefetch_rows(t, r, n, head * a->d, a->d);
    return a->quantized ? dequantize_rows(a, rows, head, scratch) : tensor_cols(rows, head * a->d, a->d);
}

/* Packs block j of a unit: [KEYS / NR panels][dw][NR] keys, then [KEYS words][dp] values. */
static void pack_keys(const struct attention *a, int64_t unit, int64_t j, uint32_t *out, uint32_t *scratch)
{
    const struct sequence s = sequence_of(a, unit);
    int64_t first = j * KEYS, n = least(KEYS, s.keys - first), head = unit % a->heads;
    for (int64_t i = 0; i < n; i += VL)
        pack_rows(out + i / NR * NR * a->dw + i % NR, NR,
                  rows_of_head(a, s.k, head, first + i, least(VL, n - i), scratch), a->pair);
    for (int64_t i = 0; i < n; i += VL)
        pack_columns(out + KEYS * a->dw + (a->pair ? i / 2 : i) * a->dp, a->dp,
                     rows_of_head(a, s.v, head, first + i, least(VL, n - i), scratch), a->pair);
}

static void pack_units(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct attention *a = arg;
    uint32_t *scratch = a->quantized ? cpu_scratch(a->b, thread, (size_t)dequantized_words(a) * WORD) : NULL;
    for (int64_t i = begin; i < end; i++)
        pack_keys(a, a->first + i / a->blocks, i % a->blocks, a->packed + i * a->block, scratch);
}

/* ---- one block of queries ------------------------------------------------------------------------------ */

struct queries {      /* scratch of one thread */
    uint32_t *q;      /* [QUERIES][ldq] */
    float *out;       /* [QUERIES][dp] */
    float *s;         /* [MR][KEYS] scores */
    uint32_t *p;      /* [MR][KEYS words] their exponentials */
    uint32_t *packed; /* one block of keys if packed block by block, then dequantized_words() */
    uint32_t *scratch;
    vec most[4], sum[4]; /* lane i of [r]: row r * MR + i */
    int64_t ldq;
};

static void queries_init(struct queries *w, const struct attention *a, int thread)
{
    w->ldq = padded(a->dw);
    int64_t words =
        QUERIES * (w->ldq + a->dp) + 2 * MR * KEYS + (a->packed ? 0 : a->block + dequantized_words(a));
    w->q = cpu_scratch(a->b, thread, (size_t)words * WORD);
    w->out = (float *)w->q + QUERIES * w->ldq;
    w->s = w->out + QUERIES * a->dp;
    w->p = (uint32_t *)w->s + MR * KEYS;
    w->packed = w->p + MR * KEYS;
    w->scratch = w->packed + a->block;
}

/* Loads rows [row, row + n) of a unit as words. */
static void load_queries(const struct attention *a, struct queries *w, int64_t unit, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t t = unit / a->heads * a->n + (row + i) / a->group;
        int64_t c = (unit % a->heads * a->group + (row + i) % a->group) * a->d;
        uint32_t *to = w->q + i * w->ldq;
        if (a->pair) {
            to[a->dw - 1] = 0;
            memcpy(to, element(a->q, t, c), (size_t)a->d * 2);
        } else {
            load_row(a->q, t, c, a->d, (float *)to);
        }
    }
    memset(w->out, 0, (size_t)(n * a->dp) * sizeof *w->out);
    for (int r = 0; r < 4; r++) {
        w->most[r] = splat(-INFINITY);
        w->sum[r] = (vec){0};
    }
}

/* Computes S for `rows` <= MR rows against n keys. */
static void score(const struct attention *a, const struct queries *w, const uint32_t *q, int64_t rows,
                  const uint32_t *keys, int64_t n)
{
    struct matrix left = {q, w->ldq, 1};
    for (int64_t s = 0; s < n; s += NR) {
        if (a->pair)
            product_pair(w->s + s, KEYS, left, keys + s * a->dw, NR, rows, a->dw, NR, FROM_ZERO);
        else
            product_f32(w->s + s, KEYS, left, keys + s * a->dw, NR, rows, a->dw, NR, FROM_ZERO);
    }
}

static void gather_values(const struct attention *a, const struct queries *w, float *out, int64_t rows,
                          const uint32_t *values, int64_t n)
{
    struct matrix left = {w->p, KEYS, 1};
    if (a->pair)
        product_pair(out, a->dp, left, values, a->dp, rows, ceil_div(n, 2), a->dp, FROM_SUM);
    else
        product_f32(out, a->dp, left, values, a->dp, rows, n, a->dp, FROM_SUM);
}

/* Returns the largest score of each row, one row per lane. */
static vec row_maxima(const float *s, int64_t rows, int64_t n)
{
    uvec r[VL];
    for (int64_t i = 0; i < VL; i++) {
        vec most = splat(-INFINITY);
        for (int64_t j = 0; i < rows && j < n; j += VL)
            most = VEC_MAX(most, *(const vec_at *)(s + i * KEYS + j));
        r[i] = (uvec)most;
    }
    transpose(r);
    vec most = (vec)r[0];
    for (int i = 1; i < VL; i++)
        most = VEC_MAX(most, (vec)r[i]);
    return most;
}

/* Computes P of one row. Returns the lanes of the sum of the rounded values, so that the weights sum to
 * exactly one. */
ALWAYS_INLINE vec exponentials(const float *s, uint32_t *p, int64_t n, float c, float most, const bool pair)
{
    vec sum = {0}, by = splat(c), at = splat(c * most);
    for (int64_t j = 0; j < n; j += VL) {
        vec e = exp2_vec(*(const vec_at *)(s + j) * by - at, pair);
        if (pair) {
            hvec h = vec_to_bf16(e);
            *(hvec_at *)((uint16_t *)p + j) = h;
            e = vec_from_bf16(h);
        } else {
            *(vec_at *)(p + j) = e;
        }
        sum += e;
    }
    return sum;
}

/* Converts scores to weights and rescales earlier sums (online softmax). limit[i] <= n keys are visible to
 * row i. */
static void softmax_rows(const struct attention *a, struct queries *w, int64_t r, int64_t rows, int64_t n,
                         const int64_t *limit)
{
    int64_t whole = padded(n);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = limit[i]; j < whole; j++)
            w->s[i * KEYS + j] = -INFINITY;
    float c = 1.44269504f / sqrtf((float)a->d);
    vec most = VEC_MAX(w->most[r], row_maxima(w->s, rows, whole));
    vec scale = exp2_vec((w->most[r] - most) * splat(c), false);
    uvec sums[VL];
    for (int64_t i = 0; i < VL; i++) {
        sums[i] = (uvec){0};
        if (i >= rows)
            continue;
        const float *s = w->s + i * KEYS;
        uint32_t *p = w->p + i * KEYS;
        sums[i] = (uvec)(a->pair ? exponentials(s, p, whole, c, most[i], true)
                                 : exponentials(s, p, whole, c, most[i], false));
        float *out = w->out + (r * MR + i) * a->dp;
        for (int64_t k = 0; k < a->dp; k += VL)
            *(vec_at *)(out + k) *= splat(scale[i]);
    }
    transpose(sums);
    vec sum = (vec)sums[0];
    for (int i = 1; i < VL; i++)
        sum += (vec)sums[i];
    w->sum[r] = w->sum[r] * scale + sum;
    w->most[r] = most;
}

static void store_queries(const struct attention *a, struct queries *w, int64_t unit, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t t = unit / a->heads * a->n + (row + i) / a->group;
        int64_t c = (unit % a->heads * a->group + (row + i) % a->group) * a->d;
        float *out = w->out + i * a->dp;
        vec by = splat(1.0f / w->sum[i / MR][i % MR]);
        for (int64_t k = 0; k < a->dp; k += VL)
            *(vec_at *)(out + k) *= by;
        store_row(a->y, t, c, a->d, out);
    }
}

static void attend_queries(const struct attention *a, struct queries *w, int64_t unit, int64_t row, int64_t n)
{
    const struct sequence of = sequence_of(a, unit);
    int64_t stop = of.past < 0 ? of.keys : of.past + (row + n - 1) / a->group + 1;
    load_queries(a, w, unit, row, n);
    for (int64_t s = 0; s < stop; s += KEYS) {
        int64_t keys = least(KEYS, stop - s);
        const uint32_t *block = w->packed;
        if (a->packed)
            block = a->packed + ((unit - a->first) * a->blocks + s / KEYS) * a->block;
        else
            pack_keys(a, unit, s / KEYS, w->packed, w->scratch);
        for (int64_t r = 0; r * MR < n; r++) {
            int64_t rows = least(MR, n - r * MR), limit[MR];
            for (int64_t i = 0; i < rows; i++) {
                int64_t sees = of.past < 0 ? keys : of.past + (row + r * MR + i) / a->group + 1 - s;
                limit[i] = sees < 0 ? 0 : least(sees, keys);
            }
            score(a, w, w->q + r * MR * w->ldq, rows, block, keys);
            softmax_rows(a, w, r, rows, keys, limit);
            gather_values(a, w, w->out + r * MR * a->dp, rows, block + KEYS * a->dw, keys);
        }
    }
    store_queries(a, w, unit, row, n);
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* Alternates blocks of queries from both ends of a unit, because late ones attend to more keys, so that
 * every thread gets some of both. In a batch every thread gets some heads of each session. */
static void attend_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct attention *a = arg;
    int64_t rows = a->n * a->group, blocks = ceil_div(rows, QUERIES), sessions = a->units / a->heads;
    struct queries w;
    queries_init(&w, a, thread);
    for (int64_t item = begin; item < end; item++) {
        int64_t i = item % blocks, at = i % 2 ? blocks - 1 - i / 2 : i / 2, unit = a->first + item / blocks;
        if (a->ks)
            unit = unit % sessions * a->heads + unit / sessions;
        attend_queries(a, &w, unit, at * QUERIES, least(QUERIES, rows - at * QUERIES));
    }
}

static void run_attention(struct attention *a)
{
    a->quantized = a->k.dtype == DT_F8E4M3;
    a->pair = HAS_DOT && a->q.dtype == DT_BF16 &&
              (a->quantized || (a->k.dtype == DT_BF16 && a->v.dtype == DT_BF16));
    a->dw = a->pair ? ceil_div(a->d, 2) : a->d;
    a->dp = padded(a->d);
    a->block = KEYS * (a->dw + a->dp);
    a->blocks = ceil_div(a->keys, KEYS);
    int64_t queries = ceil_div(a->n * a->group, QUERIES), round = a->units;
    bool share = queries > 1 && !a->ks;
    if (share)
        round = least(a->units, 1 + PACKED_BYTES / (a->block * a->blocks * WORD));
    int64_t work = least(QUERIES, a->n * a->group) * a->keys * a->d;
    for (a->first = 0; a->first < a->units; a->first = a->last) {
        a->last = least(a->units, a->first + round);
        int64_t units = a->last - a->first, blocks = units * a->blocks;
        if (share) {
            a->packed = cpu_scratch(a->b, SHARED_SCRATCH, (size_t)(blocks * a->block) * WORD);
            pool_for(a->b->pool, blocks, 1 + SMALL_ATTENTION / (KEYS * a->d), pack_units, a);
        }
        pool_for(a->b->pool, units * queries, 1 + SMALL_ATTENTION / (work + 1), attend_range, a);
    }
}

static void fast_attend_tokens(struct backend *b, struct tensor y, struct tensor q, struct tensor k,
                               struct tensor v, int q_heads, int kv_heads, int64_t past)
{
    struct attention a = {.b = b, .y = y, .q = q, .k = k, .v = v, .past = past};
    a.units = a.heads = kv_heads;
    a.n = q.rows;
    a.keys = past + q.rows;
    a.group = q_heads / kv_heads;
    a.d = q.cols / q_heads;
    run_attention(&a);
}

static void fast_attend_batch(struct backend *b, struct tensor y, struct tensor q, const struct tensor *ks,
                              const struct tensor *vs, int q_heads, int kv_heads)
{
    struct attention a = {.b = b, .y = y, .q = q, .k = ks[0], .v = vs[0], .ks = ks, .vs = vs};
    a.heads = kv_heads;
    a.units = q.rows * kv_heads;
    a.n = 1;
    for (int64_t i = 0; i < q.rows; i++)
        a.keys = ks[i].rows > a.keys ? ks[i].rows : a.keys;
    a.group = q_heads / kv_heads;
    a.d = q.cols / q_heads;
    run_attention(&a);
}

static void fast_attend_tiles(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles)
{
    struct attention a = {.b = b, .y = y, .past = -1, .group = 1, .heads = heads};
    a.q = tensor_cols(qkv, 0, y.cols);
    a.k = tensor_cols(qkv, y.cols, y.cols);
    a.v = tensor_cols(qkv, 2 * y.cols, y.cols);
    a.units = (int64_t)tiles * heads;
    a.n = a.keys = y.rows / tiles;
    a.d = y.cols / heads;
    run_attention(&a);
}
