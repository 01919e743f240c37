/* kernels_bytes.h - integer matrix products: codes of weights times quantized activations.
 *
 * 16-bit activations, the default for weights that are not `coarse`, if the CPU has a dot product of bytes
 * (DOT_BYTES): a row of x becomes integers with one scale, with an error of 1/65000 of the row's largest
 * value. Each integer is split into two signed digits, x = 256 hi + lo, and each digit is a separate row of
 * the product.
 *
 * 8-bit activations for `coarse` weights (W8A8 and W4A8), on every instruction set: one signed byte per
 * value, and one scale per group of the weight (i8: per 128 columns). This is at most half the work.
 *
 * Codes are unsigned bytes with an offset, which is subtracted beforehand: a sum begins at minus the offset
 * times the sum of the activations.  Integer sums are exact, so nothing depends on how the work is split.
 *
 *   i8   byte: code + 128
 *   i4   half a byte: code + 8
 *   f4   half a byte: the e2m1 code; a table maps it to twice the value + 12, the column's scale halves it
 *   blocks of GGUF: the code, of 8 bits + 128 and of Q6_K + 32; a group's minimum is multiplied by the sum of
 *   its activations
 *
 * Words hold four neighbouring k of a column, or eight (in_words).  e4m3 spans too many magnitudes for a
 * byte and stays with kernels_quant.h, as do f32 activations.
 */
#pragma once

#include "ops/kernels_byte_row.h"

/* ---- many rows ----------------------------------------------------------------------------------------- */

#ifdef DOT_BYTES

/* Adds products to the integer tile [M][NR], which starts from `begin` or, if NULL, from its current
 * values. */
ALWAYS_INLINE void bytes_rows(int32_t *tile, const int32_t *begin, const uint32_t *x, int64_t step,
                              const char *w, int64_t words, const int M)
{
    ivec acc[DIGITS * 2];
    UNROLL for (int i = 0; i < 2 * M; i++)
    {
        if (begin)
            acc[i] = (ivec){0} + begin[i / 2];
        else
            acc[i] = *(const ivec_at *)(tile + i / 2 * NR + i % 2 * VL);
    }
    bytes_multiply(acc, M, 2, x, step, w, 0, words, true);
    UNROLL for (int i = 0; i < 2 * M; i++) * (ivec_at *)(tile + i / 2 * NR + i % 2 * VL) = acc[i];
}

#define BYTES_ROWS(rows)                                                                                     \
    OWN_FUNCTION void bytes_rows_##rows(int32_t *tile, const int32_t *begin, const uint32_t *x,              \
                                        int64_t step, const char *w, int64_t words)                          \
    {                                                                                                        \
        bytes_rows(tile, begin, x, step, w, words, 2 * (rows));                                              \
    }
BYTES_ROWS(1)
BYTES_ROWS(2)
BYTES_ROWS(3)
BYTES_ROWS(4)
BYTES_ROWS(5)
BYTES_ROWS(6)

static void bytes_block(int rows, int32_t *tile, const int32_t *begin, const uint32_t *x, int64_t step,
                        const char *w, int64_t words)
{
    static void (*const each[DIGIT_ROWS])(int32_t *, const int32_t *, const uint32_t *, int64_t, const char *,
                                          int64_t) = {bytes_rows_1, bytes_rows_2, bytes_rows_3,
                                                      bytes_rows_4, bytes_rows_5, bytes_rows_6};
    each[rows - 1](tile, begin, x, step, w, words);
}

#else

/* Never called, because without DOT_BYTES all sums are scaled per group. */
static void bytes_block(int rows, int32_t *tile, const int32_t *begin, const uint32_t *x, int64_t step,
                        const char *w, int64_t words)
{
}

#endif

enum {
    BYTES_DEPTH = 128,                /* words of a slice */
    BYTES_STRIP = 16 * DIGIT_ROWS,    /* rows of x that share a slice */
    BYTES_TILE = BYTES_STRIP * 2 * NR /* sums of a strip and a panel, in words */
};

/* Unpacks words [k, k + n), four k each, of a panel of GGUF blocks. */
ALWAYS_INLINE void split_groups(const struct bytes *p, int64_t panel, int64_t k, int64_t n, uint32_t *out,
                                const enum quant_format format)
{
    const int fours = group_fours(format);
    const char *w = quantized_lines(&p->s, panel) + k / fours * group_stored(format) * NR * WORD;
    for (int64_t g = 0; g < n; g += fours, w += group_stored(format) * NR * WORD)
        for (int i = 0; i < fours; i += 2, out += 2 * NR)
            for (int j = 0; j < NR; j += VL) {
                uvec word[2];
                group_pair(w + j * WORD, i / 2, word, format);
                *(uvec_at *)(out + j) = word[0];
                *(uvec_at *)(out + NR + j) = word[1];
            }
}

/* Unpacks words [k, k + n), four k each, of a panel with codes of fewer than eight bits. */
OWN_FUNCTION void split_words(const struct bytes *p, int64_t panel, int64_t k, int64_t n, uint32_t *out)
{
    if (quant_is_blocks(p->s.w->format)) {
#define RUN(format) split_groups(p, panel, k, n, out, format)
        EACH_BLOCKS(p->s.w->format, RUN)
#undef RUN
        return;
    }
    const char *w = quantized_lines(&p->s, panel) + k / 2 * NR * WORD;
    for (int64_t i = 0; i < n; i += 2, w += NR * WORD, out += 2 * NR)
        for (int j = 0; j < NR; j += VL) {
            uvec word[2], u = *(const uvec_at *)(w + j * WORD);
            if (p->s.w->format == QUANT_I4)
                split_word(u, word, QUANT_I4);
            else
                split_word(u, word, QUANT_F4);
            *(uvec_at *)(out + j) = word[0];
            *(uvec_at *)(out + NR + j) = word[1];
        }
}

/* Unpacks the scales of the groups that contain words [k, k + n) of a panel. */
static void take_scales(const struct bytes *p, int64_t panel, int64_t k, int64_t n, struct scales *out)
{
    const enum quant_format format = p->s.w->format;
    const int64_t per = p->d.size / 4;
    const uint16_t *groups = quantized_groups(&p->s, panel);
    out->kind = format == QUANT_I8 ? UNSCALED : has_minima(format) ? MINIMA : SCALED;
    out->wide = quant_is_blocks(format) && !blocks_few_bits(format);
    if (quant_is_blocks(format))
        blocks_scales(format, groups, k / per, ceil_div(n, per), out);
    else if (format != QUANT_I8)
        for (int64_t i = 0; i < n / per * NR; i += VL)
            *(vec_at *)(out->scale + i) = group_scale(groups + k / per * NR + i);
}

static void bytes_end(const struct bytes *p, int64_t row, int64_t panel, const void *tile, int rows)
{
    vec sums[2 * DIGITS];
    for (int i = 0; i < 2 * rows; i++) {
        const int32_t *at = (const int32_t *)tile + i / 2 * 2 * NR + i % 2 * VL;
        vec sum = in_groups(p) ? *(const vec_at *)((const float *)tile + i / 2 * NR + i % 2 * VL)
                               : joined(*(const ivec_at *)at, *(const ivec_at *)(at + NR));
        sums[i] = sum * splat(p->d.coarse ? 1 : p->d.scale[row + i / 2]);
    }
    quantized_finish(&p->s, row, panel, sums, rows);
}

/* Multiplies a block of rows with words [k, k + n) of a panel at w. tile: integer sums, or f32 sums of scaled
 * groups. */
static void bytes_slice(const struct bytes *p, int64_t row, int64_t panel, int64_t k, int64_t n,
                        const char *w, const struct scales *scales, int32_t *tile)
{
    const struct digits *d = &p->d;
    int64_t block = row / d->block_rows;
    int rows = (int)least(d->block_rows, p->s.out.rows - row);
    const uint32_t *x = d->out + (block * p->words + k) * d->step;
    if (in_groups(p)) {
        int64_t at = (block * d->groups + k * 4 / d->size) * d->step;
        struct groups g = {x,      d->step, d->begin + at, d->coarse ? d->scale + at : NULL, w,
                           scales, n,       d->size / 4};
        if (k == 0)
            memset(tile, 0, (size_t)d->block_rows * NR * sizeof *tile);
        groups_block(rows, (float *)tile, &g);
    } else {
        bytes_block(rows, tile, k ? NULL : d->begin + block * d->step, x, d->step, w, n);
    }
    if (k + n == p->words)
        bytes_end(p, row, panel, tile, rows);
}

static void bytes_product_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct bytes *p = arg;
    const int64_t step = p->d.block_rows;
    const size_t slice_bytes = (size_t)BYTES_DEPTH * NR * WORD, scale_bytes = slice_bytes / 4;
    char *room = cpu_scratch(p->s.out.b, thread,
                             slice_bytes + 2 * scale_bytes + (size_t)QUANTIZED_PANELS * BYTES_TILE * WORD);
    struct scales scales = {.scale = (float *)(void *)(room + slice_bytes),
                            .low = (float *)(void *)(room + slice_bytes + scale_bytes)};
    int32_t *tiles = (int32_t *)(void *)(room + slice_bytes + 2 * scale_bytes);
    for (int64_t item = begin; item < end; item++) {
        int64_t p0 = item / p->s.out.strips * p->s.out.group,
                p1 = least(p0 + p->s.out.group, p->s.shape.panels);
        int64_t r0 = item % p->s.out.strips * BYTES_STRIP, r1 = least(r0 + BYTES_STRIP, p->s.out.rows);
        for (int64_t k = 0; k < p->words; k += BYTES_DEPTH) {
            int64_t n = least(BYTES_DEPTH, p->words - k);
            for (int64_t panel = p0; panel < p1; panel++) {
                const char *w = room;
                if (p->s.shape.packed4 || blocks_few_bits(p->s.w->format))
                    split_words(p, panel, k, n, (uint32_t *)(void *)room);
                else
                    w = quantized_lines(&p->s, panel) + k * NR * WORD;
                if (in_groups(p))
                    take_scales(p, panel, k, n, &scales);
                for (int64_t r = r0; r < r1; r += step)
                    bytes_slice(p, r, panel, k, n, w, &scales,
                                tiles + (panel - p0) * BYTES_TILE + (r - r0) * 2 * NR);
            }
        }
    }
}

/* ---- the operation ------------------------------------------------------------------------------------- */

/* Returns the offset that is subtracted from a code; -1 for formats with minima, which need the sum of the
 * digits itself. */
static int bytes_offset(enum quant_format format)
{
    bool eight = format == QUANT_I8 || format == QUANT_Q8_0 || format == QUANT_Q8_16;
    return eight                  ? (BYTES_CENTRED ? 0 : 128)
           : format == QUANT_I4   ? 8
           : format == QUANT_F4   ? 12
           : format == QUANT_Q6_K ? 32
                                  : -1;
}

static void bytes_pack_rows(struct bytes *p, struct tensor x)
{
    struct digits *d = &p->d;
    const enum quant_format format = p->s.w->format;
    d->x = x;
    d->words = p->words;
    d->coarse = p->s.w->coarse;
    d->size = d->coarse           ? quant_activation_group(format)
              : p->s.shape.groups ? quant_activation_group(format)
                                  : p->words * 4;
    d->groups = ceil_div(p->words * 4, d->size);
    d->offset = bytes_offset(format);
    d->block_rows = least(d->coarse ? DIGITS : DIGIT_ROWS, d->coarse ? ceil_div(x.rows, 2) * 2 : x.rows);
    d->step = d->coarse ? d->block_rows : 2 * d->block_rows;
    d->b = p->s.out.b;
    int64_t blocks = ceil_div(x.rows, d->block_rows);
    size_t words = (size_t)(blocks * d->words * d->step) * WORD,
           begins = (size_t)(blocks * d->groups * d->step) * sizeof(int32_t),
           scales = d->coarse ? begins : (size_t)(blocks * d->block_rows) * sizeof(float);
    char *room = cpu_scratch(d->b, SHARED_SCRATCH, words + begins + scales);
    if (d->coarse) /* the padding row, if x has an odd number of rows */
        memset(room, 0, words + begins + scales);
    d->out = (uint32_t *)(void *)room;
    d->begin = (int32_t *)(void *)(room + words);
    d->scale = (float *)(void *)(room + words + begins);
    p->s.out.rows = x.rows;
    pool_for(d->b->pool, x.rows, 1 + SMALL_ROWS / (x.cols + 1),
             d->coarse || !HAS_DIGITS ? coarse_range : digits_range, d);
}

static void bytes_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                         struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    struct bytes p = {.s = quantized_begin(b, y, w, bias, epi, mode)};
    p.words = p.s.pairs / 2;
    int64_t chunk = ceil_div(SMALL_CHUNK / WORD / p.s.pairs, BYTES_STRIP) * BYTES_STRIP;
    for (int64_t r = 0; r < x.rows; r += chunk) {
        p.s.out.row0 = r;
        bytes_pack_rows(&p, tensor_rows(x, r, least(chunk, x.rows - r)));
        spread_chunk(&p.s.out, BYTES_STRIP, QUANTIZED_PANELS, bytes_vector_range, bytes_product_range, &p);
    }
}

/* ---- any matrix ---------------------------------------------------------------------------------------- */

struct ordering {
    struct tensor from, to;
    const int32_t *order;
};

static void order_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct ordering *o = arg;
    for (int64_t r = begin; r < end; r++) {
        const void *from = element(o->from, r, 0);
        void *to = element(o->to, r, 0);
        for (int64_t k = 0; k < o->to.cols; k++)
            if (o->to.dtype == DT_BF16)
                ((uint16_t *)to)[k] = ((const uint16_t *)from)[o->order[k]];
            else
                ((float *)to)[k] = ((const float *)from)[o->order[k]];
    }
}

/* Returns x with its columns permuted to the order of w's columns. */
static struct tensor in_order(struct backend *b, struct tensor x, const struct weight *w)
{
    if (!w->order)
        return x;
    struct ordering o = {x, {NULL, x.dtype, x.rows, x.cols, padded(x.cols)}, w->order};
    o.to.data = cpu_scratch(b, ORDER_SCRATCH, (size_t)(x.rows * o.to.stride) * dtype_size(x.dtype));
    pool_for(b->pool, x.rows, 1 + SMALL_ROWS / (x.cols + 1), order_range, &o);
    return o.to;
}

static void any_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                       struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    if (x.cols != w->cols || y.cols != w->rows || x.rows != y.rows)
        bug("linear %lldx%lld with a matrix %lldx%lld into %lldx%lld", (long long)x.rows, (long long)x.cols,
            (long long)w->rows, (long long)w->cols, (long long)y.rows, (long long)y.cols);
    x = in_order(b, x, w);
    if (w->format == QUANT_NONE)
        fast_linear(b, y, x, w, bias, epi, mode);
    else if (x.dtype == DT_BF16 && (w->coarse || (HAS_DIGITS && in_words(w->format) && x.cols <= BYTES_MAX)))
        bytes_linear(b, y, x, w, bias, epi, mode);
    else
        quantized_linear(b, y, x, w, bias, epi, mode);
}
