/* kernels_byte_row.h - products of a single quantized row with the panels of a matrix; part of
 * kernels_bytes.h. They are limited by memory, because each weight is read once.
 *
 * For a coarse row the result is bit-identical to groups_rows, so that it does not depend on whether a
 * session runs alone or in a batch.
 */
#pragma once

#include "ops/kernels_digits.h"
#include "ops/kernels_groups.h"
#include "ops/kernels_quant.h"

/* Splits a word of 4-bit codes into two words of four k. */
ALWAYS_INLINE void split_word(uvec u, uvec out[2], const enum quant_format format)
{
    out[0] = u & 0x0f0f0f0fu;
    out[1] = u >> 4 & 0x0f0f0f0fu;
    if (format == QUANT_F4) {
        const bytevec table = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
        for (int i = 0; i < 2; i++)
            out[i] = SHUFFLE_BYTES(table, out[i]);
    }
}

struct bytes {
    struct quantized_product s; /* its x, row, step and block are not used */
    struct digits d;
    int64_t words; /* number of words of four k */
};

/* Returns whether the sum of each group gets its own scale. */
static bool in_groups(const struct bytes *p)
{
    return p->s.shape.groups || p->d.coarse;
}

#ifdef DOT_BYTES

/* Adds the products of words [k, end), eight k each, of N vectors of 4-bit codes, two per panel. */
ALWAYS_INLINE void packed4_run(ivec *hi, ivec *lo, const int N, const uint32_t *x, const char *w,
                               int64_t apart, int64_t k, int64_t end, const enum quant_format format)
{
    for (; k < end; k++)
        UNROLL for (int j = 0; j < N; j++)
        {
            uvec word[2];
            split_word(*(const uvec_at *)(w + k * NR * WORD + (j / 2) * apart + j % 2 * VL * WORD), word,
                       format);
            UNROLL for (int i = 0; i < 2; i++)
            {
                hi[j] = DOT_BYTES(hi[j], word[i], x[4 * k + 2 * i]);
                lo[j] = DOT_BYTES(lo[j], word[i], x[4 * k + 2 * i + 1]);
            }
        }
}

/* Computes sums[N] of one row of digits and N vectors of GGUF blocks, before quantized_finish(). */
ALWAYS_INLINE void blocks_vector(const struct bytes *p, int64_t panel, vec *sums, const int N,
                                 const enum quant_format format)
{
    const int64_t apart = p->s.shape.lines * NR, record = (int64_t)block_record(format) * NR;
    const char *w = quantized_lines(&p->s, panel);
    const uint16_t *records = quantized_groups(&p->s, panel);
    const uint32_t *x = p->d.out;
    const int fours = group_fours(format), per = block_groups(format);
    UNROLL for (int j = 0; j < N; j++) sums[j] = (vec){0};
    for (int64_t g = 0; g < p->d.groups;
         g++, x += (ptrdiff_t)2 * fours, w += group_stored(format) * NR * WORD) {
        const int32_t *begin = p->d.begin + 2 * g;
        const uint16_t *of = records + g / per * record;
        ivec acc[2 * 4];
        UNROLL for (int i = 0; i < 2 * N; i++) acc[i] = (ivec){0} + (has_minima(format) ? 0 : begin[i / N]);
        UNROLL for (int i = 0; i < fours / 2; i++)
        {
            UNROLL for (int j = 0; j < N; j++)
            {
                uvec word[2];
                group_pair(w + (j / 2) * apart + j % 2 * VL * WORD, i, word, format);
                UNROLL for (int k = 0; k < 2; k++)
                {
                    acc[j] = DOT_BYTES(acc[j], word[k], x[4 * i + 2 * k]);
                    acc[N + j] = DOT_BYTES(acc[N + j], word[k], x[4 * i + 2 * k + 1]);
                }
            }
        }
        UNROLL for (int j = 0; j < N; j++)
        {
            struct group_scales s =
                group_scales(of + (j / 2) * p->s.shape.groups * NR + j % 2 * VL, (int)(g % per), format);
            sums[j] += joined(acc[j], acc[N + j]) * s.scale;
            if (has_minima(format))
                sums[j] -= splat((float)(256 * begin[0] + begin[1])) * s.low;
        }
    }
}

#endif

enum {
    COARSE_STEP = 2
}; /* words of x from one k to the next if x has one row: bytes_pack_rows() pads it to
                           * two */

/* Adds the products of one coarse row at x and one group of a block at w to acc[N]. */
ALWAYS_INLINE void coarse_block_group(ivec *acc, const uint32_t *x, const char *w, int64_t apart, const int N,
                                      const enum quant_format format)
{
    UNROLL for (int i = 0; i < group_fours(format) / 2; i++)
    {
        UNROLL for (int j = 0; j < N; j++)
        {
            uvec word[2];
            group_pair(w + (j / 2) * apart + j % 2 * VL * WORD, i, word, format);
            acc[j] = dot_words(acc[j], word, x[2 * i * COARSE_STEP], x[(2 * i + 1) * COARSE_STEP],
                               !blocks_few_bits(format));
        }
    }
}

/* Does the same for n words of 4-bit codes (two words of x each) or 8-bit codes. */
ALWAYS_INLINE void coarse_words(ivec *acc, const uint32_t *x, const char *w, int64_t apart, int64_t n,
                                const int N, const enum quant_format format)
{
    const int each = format == QUANT_I8 ? 1 : 2;
    for (int64_t k = 0; k < n; k++, x += each * COARSE_STEP, w += NR * WORD)
        UNROLL for (int j = 0; j < N; j++)
        {
            uvec word[2], u = *(const uvec_at *)(w + (j / 2) * apart + j % 2 * VL * WORD);
            if (format == QUANT_I8) {
                acc[j] = dot_word(acc[j], u, x[0], true);
            } else {
                split_word(u, word, format);
                acc[j] = dot_words(acc[j], word, x[0], x[COARSE_STEP], false);
            }
        }
}

/* Computes sums[N] of one coarse row and N vectors of GGUF blocks, bit-identical to groups_rows(). Reads the
 * scales of a block once, and the scale bytes of two groups together. */
ALWAYS_INLINE void coarse_blocks(const struct bytes *p, int64_t panel, vec *sums, const int N,
                                 const enum quant_format format)
{
    const int64_t apart = p->s.shape.lines * NR, record = (int64_t)block_record(format) * NR;
    const int per = block_groups(format), together = per > 1 ? 2 : 1;
    const uint16_t *of = quantized_groups(&p->s, panel);
    const int64_t records_apart = quantized_groups(&p->s, panel + 1) - of;
    const char *w = quantized_lines(&p->s, panel);
    const uint32_t *x = p->d.out;
    const int32_t *begin = p->d.begin;
    const float *share = p->d.scale;
    for (int64_t block = 0; block < p->d.groups / per; block++, of += record) {
        struct group_scales scales[4];
        UNROLL for (int j = 0; j < N; j++) scales[j] =
            record_scales(of + j / 2 * records_apart + j % 2 * VL, format);
        for (int g = 0; g < per; g += together)
            UNROLL for (int h = 0; h < together; h++)
            {
                ivec acc[4];
                UNROLL for (int j = 0; j < N; j++) acc[j] = (ivec){0} + (has_minima(format) ? 0 : *begin);
                coarse_block_group(acc, x, w, apart, N, format);
                UNROLL for (int j = 0; j < N; j++)
                {
                    const uint16_t *bytes = of + g / 2 * NR + j / 2 * records_apart + j % 2 * VL;
                    struct group_scales s = block_group_scales(scales[j], bytes, h, format);
                    vec v = __builtin_convertvector(acc[j], vec) * s.scale;
                    if (has_minima(format))
                        v -= splat((float)*begin) * s.low;
                    sums[j] += v * splat(*share);
                }
                x += group_fours(format) * COARSE_STEP;
                w += group_stored(format) * NR * WORD;
                begin += COARSE_STEP;
                share += COARSE_STEP;
            }
    }
}

/* Computes sums[N] of one coarse row and N vectors, bit-identical to groups_rows(). */
ALWAYS_INLINE void coarse_vector(const struct bytes *p, int64_t panel, vec *sums, const int N,
                                 const enum quant_format format)
{
    const int64_t per = p->d.size / 4, apart = p->s.shape.lines * NR;
    const char *w = quantized_lines(&p->s, panel);
    const uint32_t *x = p->d.out;
    UNROLL for (int j = 0; j < N; j++) sums[j] = (vec){0};
    if (quant_is_blocks(format)) {
        coarse_blocks(p, panel, sums, N, format);
        return;
    }
    for (int64_t g = 0; g < p->d.groups; g++, x += per * COARSE_STEP) {
        int64_t n = least(per, p->words - g * per) / (format == QUANT_I8 ? 1 : 2);
        ivec acc[4];
        UNROLL for (int j = 0; j < N; j++) acc[j] = (ivec){0} + p->d.begin[g * COARSE_STEP];
        coarse_words(acc, x, w, apart, n, N, format);
        w += n * NR * WORD;
        UNROLL for (int j = 0; j < N; j++)
        {
            vec v = __builtin_convertvector(acc[j], vec);
            if (format != QUANT_I8)
                v *= group_scale(quantized_groups(&p->s, panel + j / 2) + g * NR + j % 2 * VL);
            sums[j] += v * splat(p->d.scale[g * COARSE_STEP]);
        }
    }
}

#ifdef DOT_BYTES

/* Computes sums[N] of one row of two digits and N vectors. */
ALWAYS_INLINE void digits_vector(const struct bytes *p, int64_t panel, vec *sums, const int N,
                                 const enum quant_format format)
{
    const int64_t apart = p->s.shape.lines * NR,
                  per = format == QUANT_I4 ? QUANT_I4_GROUP / 8 : QUANT_F4_GROUP / 8;
    const char *w = quantized_lines(&p->s, panel);
    const int32_t *begin = p->d.begin;
    ivec acc[2 * 4];
    if (format >= QUANT_Q8_0) {
        blocks_vector(p, panel, sums, N, format);
    } else if (format == QUANT_I8) {
        UNROLL for (int i = 0; i < 2 * N; i++) acc[i] = (ivec){0} + begin[i / N];
        bytes_multiply(acc, 2, N, p->d.out, 2, w, apart, p->words, true);
        UNROLL for (int j = 0; j < N; j++) sums[j] = joined(acc[j], acc[N + j]);
    } else {
        UNROLL for (int j = 0; j < N; j++) sums[j] = (vec){0};
        for (int64_t g = 0; g < p->d.groups; g++) {
            UNROLL for (int i = 0; i < 2 * N; i++) acc[i] = (ivec){0} + begin[2 * g + i / N];
            packed4_run(acc, acc + N, N, p->d.out, w, apart, g * per, (g + 1) * per, format);
            UNROLL for (int j = 0; j < N; j++) sums[j] +=
                joined(acc[j], acc[N + j]) *
                group_scale(quantized_groups(&p->s, panel + j / 2) + g * NR + j % 2 * VL);
        }
    }
    for (int j = 0; j < N; j++)
        sums[j] *= splat(p->d.scale[0]);
}

#else

/* Never called, because without DOT_BYTES every row is coarse. */
ALWAYS_INLINE void digits_vector(const struct bytes *p, int64_t panel, vec *sums, const int N,
                                 const enum quant_format format)
{
}

#endif

ALWAYS_INLINE void bytes_vectors(const struct bytes *p, int64_t begin, int64_t end,
                                 const enum quant_format format)
{
    vec sums[4];
    for (int64_t panel = begin; panel < end; panel += 2) {
        const bool two = panel + 2 <= end;
        if (p->d.coarse && two)
            coarse_vector(p, panel, sums, 4, format);
        else if (p->d.coarse)
            coarse_vector(p, panel, sums, 2, format);
        else if (two)
            digits_vector(p, panel, sums, 4, format);
        else
            digits_vector(p, panel, sums, 2, format);
        for (int j = 0; j < (two ? 4 : 2); j += 2)
            quantized_finish(&p->s, 0, panel + j / 2, sums + j, 1);
    }
}

static void bytes_vector_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct bytes *p = arg;
    if (p->s.w->format == QUANT_I8)
        bytes_vectors(p, begin, end, QUANT_I8);
    else if (p->s.w->format == QUANT_I4)
        bytes_vectors(p, begin, end, QUANT_I4);
    else if (p->s.w->format == QUANT_F4)
        bytes_vectors(p, begin, end, QUANT_F4);
    else {
#define RUN(format) bytes_vectors(p, begin, end, format)
        EACH_BLOCKS(p->s.w->format, RUN)
#undef RUN
    }
}
