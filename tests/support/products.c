/* products.c - see products.h. */
#include "products.h"
#include "check.h"

static struct weight *packed(struct backend *b, enum quant_format format, const struct quant_source *s)
{
    void *room = NULL;
    assert_int_equal(posix_memalign(&room, 64, b->ops->quant_bytes(b, format, s->rows, s->cols)), 0);
    b->ops->quant_pack(b, room, format, s);
    return b->ops->quant_weight(b, room, true, format, s->rows, s->cols);
}

double product_apart(struct backend *b, enum quant_format format, const struct quant_source *s,
                     const float *values, enum dtype act, int64_t tokens, uint64_t *rng)
{
    static const struct tensor none = {0};
    int64_t rows = s->rows, cols = s->cols;
    struct weight *w = packed(b, format, s);
    struct tensor x = b->ops->alloc(b, act, tokens, cols), y = b->ops->alloc(b, DT_F32, tokens, rows),
                  one = b->ops->alloc(b, DT_F32, 1, rows);
    float *in = malloc((size_t)(tokens * cols) * sizeof *in);
    for (int64_t i = 0; i < tokens * cols; i++)
        in[i] = bf16_to_f32(bf16_from_f32((float)(2 * check_random(rng) - 1)));
    tensor_convert(x, (struct tensor){in, DT_F32, tokens, cols, cols});
    b->ops->linear(b, y, x, w, none, EPI_NONE, SET);
    double off = 0, most = 0;
    for (int64_t i = 0; i < tokens * rows; i++) {
        double want = 0, xx = 0, ww = 0;
        for (int64_t k = 0; k < cols; k++) {
            double v = (double)in[i / rows * cols + k], by = (double)values[i % rows * cols + k];
            want += v * by;
            xx += v * v;
            ww += by * by;
        }
        most = fmax(most, sqrt(xx * ww));
        off = check_worse(off, fabs(want - (double)((const float *)y.data)[i / rows * y.stride + i % rows]));
    }
    for (int64_t t = 0; t < tokens; t++) {
        b->ops->linear(b, one, tensor_rows(x, t, 1), w, none, EPI_NONE, SET);
        assert_memory_equal(one.data, (const float *)y.data + t * y.stride, (size_t)rows * sizeof(float));
    }
    free(in);
    b->ops->free(b, &x);
    b->ops->free(b, &y);
    b->ops->free(b, &one);
    b->ops->weight_free(b, w);
    return off / most;
}
