/* lab_weights.c - weights of each format, as in a file and as packed by a backend; see lab.h. */
#include "lab.h"

#include "ops/quant.h"

#include <stdlib.h>

struct lab_weights lab_weights_make(enum quant_format format, int64_t rows, int64_t cols)
{
    struct lab_weights m = {.source = {.rows = rows, .cols = cols, .scale = 0.037f}};
    static int turn;
    if ((format == QUANT_F8 && turn++ % 2) || format == QUANT_F4) {
        int64_t bytes = format == QUANT_F8 ? cols : (cols + 1) / 2,
                groups = rows * quant_groups(format, cols);
        uint8_t *p = m.data = malloc((size_t)(rows * bytes));
        for (int64_t i = 0; i < rows * bytes; i++) /* no NaN */
            do
                p[i] = (uint8_t)lab_between(0, 255);
            while (format == QUANT_F8 && (p[i] & 127) == 127);
        m.groups = malloc((size_t)groups + 1);
        for (int64_t i = 0; i < groups; i++)
            m.groups[i] = (uint8_t)lab_between(0x04, 0x50);
        m.source.stored = (struct tensor){p, format == QUANT_F8 ? DT_F8E4M3 : DT_U8, rows, bytes, bytes};
        m.source.groups = m.groups;
        return m;
    }
    float *p = m.data = malloc((size_t)(rows * cols) * sizeof *p);
    for (int64_t i = 0; i < rows * cols; i++)
        p[i] = (float)(lab_uniform(-1, 1) / (double)(1 + i / cols % 3));
    m.source.stored = (struct tensor){p, DT_F32, rows, cols, cols};
    return m;
}

void lab_weights_drop(struct lab_weights *m)
{
    free(m->data);
    free(m->groups);
}

struct weight *lab_weights_pack(struct backend *b, enum quant_format format, const struct lab_weights *m,
                                enum dtype kept)
{
    const struct quant_source *s = &m->source;
    if (format == QUANT_NONE)
        return b->ops->pack(b, s->stored, kept);
    void *bytes = aligned_alloc(64, (b->ops->quant_bytes(b, format, s->rows, s->cols) + 63) / 64 * 64);
    b->ops->quant_pack(b, bytes, format, s);
    return b->ops->quant_weight(b, bytes, true, format, s->rows, s->cols);
}
