/* kernels_order.h - byte order of packed quantized matrices: panels of NR columns (quant_panels). */
#pragma once

#include "ops/kernels_core.h"
#include "ops/kernels_linear.h"

/* Returns whether codes are stored in words instead of lines: four adjacent k of a column together, or eight
 * of 4 bits, with the first four in the low halves. Integers and e2m1 (halves of integers) are stored in
 * words for the dot products of kernels_dot.h, e4m3 in lines of one k. Codes in words are unsigned: i8 is
 * the code + 128, i4 the code + 8. */
static bool in_words(enum quant_format format)
{
    return format != QUANT_F8 && format != QUANT_F8_BLOCKS;
}

/* Returns the power of two by which a code's factor differs from its value; the column's scale includes
 * it. */
static float scale_unit(enum quant_format format)
{
    return format == QUANT_F8 || format == QUANT_F8_BLOCKS ? 256
           : format == QUANT_F4 && in_words(format)        ? 0.5f
                                                           : 1;
}

static size_t quantized_bytes(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols)
{
    return quant_panels(format, rows, cols, NR).end;
}

struct quantized_packing {
    struct backend *b;
    char *bytes;
    enum quant_format format;
    const struct quant_source *s;
    struct quant_panels shape;
};

/* Stores the codes of one column in lines. */
static void put_lines(uint8_t *to, bool packed4, const uint8_t *codes, int64_t cols)
{
    if (!packed4)
        for (int64_t k = 0; k < cols; k++)
            to[k * NR] = codes[k];
    else
        for (int64_t k = 0; k < cols; k += 2)
            to[k / 2 * NR] = (uint8_t)(codes[k] | (k + 1 < cols ? codes[k + 1] << 4 : 0));
}

/* Stores the codes of one column in words. */
static void put_words(uint8_t *to, enum quant_format format, const uint8_t *codes, int64_t cols)
{
    if (format == QUANT_I8)
        for (int64_t k = 0; k < cols; k++)
            to[k / 4 * NR * WORD + k % 4] = codes[k] ^ 0x80;
    else
        for (int64_t k = 0; k < cols; k++)
            to[k / 8 * NR * WORD + k % 4] |=
                (uint8_t)((codes[k] ^ (format == QUANT_I4 ? 8 : 0)) << (k % 8 < 4 ? 0 : 4));
}

static void put_codes(const struct quantized_packing *p, int64_t n, const uint8_t *codes)
{
    const struct quant_panels *h = &p->shape;
    uint8_t *to = (uint8_t *)p->bytes + n / NR * h->lines * NR;
    if (quant_is_blocks(p->format))
        blocks_put(p->format, codes, p->s->cols, to + n % NR * WORD, (ptrdiff_t)NR * WORD);
    else if (in_words(p->format))
        put_words(to + n % NR * WORD, p->format, codes, p->s->cols);
    else
        put_lines(to + n % NR, h->packed4, codes, p->s->cols);
}

static void quantized_pack_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct quantized_packing *p = arg;
    const struct quant_panels *h = &p->shape;
    int64_t cols = p->s->cols;
    char *room = cpu_scratch(p->b, thread, (size_t)(cols * 5 + h->groups * 2 + 64));
    struct quant_row row = {.room = (float *)(void *)room,
                            .groups = (uint16_t *)(void *)(room + cols * 4),
                            .codes = (uint8_t *)room + cols * 4 + h->groups * 2};
    for (int64_t n = begin * NR; n < least(end * NR, p->s->rows); n++) {
        quant_make_row(p->format, p->s, n, &row);
        put_codes(p, n, row.codes);
        uint16_t *groups = (uint16_t *)(void *)(p->bytes + h->groups_at) + n / NR * h->groups * NR + n % NR;
        for (int64_t g = 0; g < h->groups; g++)
            groups[g * NR] = row.groups[g];
        ((float *)(void *)(p->bytes + h->scales_at))[n] = row.scale * scale_unit(p->format);
    }
}

static void quantized_pack(struct backend *b, void *bytes, enum quant_format format,
                           const struct quant_source *s)
{
    struct quantized_packing p = {b, bytes, format, s, quant_panels(format, s->rows, s->cols, NR)};
    memset(bytes, 0, p.shape.end);
    cpu_put_order(bytes, p.shape.order_at, format, s);
    pool_for(b->pool, p.shape.panels, 1 + SMALL_PRODUCT / (s->cols * NR + 1), quantized_pack_range, &p);
}

static struct weight *quantized_weight(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                       int64_t rows, int64_t cols)
{
    struct quant_panels h = quant_panels(format, rows, cols, NR);
    struct weight *w = cpu_quantized(bytes, owned, format, rows, cols, h.groups_at, h.scales_at);
    cpu_weight_order(w, h.order_at);
    return w;
}
