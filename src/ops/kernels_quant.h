/* kernels_quant.h - products with quantized matrices (quant.h): like kernels_linear.h, but reading a quarter
 * to a half of the bytes.
 *
 * Only the weights are quantized.  Their values are exact in bf16, so a panel's slice is expanded to
 * the values of a packed bf16 panel, on its way to the registers (one row) or in the L1 cache (more rows),
 * and the same products follow; activations are not rounded any further.  A group's scale is applied
 * when its sum is complete, the column's at the end.
 *
 * kernels_bytes.h multiplies integers where activations are quantized; this file serves e4m3, f32 activations
 * and, without a dot product of bytes, bf16 activations.
 *
 * Bytes are ordered as quant_panels says, with NR columns to a panel.  Every sum runs in one accumulator
 * (one for each group) whatever the number of rows, so a token has the same bits alone and in a batch.
 */
#pragma once

#include "ops/kernels_blocks.h"
#include "ops/kernels_core.h"
#include "ops/kernels_linear.h"
#include "ops/kernels_order.h"

enum {
    QUANTIZED_DEPTH = 256,                      /* k per slice, a multiple of all groups */
    QUANTIZED_STRIP = 8 * MR,                   /* rows that share a dequantized slice */
    QUANTIZED_PANELS = REGISTERS == 32 ? 4 : 2, /* panels per work item, and at once for a single row */
    QUANTIZED_FEW = 4,                          /* rows up to which x is not interleaved */
    SMALL_CHUNK = 8 << 20,                      /* bytes of x interleaved at once */
};

/* Factors of the 4-bit codes of a format, in memory order. */
static table16 table_of(enum quant_format format, int shift)
{
    uint32_t word[16];
    table16 t;
    for (int i = 0; i < 16; i++) {
        int code = format == QUANT_I4 && in_words(format) ? i ^ 8 : i;
        float v = quant_value(format, code) / scale_unit(format);
        memcpy(&word[i], &v, 4);
        word[i] >>= shift;
    }
    memcpy(&t, word, sizeof t);
    return t;
}

/* ---- codes become factors ------------------------------------------------------------------------------ */

/* Converts VL codes of one byte to f32. e4m3: sign and magnitude are shifted into an f16, whose different
 * exponent bias gives 2^-8 of the value; the column's scale includes the factor 2^8. */
ALWAYS_INLINE vec wide_value(const char *p, const enum quant_format format)
{
    if (format == QUANT_I8)
        return __builtin_convertvector(SIGNED_BYTES(p), vec);
    return VEC_WIDEN_F16(SHORT_BYTES(p) << 7 & (int16_t)0xbf80);
}

/* Combines two bf16 of neighbouring k in a word. */
ALWAYS_INLINE uvec pair_of(vec even, vec odd)
{
    return (uvec)even >> 16 | ((uvec)odd & 0xffff0000u);
}

/* Returns word `word` (a pair of k) of VL columns as two bf16. */
ALWAYS_INLINE uvec quantized_word(const char *at, int64_t word, table16 even, table16 odd,
                                  const enum quant_format format)
{
    if (format == QUANT_I4 || format == QUANT_F4) {
        uvec u = BYTES(at + word * NR);
        return lookup(even, u) | lookup(odd, u >> 4);
    }
    return pair_of(wide_value(at + 2 * word * NR, format), wide_value(at + (2 * word + 1) * NR, format));
}

/* Returns the same two values as f32. */
ALWAYS_INLINE void quantized_both(const char *at, int64_t word, table16 table, const enum quant_format format,
                                  vec out[2])
{
    if (format == QUANT_I4 || format == QUANT_F4) {
        uvec u = BYTES(at + word * NR);
        out[0] = (vec)lookup(table, u);
        out[1] = (vec)lookup(table, u >> 4);
    } else {
        out[0] = wide_value(at + 2 * word * NR, format);
        out[1] = wide_value(at + (2 * word + 1) * NR, format);
    }
}

/* ---- products ------------------------------------------------------------------------------------------ */

struct quantized_product {
    struct linear out; /* output: bias, activation, rounding */
    const struct weight *w;
    struct quant_panels shape;
    table16 even, odd; /* tables of 4-bit codes; odd: also used for f32 */
    bool dot;          /* words of x are pairs of bf16, else f32 */
    int64_t pairs;     /* pairs of k, in x and in the lines */
    const char *x;
    int64_t row, step, block; /* words of x: to the next row, the next k, the next MR rows */
};

ALWAYS_INLINE vec group_scale(const uint16_t *p)
{
    return vec_from_bf16(*(const hvec_at *)p);
}

/* Returns the scales of group g of VL columns: bf16 at `words` or, with `full`, f32 in two words each. */
ALWAYS_INLINE vec scale_of_group(const uint16_t *words, int64_t g, bool full)
{
    if (!full)
        return group_scale(words + g * NR);
    uvec low = __builtin_convertvector(*(const hvec_at *)(words + (2 * g + 1) * NR), uvec);
    return (vec)((uvec)group_scale(words + 2 * g * NR) | low);
}

static const char *quantized_lines(const struct quantized_product *p, int64_t panel)
{
    return (const char *)p->w->codes + panel * p->shape.lines * NR;
}

static const uint16_t *quantized_groups(const struct quantized_product *p, int64_t panel)
{
    return p->w->groups + panel * p->shape.groups * NR;
}

/* Multiplies the sums of M rows by the panel's column scales and applies the epilogue. */
static void quantized_finish(const struct quantized_product *p, int64_t row, int64_t panel, vec_at *sums,
                             int M)
{
    const vec_at *scale = (const vec_at *)(p->w->scales + panel * NR);
    for (int i = 0; i < 2 * M; i++)
        sums[i] *= scale[i % 2];
    finish_rows(&p->out, row, panel, sums, M);
}

/* Adds the products of pairs [k, end) of one row and N vectors, two vectors per panel. */
ALWAYS_INLINE void quantized_run(const struct quantized_product *p, vec *acc, const int N, const char *lines,
                                 int64_t k, int64_t end, const bool dot, const enum quant_format format)
{
    const int64_t apart = p->shape.lines * NR;
    for (; k < end; k++) {
        const char *x = p->x + k * (dot ? WORD : 2 * WORD);
        UNROLL for (int j = 0; j < N; j++)
        {
            const char *at = lines + (j / 2) * apart + (j % 2) * VL;
            if (dot) {
                uint32_t word;
                memcpy(&word, x, 4);
                acc[j] = DOT_BF16(acc[j], word, quantized_word(at, k, p->even, p->odd, format));
            } else {
                float f[2];
                vec w[2];
                memcpy(f, x, 8);
                quantized_both(at, k, p->odd, format, w);
                acc[j] += f[0] * w[0];
                acc[j] += f[1] * w[1];
            }
        }
    }
}

ALWAYS_INLINE void quantized_vector(const struct quantized_product *p, int64_t panel, const int N,
                                    const bool dot, const enum quant_format format)
{
    const int64_t size = format == QUANT_I4          ? QUANT_I4_GROUP / 2
                         : format == QUANT_F4        ? QUANT_F4_GROUP / 2
                         : format == QUANT_F8_BLOCKS ? QUANT_F8_BLOCK / 2
                                                     : 0;
    const char *lines = quantized_lines(p, panel);
    vec acc[2 * QUANTIZED_PANELS], sums[2 * QUANTIZED_PANELS];
    UNROLL for (int j = 0; j < N; j++) acc[j] = sums[j] = (vec){0};
    if (!size) {
        quantized_run(p, acc, N, lines, 0, p->pairs, dot, format);
        UNROLL for (int j = 0; j < N; j++) sums[j] = acc[j];
    }
    const bool full = format == QUANT_F8_BLOCKS;
    for (int64_t g = 0; size && g < p->shape.groups / (full ? 2 : 1); g++) {
        UNROLL for (int j = 0; j < N; j++) acc[j] = (vec){0};
        quantized_run(p, acc, N, lines, g * size, (g + 1) * size, dot, format);
        UNROLL for (int j = 0; j < N; j++) sums[j] +=
            acc[j] * scale_of_group(quantized_groups(p, panel + j / 2) + (j % 2) * VL, g, full);
    }
    for (int j = 0; j < N; j += 2)
        quantized_finish(p, 0, panel + j / 2, sums + j, 1);
}

/* Instantiates `what` for each format. */
#define EACH_FORMAT(format, what)                                                                            \
    switch (format) {                                                                                        \
        CASE_FORMAT(QUANT_I8, what)                                                                          \
        CASE_FORMAT(QUANT_I4, what)                                                                          \
        CASE_FORMAT(QUANT_F8, what)                                                                          \
        CASE_FORMAT(QUANT_F8_BLOCKS, what)                                                                   \
    default:                                                                                                 \
        what(QUANT_F4);                                                                                      \
    }

ALWAYS_INLINE void quantized_vectors(const struct quantized_product *p, int64_t begin, int64_t end,
                                     const bool dot, const enum quant_format format)
{
    int64_t panel = begin;
    for (; panel + QUANTIZED_PANELS <= end; panel += QUANTIZED_PANELS)
        quantized_vector(p, panel, 2 * QUANTIZED_PANELS, dot, format);
    for (; panel < end; panel++)
        quantized_vector(p, panel, 2, dot, format);
}

/* Adds the products of words [k, end) of N vectors of columns; x is f32. */
ALWAYS_INLINE void words_run(const struct quantized_product *p, vec *acc, const int N, const char *lines,
                             int64_t k, int64_t end, const enum quant_format format)
{
    const int64_t apart = p->shape.lines * NR, each = format == QUANT_I8 ? 4 : 8;
    for (; k < end; k++) {
        const float *x = (const float *)(const void *)p->x + k * each;
        uvec u[2 * QUANTIZED_PANELS];
        UNROLL for (int j = 0; j < N; j++) u[j] =
            *(const uvec_at *)(lines + (j / 2) * apart + (k * NR + j % 2 * VL) * WORD);
        UNROLL for (int c = 0; c < each; c++)
        {
            UNROLL for (int j = 0; j < N; j++)
            {
                uvec code = u[j] >> (uint32_t)(c % 4 * 8 + c / 4 * 4);
                vec w = format == QUANT_I8 ? __builtin_convertvector((ivec)(code & 255) - 128, vec)
                                           : (vec)lookup(p->odd, code);
                acc[j] += x[c] * w;
            }
        }
    }
}

/* Computes the sums of N vectors of columns for one row, adding in the order of quantized_block(). */
ALWAYS_INLINE void words_vector(const struct quantized_product *p, int64_t panel, const int N,
                                const enum quant_format format)
{
    const int64_t size = format == QUANT_I4 ? QUANT_I4_GROUP / 8 : QUANT_F4_GROUP / 8;
    const char *lines = quantized_lines(p, panel);
    vec sums[2 * QUANTIZED_PANELS];
    UNROLL for (int j = 0; j < N; j++) sums[j] = (vec){0};
    if (format == QUANT_I8)
        words_run(p, sums, N, lines, 0, p->pairs / 2, format);
    for (int64_t g = 0; format != QUANT_I8 && g < p->shape.groups; g++) {
        vec acc[2 * QUANTIZED_PANELS];
        UNROLL for (int j = 0; j < N; j++) acc[j] = (vec){0};
        words_run(p, acc, N, lines, g * size, (g + 1) * size, format);
        UNROLL for (int j = 0; j < N; j++) sums[j] +=
            acc[j] * group_scale(quantized_groups(p, panel + j / 2) + g * NR + j % 2 * VL);
    }
    for (int j = 0; j < N; j += 2)
        quantized_finish(p, 0, panel + j / 2, sums + j, 1);
}

ALWAYS_INLINE void words_vectors(const struct quantized_product *p, int64_t begin, int64_t end,
                                 const enum quant_format format)
{
    int64_t panel = begin;
    for (; panel + QUANTIZED_PANELS <= end; panel += QUANTIZED_PANELS)
        words_vector(p, panel, 2 * QUANTIZED_PANELS, format);
    for (; panel < end; panel++)
        words_vector(p, panel, 2, format);
}

static void words_vector_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct quantized_product *p = arg;
    if (p->w->format == QUANT_I8)
        words_vectors(p, begin, end, QUANT_I8);
    else if (p->w->format == QUANT_I4)
        words_vectors(p, begin, end, QUANT_I4);
    else
        words_vectors(p, begin, end, QUANT_F4);
}

static void quantized_vector_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct quantized_product *p = arg;
#define RUN(format)                                                                                          \
    if (p->dot)                                                                                              \
        quantized_vectors(p, begin, end, true, format);                                                      \
    else                                                                                                     \
        quantized_vectors(p, begin, end, false, format)
    EACH_FORMAT(p->w->format, RUN)
#undef RUN
}

/* ---- many rows ----------------------------------------------------------------------------------------- */

/* Dequantizes pairs [k, k + n) of a panel to words [n][NR], or to f32 [2 n][NR]. */
ALWAYS_INLINE void quantized_dequantize(const struct quantized_product *p, const char *lines, int64_t k,
                                        int64_t n, uint32_t *out, const enum quant_format format)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < NR; j += VL) {
            if (p->dot) {
                *(uvec_at *)(out + i * NR + j) = quantized_word(lines + j, k + i, p->even, p->odd, format);
            } else {
                vec w[2];
                quantized_both(lines + j, k + i, p->odd, format, w);
                *(vec_at *)(out + 2 * i * NR + j) = w[0];
                *(vec_at *)(out + (2 * i + 1) * NR + j) = w[1];
            }
        }
}

/* Does the same for formats stored in words, always to f32. */
static void quantized_unpack(const struct quantized_product *p, const char *lines, int64_t k, int64_t n,
                             float *out)
{
    const int each = p->shape.packed4 ? 8 : 4;
    for (int64_t i = 0; i < 2 * n; i += each, out += (ptrdiff_t)each * NR)
        for (int j = 0; j < NR; j += VL) {
            uvec u = *(const uvec_at *)(lines + ((2 * k + i) / each * NR + j) * WORD);
            for (int c = 0; c < each; c++) {
                uvec code = u >> (uint32_t)(c % 4 * 8 + c / 4 * 4);
                vec v = __builtin_convertvector((ivec)(code & 255), vec) - splat(128);
                *(vec_at *)(out + c * NR + j) = p->shape.packed4 ? (vec)lookup(p->odd, code) : v;
            }
        }
}

OWN_FUNCTION void quantized_slice(const struct quantized_product *p, int64_t panel, int64_t k, int64_t n,
                                  uint32_t *out)
{
    const char *lines = quantized_lines(p, panel);
    if (quant_is_blocks(p->w->format)) {
        blocks_unpack(p->w->format, lines, quantized_groups(p, panel), 2 * k, 2 * n, (float *)(void *)out);
        return;
    }
    if (in_words(p->w->format)) {
        quantized_unpack(p, lines, k, n, (float *)(void *)out);
        return;
    }
#define RUN(format) quantized_dequantize(p, lines, k, n, out, format)
    EACH_FORMAT(p->w->format, RUN)
#undef RUN
}

/* Adds sums[M][NR], multiplied by the scales of group g, to tile[M][NR]. */
static void quantized_gather(const struct quantized_product *p, float *tile, const float *sums, int64_t panel,
                             int64_t g, int64_t M)
{
    for (int j = 0; j < NR; j += VL) {
        vec scale = scale_of_group(quantized_groups(p, panel) + j, g, p->w->format == QUANT_F8_BLOCKS);
        for (int64_t m = 0; m < M; m++)
            *(vec_at *)(tile + m * NR + j) += *(const vec_at *)(sums + m * NR + j) * scale;
    }
}

/* Multiplies at most MR rows, starting with `row`, with a dequantized slice, pairs [k, k + n). */
static void quantized_block(const struct quantized_product *p, int64_t row, int64_t panel, int64_t k,
                            int64_t n, const uint32_t *slice, float *tile)
{
    const int64_t per = p->dot ? 1 : 2, m = least(MR, p->out.rows - row);
    const bool grouped = p->shape.groups > 0 && !quant_is_blocks(p->w->format); /* GGUF blocks are already
                                                                                 * scaled */
    const int64_t size = grouped ? quant_group(p->w->format) / 2 : n;
    float sums[MR * NR] __attribute__((aligned(64)));
    for (int64_t g = 0; g < n; g += size) {
        struct matrix x = {p->x + (row / MR * p->block + (k + g) * per * p->step) * WORD, p->row, p->step};
        const uint32_t *w = slice + g * per * NR;
        float *to = grouped ? sums : tile;
        enum start start = grouped || k == 0 ? FROM_ZERO : FROM_SUM;
        if (p->dot)
            product_pair(to, NR, x, w, NR, m, least(size, n - g), NR, start);
        else
            product_f32(to, NR, x, w, NR, m, 2 * least(size, n - g), NR, start);
        if (grouped && k + g == 0)
            memset(tile, 0, (size_t)(m * NR) * sizeof *tile);
        if (grouped)
            quantized_gather(p, tile, sums, panel, (k + g) / size, m);
    }
    if (k + n == p->pairs)
        quantized_finish(p, row, panel, (vec_at *)tile, (int)m);
}

static void quantized_product_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct quantized_product *p = arg;
    const size_t slice_bytes = (size_t)QUANTIZED_DEPTH * NR * sizeof(float);
    char *room = cpu_scratch(p->out.b, thread,
                             slice_bytes + (size_t)(QUANTIZED_PANELS * QUANTIZED_STRIP * NR) * sizeof(float));
    uint32_t *slice = (uint32_t *)(void *)room;
    float *tiles = (float *)(void *)(room + slice_bytes);
    for (int64_t item = begin; item < end; item++) {
        int64_t p0 = item / p->out.strips * p->out.group, p1 = least(p0 + p->out.group, p->shape.panels);
        int64_t r0 = item % p->out.strips * QUANTIZED_STRIP, r1 = least(r0 + QUANTIZED_STRIP, p->out.rows);
        for (int64_t k = 0; k < p->pairs; k += QUANTIZED_DEPTH / 2) {
            int64_t n = least(QUANTIZED_DEPTH / 2, p->pairs - k);
            for (int64_t panel = p0; panel < p1; panel++) {
                float *tile = tiles + (panel - p0) * QUANTIZED_STRIP * NR;
                quantized_slice(p, panel, k, n, slice);
                for (int64_t r = r0; r < r1; r += MR)
                    quantized_block(p, r, panel, k, n, slice, tile + (r - r0) * NR);
            }
        }
    }
}

/* ---- the operation ------------------------------------------------------------------------------------- */

/* Converts rows of x to words, zero-padded to the last pair: row by row if there are few, else MR rows
 * interleaved. */
static void quantized_pack_rows(struct quantized_product *p, struct tensor x)
{
    const bool few = x.rows <= QUANTIZED_FEW;
    int64_t words = p->dot ? p->pairs : 2 * p->pairs, have = p->dot ? ceil_div(x.cols, 2) : x.cols;
    int64_t blocks = ceil_div(x.rows, MR), wide = few ? padded(words) : words * MR + VL;
    uint32_t *out = cpu_scratch(p->out.b, SHARED_SCRATCH, (size_t)((few ? x.rows : blocks) * wide) * WORD);
    p->x = (const char *)out;
    p->out.rows = x.rows;
    p->row = few ? wide : 1;
    p->step = few ? 1 : MR;
    p->block = few ? MR * wide : wide;
    for (int64_t i = 0; i < (few ? x.rows : blocks); i++, out += wide) {
        if (few && p->dot) {
            memset(out + have - 1, 0, (size_t)(wide - have + 1) * WORD);
            memcpy(out, element(x, i, 0), (size_t)x.cols * 2);
        } else if (few) {
            memset(out, 0, (size_t)wide * WORD);
            load_row(x, i, 0, x.cols, (float *)(void *)out);
        } else {
            pack_rows(out, MR, tensor_rows(x, i * MR, least(MR, x.rows - i * MR)), p->dot);
            memset(out + have * MR, 0, (size_t)((words - have) * MR) * WORD);
        }
    }
}

static struct quantized_product quantized_begin(struct backend *b, struct tensor y, const struct weight *w,
                                                struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    struct quantized_product p = {.w = w, .shape = quant_panels(w->format, w->rows, w->cols, NR)};
    p.out = (struct linear){.b = b, .y = y, .w = w, .bias = bias.data, .epi = epi, .add = mode == ADD};
    p.out.bf16 = y.dtype == DT_BF16;
    p.pairs = p.shape.wide / 2;
    return p;
}

static void quantized_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                             struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    struct quantized_product p = quantized_begin(b, y, w, bias, epi, mode);
    p.dot = HAS_DOT && x.dtype == DT_BF16 && !in_words(w->format);
    if (p.shape.packed4) {
        p.even = table_of(w->format, 16);
        p.odd = table_of(w->format, 0);
    }
    int64_t chunk = ceil_div(SMALL_CHUNK / (2 * WORD) / p.pairs, QUANTIZED_STRIP) * QUANTIZED_STRIP;
    for (int64_t r = 0; r < x.rows; r += chunk) {
        p.out.row0 = r;
        quantized_pack_rows(&p, tensor_rows(x, r, least(chunk, x.rows - r)));
        spread_chunk(&p.out, QUANTIZED_STRIP, QUANTIZED_PANELS,
                     quant_is_blocks(w->format) ? NULL
                     : in_words(w->format)      ? words_vector_range
                                                : quantized_vector_range,
                     quantized_product_range, &p);
    }
}
