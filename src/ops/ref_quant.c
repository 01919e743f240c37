/* ref_quant.c - quantized matrices of the reference: row by row, one byte per code.
 *
 *     codes [N][K], group scales [N][K / G] rounded up, scales [N], for GPTQ the order of the columns [K];
 *     each part starts at a multiple of 64 bytes */
#include "ops/ref.h"

struct layout { /* byte offsets of the parts */
    size_t groups, scales, order, end;
};

static size_t up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static struct layout layout_of(enum quant_format format, int64_t rows, int64_t cols)
{
    struct layout p;
    p.groups = up((size_t)(rows * cols));
    p.scales = p.groups + up((size_t)(rows * quant_groups(format, cols)) * sizeof(uint16_t));
    p.order = p.scales + up((size_t)rows * sizeof(float));
    p.end = p.order + (format == QUANT_GPTQ ? up((size_t)cols * sizeof(int32_t)) : 0);
    return p;
}

static size_t rows_bytes(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols)
{
    return layout_of(format, rows, cols).end;
}

static void rows_pack(struct backend *b, void *bytes, enum quant_format format, const struct quant_source *s)
{
    struct layout at = layout_of(format, s->rows, s->cols);
    int64_t groups = quant_groups(format, s->cols);
    struct quant_row row = {.room = xmalloc((unsigned long)s->cols + 1, sizeof(float))};
    memset(bytes, 0, at.end);
    cpu_put_order(bytes, at.order, format, s);
    for (int64_t n = 0; n < s->rows; n++) {
        row.codes = (uint8_t *)bytes + n * s->cols;
        row.groups = (uint16_t *)(void *)((char *)bytes + at.groups) + n * groups;
        quant_make_row(format, s, n, &row);
        ((float *)(void *)((char *)bytes + at.scales))[n] = row.scale;
    }
    free(row.room);
}

static struct weight *rows_weight(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                  int64_t rows, int64_t cols)
{
    struct layout at = layout_of(format, rows, cols);
    struct weight *w = cpu_quantized(bytes, owned, format, rows, cols, at.groups, at.scales);
    cpu_weight_order(w, at.order);
    return w;
}

float ref_number(const struct weight *w, int64_t n, int64_t k)
{
    if (w->format == QUANT_NONE) {
        int64_t i = n * w->plain.stride + k;
        return w->plain.dtype == DT_BF16 ? bf16_to_f32(((const uint16_t *)w->plain.data)[i])
                                         : ((const float *)w->plain.data)[i];
    }
    if (quant_is_blocks(w->format)) {
        int64_t span = blocks_span(w->format);
        const uint16_t *records = w->groups + n * quant_groups(w->format, w->cols);
        return blocks_value(w->format, w->codes[n * w->cols + k],
                            records + k / span * blocks_words(w->format), k % span);
    }
    float v = quant_value(w->format, w->codes[n * w->cols + k]);
    int64_t size = quant_group(w->format);
    const uint16_t *groups = w->groups + n * quant_groups(w->format, w->cols);
    if (w->format == QUANT_F8_BLOCKS) {
        uint32_t bits = (uint32_t)groups[k / size * 2] << 16 | groups[k / size * 2 + 1];
        float scale;
        memcpy(&scale, &bits, sizeof scale);
        v *= scale;
    } else if (size) {
        v *= bf16_to_f32(groups[k / size]);
    }
    return v * w->scales[n];
}

void ref_row(const struct weight *w, struct tensor x, int64_t t, float *out)
{
    for (int64_t k = 0; k < w->cols; k++)
        out[k] = get(x, t, w->order ? w->order[k] : k);
    if (w->coarse && x.dtype == DT_BF16)
        quant_round_row(out, w->cols, quant_activation_group(w->format));
}

void ref_quant_fill(struct ops *o)
{
    o->quant_layout = "rows 1";
    o->quant_bytes = rows_bytes;
    o->quant_pack = rows_pack;
    o->quant_weight = rows_weight;
    o->round_activations = cpu_round_activations;
}
