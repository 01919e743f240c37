/* kernels_linear.h - matrix products y = epi(x W^T + bias): packed panels, sums of a block in registers.
 *
 * Weights are packed once into panels of NR output columns, word k of all NR columns together. A block is
 * MR rows of x against one panel; its MR x NR sums stay in registers while k runs. The loops around it:
 *
 *     strip   STRIP rows of x and PANELS panels, one work item of a thread
 *     depth   DEPTH words of k at a time, so that a panel's slice stays in the L2 cache while all blocks of
 *             the strip use it; the sums are kept in a tile of f32. A shorter slice would repeat the prologue
 *             and epilogue of a block more often
 *     chunk   rows of x packed at once (MR rows interleaved); short or narrow x is read in place
 *
 * A single row is multiplied with four panels at once: fewer sums would not hide the latency of additions.
 * A borrowed weight has its rows in file order: a panel's slice is gathered when it is needed and used for
 * as many rows of x as possible (BORROWED_STRIP). Without a dot instruction bf16 panels are converted to
 * f32: during the product for few rows, otherwise slice by slice. */
#pragma once

#include "ops/kernels_core.h"

enum {
    STRIP = 8 * MR,
    BORROWED_STRIP = 48 * MR,
    GROUP = 4,  /* panels at once for one row */
    PANELS = 2, /* panels per item, for several rows */
    DEPTH = 1280,
    GATHERED = 256, /* DEPTH of a borrowed weight */
    CHUNK_BYTES = 8 << 20,
    IN_PLACE = 2560,       /* words per row up to which x is not packed */
    FEW_ROWS = 4,          /* rows up to which converting during the product is cheaper */
    SMALL_PRODUCT = 200000 /* multiplications not worth waking a thread for */
};

/* ---- weights ------------------------------------------------------------------------------------------- */

struct packing {
    struct tensor host;
    struct weight *w;
    struct backend *b;
};

/* Packs panels of [words][NR]; rows past the last stay zero. */
static void pack_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *p = arg;
    const bool pair = p->w->plain.dtype == DT_BF16, plain = p->host.dtype == p->w->plain.dtype;
    int64_t cols = p->host.cols;
    struct tensor scratch = {NULL, p->w->plain.dtype, VL, cols, cols};
    if (!plain)
        scratch.data = cpu_scratch(p->b, thread, (size_t)(VL * cols) * dtype_size(scratch.dtype));
    for (int64_t half = 2 * begin; half < 2 * end; half++) {
        int64_t n = least(VL, p->w->rows - half * VL);
        if (n <= 0)
            continue;
        struct tensor rows = tensor_rows(p->host, half * VL, n);
        if (!plain) {
            scratch.rows = n;
            tensor_convert(scratch, rows);
            rows = scratch;
        }
        char *panel = (char *)p->w->plain.data + half / 2 * p->w->words * NR * WORD;
        pack_rows((uint32_t *)(void *)panel + half % 2 * VL, NR, rows, pair);
    }
}

static struct weight *fast_pack(struct backend *b, struct tensor host, enum dtype dtype)
{
    struct weight *w = xcalloc(1, sizeof *w);
    w->rows = host.rows;
    w->cols = host.cols;
    w->words = dtype == DT_BF16 ? ceil_div(host.cols, 2) : host.cols;
    int64_t panels = ceil_div(host.rows, NR), per_word = dtype == DT_BF16 ? 2 : 1;
    w->plain = b->ops->alloc(b, dtype, panels, w->words * NR * per_word);
    struct packing p = {host, w, b};
    pool_for(b->pool, panels, 1 + SMALL_PRODUCT / (host.cols * NR + 1), pack_range, &p);
    return w;
}

/* ---- one block ----------------------------------------------------------------------------------------- */

struct linear {
    struct backend *b;
    struct tensor y;
    const struct weight *w;
    const float *bias;
    enum epilogue epi;
    bool add, bf16; /* bf16: y's type */
    enum factor kind;
    struct matrix x;       /* words */
    int64_t block;         /* words from one block of MR rows of x to the next */
    int64_t row0, rows;    /* rows of y in this chunk */
    int64_t words;         /* depth in words of x: f32 or pairs of bf16 */
    int64_t strip;         /* rows per strip */
    int64_t strips, group; /* items: groups of `group` panels times strips */
};

/* Finishes one vector of a row: bias, epilogue, accumulation, rounding. */
ALWAYS_INLINE void finish_vec(const struct linear *p, void *y, const float *bias, vec v, const bool bf16)
{
    if (bias)
        v += *(const vec_at *)bias;
    if (p->epi == EPI_RELU2) {
        v = VEC_MAX(splat(0.0f), bf16 ? vec_from_bf16(vec_to_bf16(v)) : v);
        v *= v;
    } else if (p->epi == EPI_GELU) {
        v = gelu_vec(v);
    } else if (p->epi == EPI_GELU_TANH) {
        v = gelu_tanh_vec(v);
    }
    if (p->add)
        v = load_vec(y, bf16) + (bf16 ? vec_from_bf16(vec_to_bf16(v)) : v);
    store_vec(y, bf16, v);
}

/* Finishes a last panel with fewer than NR columns, through a padded copy. */
static void finish_edge(const struct linear *p, char *y, const float *bias, int64_t n, const vec_at *v)
{
    const int64_t size = p->bf16 ? 2 : 4;
    uint32_t scratch[NR] = {0};
    float few[NR] = {0};
    memcpy(scratch, y, (size_t)(n * size));
    if (bias)
        memcpy(few, bias, (size_t)n * sizeof *few);
    for (int j = 0; j < 2; j++) {
        char *at = (char *)scratch + j * VL * size;
        if (p->bf16)
            finish_vec(p, at, bias ? few + j * VL : NULL, v[j], true);
        else
            finish_vec(p, at, bias ? few + j * VL : NULL, v[j], false);
    }
    memcpy(y, scratch, (size_t)(n * size));
}

static void finish_rows(const struct linear *p, int64_t row, int64_t panel, const vec_at *sums, int M)
{
    int64_t col = panel * NR, n = least(NR, p->w->rows - col);
    const float *bias = p->bias ? p->bias + col : NULL;
    for (int m = 0; m < M; m++, sums += 2) {
        char *y = element(p->y, p->row0 + row + m, col);
        if (n < NR) {
            finish_edge(p, y, bias, n, sums);
        } else if (p->bf16) {
            finish_vec(p, y, bias, sums[0], true);
            finish_vec(p, y + VL * 2, bias ? bias + VL : NULL, sums[1], true);
        } else {
            finish_vec(p, y, bias, sums[0], false);
            finish_vec(p, y + VL * 4, bias ? bias + VL : NULL, sums[1], false);
        }
    }
}

struct slice { /* words [k, k + n) of a panel */
    const char *at;
    int64_t k, n;
    bool last;
};

/* Multiplies rows [begin, end) of the chunk by a slice. `begin` is the first row of a block. */
static void run_rows(const struct linear *p, int64_t begin, int64_t end, int64_t panel, struct slice s,
                     float *tile, enum factor kind)
{
    const int64_t per = kind == WIDE ? 2 : 1; /* words of x per word of the panel */
    enum start start = s.k ? FROM_SUM : FROM_ZERO;
    for (int64_t row = begin; row < end; row += MR, tile += MR * NR) {
        int64_t n = least(MR, end - row), at = row / MR * p->block + s.k * per * p->x.step;
        struct matrix x = {(const char *)p->x.at + at * WORD, p->x.row, p->x.step * per};
        if (kind == PAIR)
            product_pair(tile, NR, x, s.at, NR, n, s.n, NR, start);
        else if (kind == F32)
            product_f32(tile, NR, x, s.at, NR, n, s.n, NR, start);
        else
            product_wide(tile, NR, x, s.at, NR, n, s.n, NR, start);
        if (s.last)
            finish_rows(p, row, panel, (const vec_at *)tile, (int)n);
    }
}

/* ---- blocks over strips -------------------------------------------------------------------------------- */

static const char *panel_at(const struct linear *p, int64_t panel)
{
    return (const char *)p->w->plain.data + panel * p->w->words * NR * WORD;
}

/* Gathers words [k, k + n) of VL whole rows as [n][NR]. The rows are too far apart for the hardware
 * prefetcher, so each is prefetched one slice ahead. */
OWN_FUNCTION void gather_rows_whole(const char *at, int64_t row_bytes, int64_t n, uint32_t *out)
{
    for (int64_t i = 0; i < n; i += VL, at += VL * WORD, out += VL * NR) {
        uvec r[VL];
        UNROLL for (int j = 0; j < VL; j++)
        {
            r[j] = *(const uvec_at *)(at + j * row_bytes);
            __builtin_prefetch(at + j * row_bytes + (int64_t)GATHERED * WORD);
        }
        transpose(r);
        UNROLL for (int j = 0; j < VL; j++)
        {
            *(uvec_at *)(out + j * NR) = r[j];
        }
    }
}

/* Gathers words [k, k + n) of a panel of a borrowed weight as [n][NR]. */
static void gather_panel(const struct linear *p, int64_t panel, int64_t k, int64_t n, uint32_t *out)
{
    const struct weight *w = p->w;
    const bool pair = w->plain.dtype == DT_BF16;
    int64_t first = pair ? 2 * k : k, cols = least(pair ? 2 * n : n, w->cols - first);
    struct tensor part = tensor_cols(w->plain, first, cols);
    for (int64_t half = 0; half < 2; half++) {
        int64_t row = least(panel * NR + half * VL, w->rows);
        struct tensor rows = tensor_rows(part, row, least(VL, w->rows - row));
        if (rows.rows == VL && n % VL == 0 && cols == (pair ? 2 * n : n))
            gather_rows_whole(rows.data, rows.stride * (pair ? 2 : 4), n, out + half * VL);
        else
            pack_rows(out + half * VL, NR, rows, pair);
    }
}

static const char *slice_at(const struct linear *p, int64_t panel, int64_t k, int64_t n, uint32_t *scratch)
{
    if (!p->w->borrowed)
        return panel_at(p, panel) + k * NR * WORD;
    gather_panel(p, panel, k, n, scratch);
    return (const char *)scratch;
}

/* Converts a slice of a bf16 panel to f32: [2 n][NR]. */
static void dequantize_slice(struct slice *s, float *scratch)
{
    const uint32_t *from = (const uint32_t *)(const void *)s->at;
    float *to = scratch;
    for (int64_t k = 0; k < s->n; k++, from += NR, to += 2 * NR)
        for (int j = 0; j < NR; j += VL) {
            uvec u = *(const uvec_at *)(from + j);
            *(vec_at *)(to + j) = (vec)(u << 16);
            *(vec_at *)(to + NR + j) = (vec)(u & 0xffff0000u);
        }
    *s = (struct slice){(const char *)scratch, 2 * s->k, 2 * s->n, s->last};
}

static void run_slice(const struct linear *p, int64_t begin, int64_t end, int64_t panel, struct slice s,
                      float *tile, float *scratch)
{
    if (p->kind == PAIR)
        run_rows(p, begin, end, panel, s, tile, PAIR);
    else if (p->kind == F32)
        run_rows(p, begin, end, panel, s, tile, F32);
    else if (p->x.step == 1 && end - begin <= FEW_ROWS)
        run_rows(p, begin, end, panel, s, tile, WIDE);
    else {
        dequantize_slice(&s, scratch);
        run_rows(p, begin, end, panel, s, tile, F32);
    }
}

static void product_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct linear *p = arg;
    int64_t words = p->w->words, panels = ceil_div(p->w->rows, NR), most = p->w->borrowed ? GATHERED : DEPTH,
            depth = p->kind == WIDE ? most / 2 : most;
    float *tiles = cpu_scratch(p->b, thread, (size_t)(PANELS * p->strip + 2 * DEPTH) * NR * sizeof *tiles);
    float *scratch = tiles + PANELS * p->strip * NR;
    uint32_t *gathered = (uint32_t *)(void *)(scratch + (size_t)DEPTH * NR);
    for (int64_t item = begin; item < end; item++) {
        int64_t p0 = item / p->strips * p->group, p1 = least(p0 + p->group, panels);
        int64_t r0 = item % p->strips * p->strip, r1 = least(r0 + p->strip, p->rows);
        for (int64_t k = 0; k < words; k += depth) {
            int64_t n = least(depth, words - k);
            for (int64_t panel = p0; panel < p1; panel++) {
                struct slice s = {slice_at(p, panel, k, n, gathered), k, n, k + n == words};
                run_slice(p, r0, r1, panel, s, tiles + (panel - p0) * p->strip * NR, scratch);
            }
        }
    }
}

/* ---- one row ------------------------------------------------------------------------------------------- */

ALWAYS_INLINE void run_vector(const struct linear *p, int64_t panel, const enum factor kind)
{
    vec acc[2 * GROUP], sums[2 * GROUP];
    UNROLL for (int i = 0; i < 2 * GROUP; i++) acc[i] = (vec){0};
    multiply(acc, 1, 2 * GROUP, kind, p->x.at, 0, (kind == WIDE ? 2 : 1) * WORD, panel_at(p, panel),
             NR * WORD, p->w->words * NR * WORD, p->w->words);
    UNROLL for (int i = 0; i < 2 * GROUP; i++) sums[i] = acc[i];
    for (int i = 0; i < GROUP; i++)
        finish_rows(p, 0, panel + i, sums + 2 * i, 1);
}

/* Multiplies one row with panels [begin, end). scratch: for a slice of a borrowed weight's panel, else
 * NULL. */
ALWAYS_INLINE void run_vectors(const struct linear *p, int64_t begin, int64_t end, uint32_t *scratch,
                               const enum factor kind)
{
    const int64_t words = p->w->words, depth = scratch ? GATHERED : words;
    float tile[NR];
    int64_t panel = begin;
    for (; !scratch && panel + GROUP <= end; panel += GROUP)
        run_vector(p, panel, kind);
    for (; panel < end; panel++)
        for (int64_t k = 0; k < words; k += depth) {
            int64_t n = least(depth, words - k);
            struct slice s = {slice_at(p, panel, k, n, scratch), k, n, k + n == words};
            run_rows(p, 0, 1, panel, s, tile, kind);
        }
}

static void vector_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct linear *p = arg;
    uint32_t *scratch = NULL;
    if (p->w->borrowed)
        scratch = cpu_scratch(p->b, thread, (size_t)GATHERED * NR * WORD);
    if (p->kind == PAIR)
        run_vectors(p, begin, end, scratch, PAIR);
    else if (p->kind == F32)
        run_vectors(p, begin, end, scratch, F32);
    else
        run_vectors(p, begin, end, scratch, WIDE);
}

/* ---- linear -------------------------------------------------------------------------------------------- */

struct gathering {
    struct tensor x;
    uint32_t *out;
    int64_t block, words;
    bool pair;
};

/* Packs blocks of MR rows: word k of the MR rows together. */
static void interleave_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct gathering *g = arg;
    for (int64_t i = begin; i < end; i++) {
        uint32_t *out = g->out + i * g->block;
        pack_rows(out, MR, tensor_rows(g->x, i * MR, least(MR, g->x.rows - i * MR)), g->pair);
        if (!g->pair && g->words > g->x.cols) /* pads an odd number of columns */
            memset(out + g->x.cols * MR, 0, MR * WORD);
    }
}

/* Packs rows as row-major words. */
static void gather_rows(const struct gathering *g)
{
    memset(g->out, 0, (size_t)(g->x.rows * g->block) * WORD);
    for (int64_t r = 0; r < g->x.rows; r++) {
        if (g->pair)
            memcpy(g->out + r * g->block, element(g->x, r, 0), (size_t)g->x.cols * 2);
        else
            load_row(g->x, r, 0, g->x.cols, (float *)g->out + r * g->block);
    }
}

/* Packs a chunk of rows as words, or uses them in place if that is as fast. */
static void take_rows(struct linear *p, struct tensor x, bool in_place)
{
    const bool pair = p->kind == PAIR, few = x.rows <= FEW_ROWS;
    int64_t row = pair ? x.stride / 2 : x.stride, blocks = ceil_div(x.rows, MR);
    p->rows = x.rows;
    if (in_place) {
        p->x = (struct matrix){x.data, row, 1};
        p->block = MR * row;
        return;
    }
    struct gathering g = {x, NULL, few ? padded(p->words) : p->words * MR + VL, p->words, pair};
    g.out = cpu_scratch(p->b, SHARED_SCRATCH, (size_t)((few ? x.rows : blocks) * g.block) * WORD);
    if (few)
        gather_rows(&g);
    else
        pool_for(p->b->pool, blocks, 1 + SMALL_PRODUCT / 4 / g.block, interleave_range, &g);
    p->x = few ? (struct matrix){g.out, g.block, 1} : (struct matrix){g.out, 1, MR};
    p->block = few ? MR * g.block : g.block;
}

/* Runs a chunk: a single row panel by panel (with `vectors`), otherwise items of a strip of rows and at
 * most `most` panels, few enough to occupy every thread. arg contains p. */
static void spread_chunk(struct linear *p, int64_t strip, int64_t most, pool_fn *vectors, pool_fn *products,
                         void *arg)
{
    struct pool *pool = p->b->pool;
    int64_t panels = ceil_div(p->w->rows, NR), per_panel = p->w->cols * NR; /* multiplications */
    if (p->rows == 1 && vectors) {
        pool_for(pool, panels, 1 + SMALL_PRODUCT / (per_panel + 1), vectors, arg);
        return;
    }
    p->strips = ceil_div(p->rows, strip);
    p->group = most;
    while (p->group > 1 && ceil_div(panels, p->group) * p->strips < 4 * (int64_t)pool_threads(pool))
        p->group /= 2;
    int64_t per_item = per_panel * p->group * p->rows / p->strips;
    pool_for(pool, ceil_div(panels, p->group) * p->strips, 1 + SMALL_PRODUCT / (per_item + 1), products, arg);
}

static void fast_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                        struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    const bool bf16 = w->plain.dtype == DT_BF16;
    struct linear p = {.b = b, .y = y, .w = w, .bias = bias.data, .epi = epi, .add = mode == ADD};
    p.bf16 = y.dtype == DT_BF16;
    p.strip = w->borrowed ? BORROWED_STRIP : STRIP;
    p.kind = !bf16 ? F32 : HAS_DOT && x.dtype == DT_BF16 ? PAIR : WIDE;
    p.words = p.kind == WIDE ? 2 * w->words : w->words;
    /* whole words of the required type, and no more than fits in the cache at any stride */
    bool readable =
        p.kind == PAIR ? x.cols % 2 == 0 && x.stride % 2 == 0 : x.dtype == DT_F32 && p.words == x.cols;
    bool in_place = readable && (x.rows <= 8 || p.words <= IN_PLACE);
    int64_t chunk = in_place ? x.rows : ceil_div(CHUNK_BYTES / WORD / p.words, STRIP) * STRIP;
    for (int64_t r = 0; r < x.rows; r += chunk) {
        p.row0 = r;
        take_rows(&p, tensor_rows(x, r, least(chunk, x.rows - r)), in_place);
        spread_chunk(&p, p.strip, PANELS, vector_range, product_range, &p);
    }
    cpu_weight_read(w);
}
