/* kv8.c - quantizes and dequantizes rows of an 8-bit KV cache (kv8.h).
 *
 * A row is quantized once and read for every later token, so quantization is portable code, and reading is
 * part of the attention kernels. */
#include "ops/kv8.h"

#include "ops/ref.h"

struct kv_task {
    struct tensor dst;
    const struct tensor *rows; /* rows of dst; NULL: dst itself */
    struct tensor src;
    int heads;
};

static void quantize_head(const struct kv_task *m, uint8_t *row, int64_t r, int h)
{
    int64_t d = m->src.cols / m->heads, first = h * d;
    uint32_t most = 0, u;
    for (int64_t i = first; i < first + d; i++) {
        float v = get(m->src, r, i);
        memcpy(&u, &v, 4);
        most = (u & 0x7fffffff) > most ? u & 0x7fffffff : most;
    }
    uint32_t scale = kv8_scale(most);
    for (int64_t i = 0; i < d; i++)
        row[h * d + i] = kv8_code(get(m->src, r, first + i), scale);
    row[m->heads * d + h] = (uint8_t)scale;
}

static void quantize_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct kv_task *m = arg;
    for (int64_t r = begin; r < end; r++) {
        uint8_t *row = m->rows ? m->rows[r].data : (uint8_t *)m->dst.data + r * m->dst.stride;
        for (int h = 0; h < m->heads; h++)
            quantize_head(m, row, r, h);
    }
}

static void check(struct tensor dst, struct tensor src, int heads)
{
    if (dst.dtype != DT_F8E4M3 || src.cols % heads || dst.cols != kv8_cols(heads, src.cols / heads))
        bug("%d heads, %lld columns in all, as rows of %s of %lld", heads, (long long)src.cols,
            dtype_name(dst.dtype), (long long)dst.cols);
}

enum { SMALL = 16 }; /* rows not worth waking another thread for */

static void cpu_kv_quantize(struct backend *b, struct tensor dst, struct tensor src, int heads)
{
    struct kv_task m = {dst, NULL, src, heads};
    check(dst, src, heads);
    pool_for(b->pool, src.rows, SMALL, quantize_rows, &m);
}

static void cpu_kv_quantize_batch(struct backend *b, const struct tensor *dst, struct tensor src, int heads)
{
    struct kv_task m = {{0}, dst, src, heads};
    for (int64_t r = 0; r < src.rows; r++)
        check(dst[r], src, heads);
    pool_for(b->pool, src.rows, SMALL, quantize_rows, &m);
}

struct tensor kv8_dequantize(struct tensor t, int heads, int d)
{
    int64_t cols = (int64_t)heads * d;
    float *out = xmalloc((unsigned long)(t.rows * cols) + 1, sizeof *out);
    for (int64_t r = 0; r < t.rows; r++) {
        const uint8_t *row = (const uint8_t *)t.data + r * t.stride;
        for (int64_t i = 0; i < cols; i++)
            out[r * cols + i] = f8e4m3_to_f32(row[i]) * kv8_factor(row[cols + i / d]);
    }
    return (struct tensor){out, DT_F32, t.rows, cols, cols};
}

void ops_kv8_fill(struct ops *o)
{
    o->kv_quantize = cpu_kv_quantize;
    o->kv_quantize_batch = cpu_kv_quantize_batch;
}
