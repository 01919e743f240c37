/* gguf.c - see gguf.h. */
#include "gguf.h"

#include "golden.h"

#include <math.h>
#include <string.h>

enum { MOST = 32 << 20, K_U32 = 4, K_I32 = 5, K_F32 = 6, K_BOOL = 7, K_TEXT = 8, K_ARRAY = 9 };

void gguf_init(struct gguf *g)
{
    *g = (struct gguf){0};
    buf_init(&g->keys, MOST);
    buf_init(&g->tensors, MOST);
}

void gguf_free(struct gguf *g)
{
    buf_free(&g->keys);
    buf_free(&g->tensors);
}

static void put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof v);
}

static void put_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof v);
}

static void put_text(struct buf *b, const char *s, size_t len)
{
    put_u64(b, len);
    buf_put(b, s, len);
}

static void put_key(struct gguf *g, const char *name, uint32_t type)
{
    put_text(&g->keys, name, strlen(name));
    put_u32(&g->keys, type);
    g->n_keys++;
}

static void put_array(struct gguf *g, const char *name, uint32_t type, uint64_t n)
{
    put_key(g, name, K_ARRAY);
    put_u32(&g->keys, type);
    put_u64(&g->keys, n);
}

void gguf_int(struct gguf *g, const char *key, uint32_t v)
{
    put_key(g, key, K_U32);
    put_u32(&g->keys, v);
}

void gguf_float(struct gguf *g, const char *key, float v)
{
    put_key(g, key, K_F32);
    buf_put(&g->keys, &v, sizeof v);
}

void gguf_text(struct gguf *g, const char *key, const char *v)
{
    put_key(g, key, K_TEXT);
    put_text(&g->keys, v, strlen(v));
}

void gguf_flag(struct gguf *g, const char *key)
{
    put_key(g, key, K_BOOL);
    buf_putc(&g->keys, 1);
}

void gguf_false(struct gguf *g, const char *key)
{
    put_key(g, key, K_BOOL);
    buf_putc(&g->keys, 0);
}

void gguf_ints(struct gguf *g, const char *key, const uint32_t *v, uint64_t n)
{
    put_array(g, key, K_I32, n);
    buf_put(&g->keys, v, n * sizeof *v);
}

void gguf_floats(struct gguf *g, const char *key, const float *v, uint64_t n)
{
    put_array(g, key, K_F32, n);
    buf_put(&g->keys, v, n * sizeof *v);
}

void gguf_texts(struct gguf *g, const char *key, uint64_t n)
{
    put_array(g, key, K_TEXT, n);
}

void gguf_item(struct gguf *g, const char *s, size_t len)
{
    put_text(&g->keys, s, len);
}

uint64_t gguf_bytes(enum ggml_type type, uint64_t count)
{
    return count / (uint64_t)ggml_block(type) * (uint64_t)ggml_block_bytes(type);
}

void gguf_tensor(struct gguf *g, const char *name, enum ggml_type type, const int64_t *shape, int dims)
{
    uint64_t count = 1;
    put_text(&g->tensors, name, strlen(name));
    put_u32(&g->tensors, (uint32_t)dims);
    for (int k = dims - 1; k >= 0; k--) {
        put_u64(&g->tensors, (uint64_t)shape[k]);
        count *= (uint64_t)shape[k];
    }
    put_u32(&g->tensors, type);
    put_u64(&g->tensors, g->at);
    g->at += (gguf_bytes(type, count) + GGUF_ALIGN - 1) / GGUF_ALIGN * GGUF_ALIGN;
    g->n_tensors++;
}

void gguf_head(const struct gguf *g, struct buf *out)
{
    buf_init(out, 2 * MOST + 2 * GGUF_ALIGN);
    buf_put(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, g->n_tensors);
    put_u64(out, g->n_keys);
    buf_put(out, g->keys.data, g->keys.len);
    buf_put(out, g->tensors.data, g->tensors.len);
    while (out->len % GGUF_ALIGN)
        buf_putc(out, 0);
}

/* Returns the offsets of f16 scales in a block; -1: none. */
static void find_halves(enum ggml_type type, int at[2])
{
    static const int8_t second[GGML_TYPES] = {
        [GGML_Q4_1] = 2, [GGML_Q5_1] = 2, [GGML_Q4_K] = 2, [GGML_Q5_K] = 2, [GGML_Q2_K] = 82};
    static const uint8_t first[GGML_TYPES] = {
        [GGML_Q2_K] = 80, [GGML_Q3_K] = 108, [GGML_Q6_K] = 208, [GGML_TQ1_0] = 52, [GGML_TQ2_0] = 64};
    bool none = type == GGML_MXFP4 || type == GGML_NVFP4 || type == GGML_IQ1_M || type == GGML_Q8_K ||
                type == GGML_F64;
    at[0] = none ? -1 : first[type];
    at[1] = second[type] ? second[type] : -1;
}

static void set_scales(enum ggml_type type, int exponent, uint8_t *block)
{
    int at[2], e = exponent;
    float f = ldexpf(1, e - 15);
    double d = f;
    find_halves(type, at);
    for (int i = 0; i < 2 && at[i] >= 0; i++) {
        uint16_t h = (uint16_t)(block[at[i]] | block[at[i] + 1] << 8);
        h = (uint16_t)((h & 0x83ff) | (e ? e : 6 + (h >> 10 & 7)) << 10);
        memcpy(block + at[i], &h, sizeof h);
    }
    if (type == GGML_MXFP4)
        block[0] = (uint8_t)(e ? 112 + e : 120 + (block[0] & 7));
    if (type == GGML_IQ1_M)
        block[55] = (uint8_t)((block[55] & 0x8f) | (e ? e >> 2 << 4 : 0x20));
    if (type == GGML_IQ1_M && e)
        block[53] = (uint8_t)((block[53] & 0x3f) | (e & 3) << 6);
    for (int i = 0; type == GGML_NVFP4 && e && i < 4; i++)
        block[i] = (uint8_t)((block[i] & 7) | (e < 9 ? 1 : e > 22 ? 14 : e - 8) << 3);
    if (type == GGML_Q8_K)
        memcpy(block, &f, sizeof f);
    d *= (double)(int8_t)block[7] / 128;
    if (type == GGML_F64)
        memcpy(block, &d, sizeof d);
}

void gguf_draw(enum ggml_type type, uint64_t seed, int exponent, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(golden_mixed(seed, ggml_type_name(type), (int64_t)i) >> 56);
    for (size_t i = 0; i < n; i += (size_t)ggml_block_bytes(type))
        set_scales(type, exponent, out + i);
}

/* Returns a positive normal half close to f, or 0 if f is too small. */
static uint16_t half_from(float f)
{
    int e;
    float m = frexpf(f, &e); /* m in [0.5, 1) */
    if (f < 0x1p-14f)
        return 0;
    return (uint16_t)(((e + 13) << 10) + (int)lrintf((2 * m - 1) * 1024));
}

void gguf_make_q8(const float v[GGUF_BLOCK], struct gguf_q8 *out)
{
    float most = 0;
    for (int i = 0; i < GGUF_BLOCK; i++)
        most = fmaxf(most, fabsf(v[i]));
    float scale = most / 127;
    out->scale = half_from(scale);
    for (int i = 0; i < GGUF_BLOCK; i++)
        out->codes[i] = (int8_t)(out->scale ? lrintf(v[i] / scale) : 0);
}
