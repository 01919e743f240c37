/* gguf.c - see gguf.h. */
#include "gguf.h"

#include "base/gguf.h"

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

uint64_t gguf_bytes(enum gguf_type type, uint64_t count)
{
    return count / (uint64_t)ggml_block(type) * (uint64_t)ggml_block_bytes(type);
}

void gguf_tensor(struct gguf *g, const char *name, enum gguf_type type, const int64_t *shape, int dims)
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

/* A positive normal half next to f; what is too small for one is 0. */
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
