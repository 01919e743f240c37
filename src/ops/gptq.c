/* gptq.c - reads 4-bit matrices quantized with GPTQ (struct quant_gptq). A value is
 *
 *     (code - zero - least) * scale
 *
 * with a zero point and a scale per row and group of 128 columns. If columns were quantized in order of
 * importance, the columns of a group are scattered over the matrix; they are stored here group by group,
 * and the activations are put into the same order. */
#include "ops/quant.h"

#include <string.h>

static uint32_t word_at(const void *p, int64_t i)
{
    uint32_t word;
    memcpy(&word, (const char *)p + i * (int64_t)sizeof word, sizeof word);
    return word;
}

static int64_t column_at(const struct quant_gptq *q, int64_t k)
{
    return q->order ? q->order[k] : k;
}

void gptq_take(const struct quant_source *s, int64_t n, uint8_t *codes, uint16_t *records)
{
    const struct quant_gptq *q = s->gptq;
    for (int64_t k = 0; k < s->cols; k++) {
        int64_t column = column_at(q, k);
        codes[k] = (uint8_t)(word_at(q->codes, column / 8 * s->rows + n) >> column % 8 * 4 & 15);
    }
    for (int64_t g = 0; g < s->cols / QUANT_GPTQ_GROUP; g++) {
        uint32_t zero = word_at(q->zeros, g * (s->rows / 8) + n / 8) >> n % 8 * 4 & 15;
        memcpy(&records[2 * g], (const char *)q->scales + (g * s->rows + n) * 2, 2);
        records[2 * g + 1] = (uint16_t)(zero + (uint32_t)q->least);
    }
}

void gptq_row(const struct quant_source *s, int64_t n, float *out)
{
    uint8_t codes[QUANT_GPTQ_GROUP];
    uint16_t record[2];
    struct quant_source group = *s;
    struct quant_gptq q = *s->gptq;
    group.gptq = &q;
    group.cols = QUANT_GPTQ_GROUP;
    for (int64_t g = 0; g < s->cols / QUANT_GPTQ_GROUP; g++) {
        int32_t order[QUANT_GPTQ_GROUP];
        for (int64_t k = 0; k < QUANT_GPTQ_GROUP; k++)
            order[k] = (int32_t)column_at(s->gptq, g * QUANT_GPTQ_GROUP + k);
        q.order = order;
        gptq_take(&group, n, codes, record);
        for (int64_t k = 0; k < QUANT_GPTQ_GROUP; k++)
            out[order[k]] = blocks_value(QUANT_GPTQ, codes[k], record, k);
        q.zeros = (const char *)q.zeros + s->rows / 8 * 4;
        q.scales = (const char *)q.scales + s->rows * 2;
    }
}
