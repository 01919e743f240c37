/* synthetic.c - synthetic tensors and weights made on the host (synthetic.h). */
#include "ops/synthetic.h"

#include "base/pool.h"
#include "ops/gguf_rows.h"
#include "ops/ops_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fill_task {
    struct tensor dst;
    const struct synthetic *m;
};

static void fill_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct fill_task *k = arg;
    const struct synthetic m = *k->m;
    struct tensor t = k->dst;
    for (int64_t r = begin; r < end; r++)
        for (int64_t c = 0; c < t.cols; c++) {
            uint64_t i = (uint64_t)(r * t.cols + c);
            int64_t at = r * t.stride + c;
            float v = (synthetic_unit(m.seed, i) + m.offset) * m.spread;
            if (t.dtype == DT_F32)
                ((float *)t.data)[at] = v;
            else if (t.dtype == DT_BF16)
                ((uint16_t *)t.data)[at] = bf16_from_f32(v);
            else
                ((uint8_t *)t.data)[at] = synthetic_e4m3(m.seed, i);
        }
}

static void host_fill_synthetic(struct backend *b, struct tensor dst, const struct synthetic *m)
{
    struct fill_task k = {dst, m};
    pool_for(b->pool, dst.rows, 1, fill_rows, &k);
}

/* Returns a power of two close to x as f16. */
static uint16_t half_near(float x)
{
    int e = 15 + ilogbf(x);
    return (uint16_t)((e < 1 ? 1 : e > 30 ? 30 : e) << 10);
}

/* Fills blocks with random bytes, which are valid codes, and scales that map the largest code to the
 * spread. */
static void fill_blocks(uint8_t *out, uint32_t type, int64_t n, const struct synthetic *m)
{
    static const struct {
        int d, low; /* offsets of the scales; low 0: none */
        float most;
    } of[GGML_TYPES] = {[GGML_Q8_0] = {0, 0, 127},         [GGML_Q4_K] = {0, 2, 63 * 7.5f},
                        [GGML_Q5_K] = {0, 2, 63 * 15.5f},  [GGML_Q6_K] = {208, 0, 127 * 31.0f},
                        [GGML_Q4_1] = {0, 2, 15},          [GGML_Q5_1] = {0, 2, 31},
                        [GGML_Q2_K] = {80, 82, 15 * 3.0f}, [GGML_IQ2_XS] = {0, 0, 43 * 4.0f}};
    int64_t bytes = ggml_block_bytes(type);
    uint16_t d = half_near(m->spread / of[type].most), low = half_near(m->spread / 63);
    for (int64_t i = 0; i < n * bytes; i++)
        out[i] = (uint8_t)(int)((synthetic_unit(m->seed, (uint64_t)i) + 1) * 127.9f);
    for (int64_t i = 0; i < n; i++, out += bytes) {
        memcpy(out + of[type].d, &d, sizeof d);
        if (of[type].low)
            memcpy(out + of[type].low, &low, sizeof low);
    }
}

/* Creates a GPTQ weight of random codes with zero point 8; the largest value is the spread. */
static struct weight *synthetic_gptq(struct backend *b, int64_t rows, int64_t cols, const struct synthetic *m)
{
    size_t codes = (size_t)(rows * cols / 2), groups = (size_t)(rows * (cols / QUANT_GPTQ_GROUP));
    uint8_t *buf = xmalloc(codes + groups * 3 + 1, 1), *zeros = buf + codes, *scales = zeros + groups;
    uint16_t d = half_near(m->spread / 8);
    for (size_t i = 0; i < codes; i++)
        buf[i] = (uint8_t)(int)((synthetic_unit(m->seed, i) + 1) * 127.9f);
    memset(zeros, 0x77, groups);
    for (size_t i = 0; i < groups; i++)
        memcpy(scales + 2 * i, &d, sizeof d);
    struct quant_gptq q = {.codes = buf, .zeros = zeros, .scales = scales, .least = 1};
    struct quant_source s = {.rows = rows, .cols = cols, .gptq = &q};
    void *bytes = NULL;
    size_t size = b->ops->quant_bytes(b, QUANT_GPTQ, rows, cols);
    if (posix_memalign(&bytes, 64, size))
        die(ERR_ENV, "out of memory: %zu bytes requested", size);
    b->ops->quant_pack(b, bytes, QUANT_GPTQ, &s);
    free(buf);
    return b->ops->quant_weight(b, bytes, true, QUANT_GPTQ, rows, cols);
}

struct weight *synthetic_weight(struct backend *b, enum quant_format format, enum dtype dtype, int64_t rows,
                                int64_t cols, const struct synthetic *m)
{
    bool f8 = format == QUANT_F8, f4 = format == QUANT_F4, blocks = quant_is_blocks(format);
    if (format == QUANT_GPTQ)
        return synthetic_gptq(b, rows, cols, m);
    enum dtype type = blocks ? DT_U8 : f8 || f4 ? DT_F8E4M3 : format ? DT_BF16 : dtype;
    uint32_t stored = gguf_of_format(format);
    int64_t wide = blocks ? (int64_t)gguf_row_bytes(stored, cols) : f4 ? cols / 2 : cols;
    struct tensor host = {xmalloc((unsigned long)(rows * wide), dtype_size(type)), type, rows, wide, wide};
    if (blocks)
        fill_blocks(host.data, stored, rows * (cols / ggml_block(stored)), m);
    else
        host_fill_synthetic(b, host, m);
    if (format == QUANT_NONE) {
        struct weight *w = b->ops->pack(b, host, dtype);
        free(host.data);
        return w;
    }
    struct quant_source s = {.rows = rows, .cols = cols, .stored = host, .scale = m->spread / synthetic_f8};
    s.gguf = stored;
    autofree uint8_t *groups = NULL;
    if (f4) { /* any byte is two codes of magnitude up to 6; the scale of every group is one */
        size_t n = (size_t)(rows * quant_groups(format, cols));
        groups = xmalloc(n + 1, 1);
        memset(groups, 0x38, n);
        s.stored.dtype = DT_U8;
        s.groups = groups;
        s.scale = m->spread / 6;
    }
    void *bytes = NULL;
    size_t size = b->ops->quant_bytes(b, format, rows, cols);
    if (posix_memalign(&bytes, 64, size))
        die(ERR_ENV, "out of memory: %zu bytes requested", size);
    b->ops->quant_pack(b, bytes, format, &s);
    free(host.data);
    return b->ops->quant_weight(b, bytes, true, format, rows, cols);
}

void ops_synthetic_fill(struct ops *o)
{
    o->fill_synthetic = host_fill_synthetic;
    o->make_synthetic_weight = synthetic_weight;
}
