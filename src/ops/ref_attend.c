/* ref_attend.c - the scalar reference of attention. */
#include "ops/ref.h"

/* Computes softmax(q k / sqrt d) v for one query over n keys starting at row0; qc, kc, vc, yc: first
 * columns of the head. */
static void attend_one(struct tensor y, struct tensor q, struct tensor k, struct tensor v, int64_t t,
                       int64_t row0, int64_t n, int64_t yc, int64_t qc, int64_t kc, int64_t vc, int d,
                       float *p)
{
    float scale = 1.0f / sqrtf((float)d), most = -INFINITY, total = 0;
    for (int64_t s = 0; s < n; s++) {
        float dot = 0;
        for (int c = 0; c < d; c++)
            dot += get(q, t, qc + c) * get(k, row0 + s, kc + c);
        p[s] = dot * scale;
        most = p[s] > most ? p[s] : most;
    }
    for (int64_t s = 0; s < n; s++)
        total += p[s] = expf(p[s] - most);
    for (int c = 0; c < d; c++) {
        float sum = 0;
        for (int64_t s = 0; s < n; s++)
            sum += p[s] * get(v, row0 + s, vc + c);
        put(y, t, yc + c, sum / total);
    }
}

static void ref_attend_tokens(struct backend *b, struct tensor y, struct tensor q, struct tensor k,
                              struct tensor v, int q_heads, int kv_heads, int64_t past)
{
    int d = (int)(q.cols / q_heads);
    bool quantized = k.dtype == DT_F8E4M3;
    if (quantized) {
        k = kv8_dequantize(k, kv_heads, d);
        v = kv8_dequantize(v, kv_heads, d);
    }
    autofree float *p = xmalloc((unsigned long)(past + q.rows), sizeof *p);
    for (int64_t t = 0; t < q.rows; t++)
        for (int h = 0; h < q_heads; h++) {
            int64_t kc = (int64_t)(h / (q_heads / kv_heads)) * d;
            attend_one(y, q, k, v, t, 0, past + t + 1, (int64_t)h * d, (int64_t)h * d, kc, kc, d, p);
        }
    if (quantized) {
        free(k.data);
        free(v.data);
    }
}

static void ref_attend_batch(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                             const struct tensor *v, int q_heads, int kv_heads)
{
    for (int64_t t = 0; t < q.rows; t++)
        ref_attend_tokens(b, tensor_rows(y, t, 1), tensor_rows(q, t, 1), k[t], v[t], q_heads, kv_heads,
                          k[t].rows - 1);
}

static void ref_attend_tiles(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles)
{
    int64_t n = y.rows / tiles, width = y.cols;
    int d = (int)(width / heads);
    autofree float *p = xmalloc((unsigned long)n, sizeof *p);
    for (int64_t t = 0; t < y.rows; t++)
        for (int h = 0; h < heads; h++) {
            int64_t c = (int64_t)h * d;
            attend_one(y, qkv, qkv, qkv, t, t / n * n, n, c, c, width + c, 2 * width + c, d, p);
        }
}

static void ref_rotate(struct backend *b, struct tensor x, struct tensor table, int heads)
{
    int64_t d = x.cols / heads, half = d / 2;
    for (int64_t t = 0; t < x.rows; t++)
        for (int64_t i = 0; i < heads * half; i++) {
            int64_t pair = i % half, at = i / half * d + pair;
            float c = get(table, t, pair), s = get(table, t, half + pair);
            float a = get(x, t, at), z = get(x, t, at + half);
            put(x, t, at, a * c - z * s);
            put(x, t, at + half, z * c + a * s);
        }
}

void ref_attend_fill(struct ops *o)
{
    o->attend_tokens = ref_attend_tokens;
    o->attend_batch = ref_attend_batch;
    o->attend_tiles = ref_attend_tiles;
    o->rotate = ref_rotate;
}
