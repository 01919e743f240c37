/* kernels.h - the fast CPU kernels, written once and compiled once for each instruction set.
 *
 * The including file defines VL (floats in a vector), MR (rows of the matrix micro-kernel) and
 * KERNELS_FILL (the function that enters these kernels into a table); it may define DOT_BF16 to a
 * function acc += a.b over pairs of bf16.
 *
 * How it gets its speed, from the plain form in ops_ref.c:
 *   - matrix products run over packed panels of 2 VL columns; an MR x 2 VL block of sums stays in
 *     registers while k runs; bf16 weights are stored in pairs, so that one load gives two values of k;
 *   - everything else is written as loops whose inner index is an output (no sum is reordered),
 *     which the compiler turns into vectors; exp and erf are polynomials, good to a few ulp;
 *   - attention keeps a block of queries, runs over the keys once, and never stores scores whole.
 * Work is split over independent outputs only: the number of threads never changes a bit.
 */
#include "ops/ops_impl.h"

#include <math.h>
#include <string.h>

enum { NR = 2 * VL };

#ifdef DOT_BF16
#define HAVE_DOT true
#else
#define HAVE_DOT               false
#define DOT_BF16(acc, pair, b) ((void)(pair), (void)(b), (acc))
#endif

typedef float vec __attribute__((vector_size(VL * 4), aligned(4)));
typedef uint32_t uvec __attribute__((vector_size(VL * 4), aligned(4)));

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* ---- scalars that vectorise ------------------------------------------------------------------- */

ALWAYS_INLINE float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

ALWAYS_INLINE uint32_t to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* Round to nearest even; a NaN stays one. */
ALWAYS_INLINE uint16_t to_bf16(float f)
{
    uint32_t u = to_bits(f), r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16 | 0x40) : r);
}

ALWAYS_INLINE float from_bf16(uint16_t h)
{
    return from_bits((uint32_t)h << 16);
}

/* e^x: x = n ln 2 + r, a polynomial for e^r, n into the exponent. */
ALWAYS_INLINE float exp_fast(float x)
{
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    float shifted = x * 1.44269504088896341f + 12582912.0f; /* the sum's low bits are round(x / ln 2) */
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693145751953125f;
    r -= n * 1.42860682030941723212e-6f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * from_bits((to_bits(shifted) + 127u - 0x4B400000u) << 23);
}

ALWAYS_INLINE float silu(float x)
{
    return x / (1.0f + exp_fast(-x));
}

/* erf by Abramowitz and Stegun 7.1.26: absolute error below 2e-7. */
ALWAYS_INLINE float gelu(float v)
{
    float x = v * 0.70710678118654752f, a = x < 0 ? -x : x;
    float t = 1.0f / (1.0f + 0.3275911f * a);
    float p = t * (0.254829592f +
                   t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    float erf = 1.0f - p * exp_fast(-a * a);
    return 0.5f * v * (1.0f + (x < 0 ? -erf : erf));
}

/* ---- rows in and out --------------------------------------------------------------------------- */

static void load_row(struct tensor t, int64_t r, int64_t c, int64_t n, float *out)
{
    if (t.dtype == DT_BF16) {
        const uint16_t *p = (const uint16_t *)t.data + r * t.stride + c;
        for (int64_t i = 0; i < n; i++)
            out[i] = from_bf16(p[i]);
    } else {
        memcpy(out, (const float *)t.data + r * t.stride + c, (size_t)n * sizeof *out);
    }
}

static void store_row(struct tensor t, int64_t r, int64_t c, int64_t n, const float *in)
{
    if (t.dtype == DT_BF16) {
        uint16_t *p = (uint16_t *)t.data + r * t.stride + c;
        for (int64_t i = 0; i < n; i++)
            p[i] = to_bf16(in[i]);
    } else {
        memcpy((float *)t.data + r * t.stride + c, in, (size_t)n * sizeof *in);
    }
}

/* ---- matrix products --------------------------------------------------------------------------- */

/* Panels of NR columns.  f32: [panel][K][NR].  bf16: [panel][K/2][NR][2], an odd K ends in a zero. */
static struct weight *fast_pack(struct backend *b, struct tensor host, enum dtype dtype)
{
    struct weight *w = xcalloc(1, sizeof *w);
    int64_t panels = (host.rows + NR - 1) / NR,
            depth = dtype == DT_BF16 ? (host.cols + 1) / 2 * 2 : host.cols;
    w->rows = host.rows;
    w->cols = host.cols;
    w->plain = b->ops->alloc(b, dtype, panels, depth * NR);
    float *row = xmalloc((size_t)host.cols, sizeof *row);
    for (int64_t n = 0; n < host.rows; n++) {
        b->ops->copy(b, (struct tensor){row, DT_F32, 1, host.cols, host.cols}, tensor_rows(host, n, 1));
        int64_t base = n / NR * depth * NR, j = n % NR;
        for (int64_t k = 0; k < host.cols; k++) {
            if (dtype == DT_BF16)
                ((uint16_t *)w->plain.data)[base + (k / 2 * NR + j) * 2 + k % 2] = to_bf16(row[k]);
            else
                ((float *)w->plain.data)[base + k * NR + j] = row[k];
        }
    }
    free(row);
    return w;
}

/* sums[m][0..1] = x[m] . panel, for m < M: f32 rows against f32 or bf16 panels. */
ALWAYS_INLINE void block_f32(const float *x, int64_t stride, const void *panel, bool bf16, int64_t depth,
                             const int M, vec sums[][2])
{
    vec acc[MR][2];
    for (int m = 0; m < M; m++)
        acc[m][0] = acc[m][1] = (vec){0};
    if (!bf16) {
        const float *b = panel;
        for (int64_t k = 0; k < depth; k++, b += NR) {
            vec b0 = *(const vec *)b, b1 = *(const vec *)(b + VL);
            for (int m = 0; m < M; m++) {
                acc[m][0] += x[m * stride + k] * b0;
                acc[m][1] += x[m * stride + k] * b1;
            }
        }
    } else {
        const uint32_t *b = panel; /* low half: even k, high half: odd k */
        for (int64_t k = 0; k < depth; k += 2, b += NR) {
            uvec p0 = *(const uvec *)b, p1 = *(const uvec *)(b + VL);
            vec e0 = (vec)(p0 << 16), e1 = (vec)(p1 << 16), o0 = (vec)(p0 & 0xffff0000u),
                o1 = (vec)(p1 & 0xffff0000u);
            for (int m = 0; m < M; m++) {
                acc[m][0] += x[m * stride + k] * e0;
                acc[m][1] += x[m * stride + k] * e1;
                acc[m][0] += x[m * stride + k + 1] * o0;
                acc[m][1] += x[m * stride + k + 1] * o1;
            }
        }
    }
    for (int m = 0; m < M; m++) {
        sums[m][0] = acc[m][0];
        sums[m][1] = acc[m][1];
    }
}

/* Pairs of bf16 on both sides, for instruction sets that multiply them. */
ALWAYS_INLINE void block_bf16(const uint16_t *x, int64_t stride, const uint32_t *b, int64_t depth,
                              const int M, vec sums[][2])
{
    vec acc[MR][2];
    for (int m = 0; m < M; m++)
        acc[m][0] = acc[m][1] = (vec){0};
    for (int64_t k = 0; k < depth; k += 2, b += NR) {
        uvec p0 = *(const uvec *)b, p1 = *(const uvec *)(b + VL);
        for (int m = 0; m < M; m++) {
            uint32_t pair;
            memcpy(&pair, x + m * stride + k, 4);
            acc[m][0] = DOT_BF16(acc[m][0], pair, p0);
            acc[m][1] = DOT_BF16(acc[m][1], pair, p1);
        }
    }
    for (int m = 0; m < M; m++) {
        sums[m][0] = acc[m][0];
        sums[m][1] = acc[m][1];
    }
}

struct product { /* one linear() */
    struct tensor y;
    const struct weight *w;
    const float *bias;
    enum epilogue epi;
    int add;
    const void *x; /* rows as f32, or as bf16 when dot is set */
    int64_t stride, depth, rows;
    bool dot;
    int64_t by_rows; /* split over rows (else over panels) */
};

/* One row of a block into y: bias, epilogue, sum, rounding. */
static void finish(const struct product *p, int64_t row, int64_t col, int64_t n, float *v)
{
    if (p->bias)
        for (int64_t j = 0; j < n; j++)
            v[j] += p->bias[col + j];
    if (p->epi == EPI_RELU2) {
        for (int64_t j = 0; j < n; j++) {
            float r = p->y.dtype == DT_BF16 ? from_bf16(to_bf16(v[j])) : v[j];
            v[j] = r > 0 ? r * r : 0;
        }
    } else if (p->epi == EPI_GELU) {
        for (int64_t j = 0; j < n; j++)
            v[j] = gelu(v[j]);
    }
    if (p->add) {
        float old[NR];
        load_row(p->y, row, col, n, old);
        for (int64_t j = 0; j < n; j++)
            v[j] = old[j] + (p->y.dtype == DT_BF16 ? from_bf16(to_bf16(v[j])) : v[j]);
    }
    store_row(p->y, row, col, n, v);
}

ALWAYS_INLINE void run_block(const struct product *p, int64_t row, int64_t panel, const int M)
{
    vec sums[MR][2];
    bool bf16 = p->w->plain.dtype == DT_BF16;
    const char *b = (const char *)p->w->plain.data + (size_t)(panel * p->w->plain.stride) * (bf16 ? 2 : 4);
    if (p->dot)
        block_bf16((const uint16_t *)p->x + row * p->stride, p->stride, (const uint32_t *)(const void *)b,
                   p->depth, M, sums);
    else if (bf16)
        block_f32((const float *)p->x + row * p->stride, p->stride, b, true, p->depth, M, sums);
    else
        block_f32((const float *)p->x + row * p->stride, p->stride, b, false, p->depth, M, sums);
    int64_t col = panel * NR, n = p->w->rows - col < NR ? p->w->rows - col : NR;
    for (int m = 0; m < M; m++)
        finish(p, row + m, col, n, (float *)&sums[m][0]);
}

static void run_rows(const struct product *p, int64_t begin, int64_t end, int64_t panel)
{
    int64_t row = begin;
    for (; row + MR <= end; row += MR)
        run_block(p, row, panel, MR);
    for (; row + 4 <= end; row += 4)
        run_block(p, row, panel, 4);
    for (; row + 2 <= end; row += 2)
        run_block(p, row, panel, 2);
    for (; row < end; row++)
        run_block(p, row, panel, 1);
}

/* Rows go through a panel in strips that stay in the cache. */
static void product_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct product *p = arg;
    int64_t panels = (p->w->rows + NR - 1) / NR;
    int64_t r0 = p->by_rows ? begin * MR : 0, r1 = p->by_rows ? end * MR : p->rows;
    int64_t p0 = p->by_rows ? 0 : begin, p1 = p->by_rows ? panels : end, strip = 16 * MR;
    r1 = r1 < p->rows ? r1 : p->rows;
    for (int64_t r = r0; r < r1; r += strip)
        for (int64_t panel = p0; panel < p1; panel++)
            run_rows(p, r, r + strip < r1 ? r + strip : r1, panel);
}

static void fast_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                        struct tensor bias, enum epilogue epi, int add)
{
    bool bf16 = w->plain.dtype == DT_BF16;
    int64_t depth = bf16 ? (x.cols + 1) / 2 * 2 : x.cols;
    if (x.cols != w->cols || y.cols != w->rows || x.rows != y.rows)
        bug("linear %lldx%lld with a matrix %lldx%lld", (long long)x.rows, (long long)x.cols,
            (long long)w->rows, (long long)w->cols);
    struct product p = {
        .y = y, .w = w, .bias = bias.data, .epi = epi, .add = add, .depth = depth, .rows = y.rows};
    void *copy = NULL;
    p.dot = HAVE_DOT && bf16 && x.dtype == DT_BF16;
    if (p.dot && depth == x.cols) {
        p.x = x.data;
        p.stride = x.stride;
    } else {
        size_t size = p.dot ? 2 : 4;
        copy = xcalloc((size_t)(x.rows * depth), size);
        struct tensor t = {copy, p.dot ? DT_BF16 : DT_F32, x.rows, depth, depth};
        b->ops->copy(b, tensor_cols(t, 0, x.cols), x);
        p.x = copy;
        p.stride = depth;
    }
    int64_t panels = (w->rows + NR - 1) / NR, blocks = (y.rows + MR - 1) / MR,
            work = y.rows * w->rows * w->cols;
    p.by_rows = blocks >= 16;
    int64_t n = p.by_rows ? blocks : panels;
    pool_for(b->pool, n, work < 100000 ? n : 1, product_range,
             &p); /* small products are not worth waking anybody */
    free(copy);
}

/* ---- norms and sums ------------------------------------------------------------------------------ */

enum { LANES = 16 };

/* Sum of f(i) with LANES running sums, added in a fixed order: vectorises, and any split of rows agrees. */
ALWAYS_INLINE float lane_sum(const float *a, const float *b, int64_t n)
{
    float lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += a[i + j] * b[i + j];
    for (int j = 0; i < n; i++, j++)
        lane[j] += a[i] * b[i];
    for (int j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

struct rows_task {
    struct tensor y, x, z, w, bias;
    float eps;
    int groups;
};

static void rmsnorm_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_task *k = arg;
    int64_t n = k->x.cols;
    float *v = xmalloc((size_t)n, sizeof *v);
    const float *w = k->w.data;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, v);
        float scale = 1.0f / sqrtf(lane_sum(v, v, n) / (float)n + k->eps);
        for (int64_t i = 0; i < n; i++)
            v[i] = w[i] * (v[i] * scale);
        store_row(k->y, r, 0, n, v);
    }
    free(v);
}

static void layernorm_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_task *k = arg;
    int64_t n = k->x.cols;
    float *v = xmalloc((size_t)n * 2, sizeof *v), *one = v + n;
    const float *w = k->w.data, *bias = k->bias.data;
    for (int64_t i = 0; i < n; i++)
        one[i] = 1;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, v);
        float mean = lane_sum(v, one, n) / (float)n;
        for (int64_t i = 0; i < n; i++)
            v[i] -= mean;
        float scale = 1.0f / sqrtf(lane_sum(v, v, n) / (float)n + k->eps);
        for (int64_t i = 0; i < n; i++)
            v[i] = v[i] * scale * w[i] + bias[i];
        store_row(k->y, r, 0, n, v);
    }
    free(v);
}

static void gated_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_task *k = arg;
    int64_t n = k->x.cols, size = n / k->groups;
    float *q = xmalloc((size_t)n * 2, sizeof *q), *z = q + n;
    const float *w = k->w.data;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->x, r, 0, n, q);
        load_row(k->z, r, 0, n, z);
        for (int64_t i = 0; i < n; i++)
            q[i] *= silu(z[i]);
        for (int64_t c = 0; c < n; c += size) {
            float scale = 1.0f / sqrtf(lane_sum(q + c, q + c, size) / (float)size + k->eps);
            for (int64_t i = c; i < c + size; i++)
                q[i] = w[i] * (q[i] * scale);
        }
        store_row(k->y, r, 0, n, q);
    }
    free(q);
}

static void add_range(void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rows_task *k = arg;
    int64_t n = k->y.cols;
    float *a = xmalloc((size_t)n * 2, sizeof *a), *b = a + n;
    for (int64_t r = begin; r < end; r++) {
        load_row(k->y, r, 0, n, a);
        load_row(k->x, r, 0, n, b);
        for (int64_t i = 0; i < n; i++)
            a[i] += b[i];
        store_row(k->y, r, 0, n, a);
    }
    free(a);
}

static void fast_rmsnorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    pool_for(b->pool, x.rows, 64, rmsnorm_range, &(struct rows_task){.y = y, .x = x, .w = w, .eps = eps});
}

static void fast_layernorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                           struct tensor bias, float eps)
{
    pool_for(b->pool, x.rows, 64, layernorm_range,
             &(struct rows_task){.y = y, .x = x, .w = w, .bias = bias, .eps = eps});
}

static void fast_gated_norm(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                            struct tensor w, int groups, float eps)
{
    pool_for(b->pool, y.rows, 32, gated_range,
             &(struct rows_task){.y = out, .x = y, .z = z, .w = w, .groups = groups, .eps = eps});
}

static void fast_add(struct backend *b, struct tensor h, struct tensor y)
{
    pool_for(b->pool, h.rows, 64, add_range, &(struct rows_task){.y = h, .x = y});
}
