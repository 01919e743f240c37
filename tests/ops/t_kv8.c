/* t_kv8.c - tests of 8-bit keys and values: the stored rows, attention over them on every instruction set,
 * and a model that uses them.
 *
 * bf16 represents every stored value exactly, so attention over 8-bit rows is bit-identical to attention
 * over their values.
 */
#include "kv_claims.h"
#include "lab.h"
#include "tiny_check.h"

#include "ops/kv8.h"
#include "ops/ops.h"

#include <math.h>

/* ---- rows ------------------------------------------------------------------------------------ */

static void set(struct tensor t, int64_t r, int64_t c, float v)
{
    int64_t i = r * t.stride + c;
    if (t.dtype == DT_BF16)
        ((uint16_t *)t.data)[i] = bf16_from_f32(v);
    else
        ((float *)t.data)[i] = v;
}

/* Returns number c of head h in a row, decoded as documented in kv8.h. */
static double value(const uint8_t *row, int heads, int d, int h, int c)
{
    int scale = row[heads * d + h];
    double code = (double)f8e4m3_to_f32(row[h * d + c]);
    return scale == 0 ? 0 : scale == 255 ? NAN : ldexp(code, scale - 247);
}

/* Checks one head of a row: each number is the nearest representable one, and the scale is the smallest
 * that fits the largest number. */
static void check_head(struct tensor x, int64_t r, const uint8_t *row, int heads, int d, int h)
{
    double most = 0;
    bool whole = true;
    for (int c = 0; c < d; c++) {
        most = fmax(most, fabs((double)lab_at(x, r, h * d + c)));
        whole &= isfinite(lab_at(x, r, h * d + c)) != 0;
    }
    int scale = row[heads * d + h];
    if (whole && most > 0 && most <= 57344 && scale > 147) {
        assert_true(most <= ldexp(448, scale - 247));
        assert_true(most > ldexp(448, scale - 248));
    }
    for (int c = 0; c < d; c++) {
        double v = (double)lab_at(x, r, h * d + c), have = value(row, heads, d, h, c), off = fabs(have - v);
        if (!whole) {
            assert_true(isnan(have));
            continue;
        }
        if (fabs(v) > 57344) {
            assert_true(have == copysign(57344, v));
            continue;
        }
        for (int code = 0; code < 127; code++)
            assert_true(most == 0 ||
                        off <= fabs(ldexp((double)f8e4m3_to_f32((uint8_t)code), scale - 247) - fabs(v)));
        assert_true(signbit(have) == signbit(v) || have == 0);
    }
}

static void fill_head(struct tensor x, int64_t r, int first, int d)
{
    static const float hard[] = {0,        -0.0f,     448, 57344,  60000,   -3e38f,
                                 INFINITY, -INFINITY, NAN, 1e-40f, 0x1p-92f};
    double most = exp2(lab_between(-100, 16));
    for (int c = 0; c < d; c++)
        set(x, r, first + c, (float)((check_random(&lab_random) * 2 - 1) * most));
    if (lab_between(0, 3) == 0)
        set(x, r, first + lab_between(0, d - 1), hard[lab_between(0, 10)]);
    if (lab_between(0, 9) == 0)
        for (int c = 0; c < d; c++)
            set(x, r, first + c, 0);
}

static void t_rows(void **state)
{
    struct pool *pool = pool_new(2);
    struct backend *b = backend_cpu(NULL, pool, NULL), *one = backend_cpu("ref", NULL, NULL);
    for (int round = 0; round < 60; round++) {
        int rows = lab_between(1, 60), heads = lab_between(1, 9), d = lab_between(1, 70);
        int64_t cols = kv8_cols(heads, d);
        struct tensor block = b->ops->alloc(b, round % 2 ? DT_BF16 : DT_F32, rows, heads * d + 3),
                      x = tensor_cols(block, round % 3, heads * d),
                      y = b->ops->alloc(b, DT_F8E4M3, rows, cols),
                      z = b->ops->alloc(b, DT_F8E4M3, rows, cols);
        assert_true(cols % 16 == 0 && cols >= heads * d + heads && cols < heads * d + heads + 16);
        for (int64_t r = 0; r < rows; r++)
            for (int h = 0; h < heads; h++)
                fill_head(x, r, h * d, d);
        b->ops->kv_quantize(b, y, x, heads);
        struct tensor row[60];
        for (int r = 0; r < rows; r++)
            row[r] = tensor_rows(z, r, 1);
        one->ops->kv_quantize_batch(one, row, x, heads);
        assert_memory_equal(y.data, z.data, (size_t)(rows * cols));
        for (int64_t r = 0; r < rows; r++) {
            const uint8_t *p = (const uint8_t *)y.data + r * cols;
            for (int h = 0; h < heads; h++)
                check_head(x, r, p, heads, d, h);
            for (int64_t c = heads * d + heads; c < cols; c++)
                assert_int_equal(p[c], 0);
        }
        b->ops->free(b, &block);
        b->ops->free(b, &y);
        b->ops->free(b, &z);
    }
    backend_free(b);
    backend_free(one);
    pool_free(pool);
}

/* ---- attention ------------------------------------------------------------------------------- */

enum { MOST = 4 };

struct cache {
    struct tensor small, wide; /* the same values in 8 bits and in act */
};

/* Returns `rows` rows; the memory around them contains other values. */
static struct cache cache_of(struct backend *b, enum dtype act, int rows, int heads, int d)
{
    struct tensor x = b->ops->alloc(b, act, rows, heads * d);
    struct cache c = {b->ops->alloc(b, DT_F8E4M3, rows, kv8_cols(heads, d)),
                      b->ops->alloc(b, act, rows, heads * d)};
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < heads * d; i++)
            set(x, r, i, (float)((check_random(&lab_random) * 2 - 1) * exp2(lab_between(-6, 0))));
    b->ops->kv_quantize(b, c.small, x, heads);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < heads * d; i++) {
            double v = value((const uint8_t *)c.small.data + r * c.small.stride, heads, d, i / d, i % d);
            set(c.wide, r, i, (float)v);
            assert_true((double)lab_at(c.wide, r, i) == v); /* exact in both types */
        }
    b->ops->free(b, &x);
    return c;
}

static void drop(struct backend *b, struct cache *c)
{
    b->ops->free(b, &c->small);
    b->ops->free(b, &c->wide);
}

static void attention(struct backend *b, enum dtype act)
{
    int heads = lab_between(1, 3), group = lab_between(1, 5),
        d = lab_between(0, 2) ? lab_between(1, 90) : 128, T = lab_between(1, 40),
        past = lab_between(0, 3) ? lab_between(0, 60) : lab_between(200, 600);
    int64_t width = (int64_t)heads * group * d;
    struct tensor q = b->ops->alloc(b, act, T, width), y = b->ops->alloc(b, act, T, width),
                  z = b->ops->alloc(b, act, T, width), ks[MOST], vs[MOST], kw[MOST], vw[MOST];
    for (int r = 0; r < T; r++)
        for (int64_t c = 0; c < width; c++)
            set(q, r, c, (float)(check_random(&lab_random) * 6 - 3));
    struct cache k = cache_of(b, act, past + T, heads, d), v = cache_of(b, act, past + T, heads, d);
    b->ops->attend_tokens(b, y, q, k.small, v.small, heads * group, heads, past);
    b->ops->attend_tokens(b, z, q, k.wide, v.wide, heads * group, heads, past);
    assert_memory_equal(y.data, z.data, (size_t)(T * width) * dtype_size(act));
    int n = T < MOST ? T : MOST;
    for (int i = 0; i < n; i++) {
        int rows = lab_between(1, past + T);
        ks[i] = tensor_rows(k.small, 0, rows), vs[i] = tensor_rows(v.small, 0, rows);
        kw[i] = tensor_rows(k.wide, 0, rows), vw[i] = tensor_rows(v.wide, 0, rows);
    }
    b->ops->attend_batch(b, tensor_rows(y, 0, n), tensor_rows(q, 0, n), ks, vs, heads * group, heads);
    b->ops->attend_batch(b, tensor_rows(z, 0, n), tensor_rows(q, 0, n), kw, vw, heads * group, heads);
    assert_memory_equal(y.data, z.data, (size_t)(n * width) * dtype_size(act));
    drop(b, &k);
    drop(b, &v);
    b->ops->free(b, &q);
    b->ops->free(b, &y);
    b->ops->free(b, &z);
}

static void t_attention(void **state)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    struct pool *pool = pool_new(2);
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(isa[i], pool, NULL);
        for (int round = 0; round < 16; round++)
            attention(b, round % 2 ? DT_BF16 : DT_F32);
        backend_free(b);
    }
    pool_free(pool);
}

/* A key with NaN affects every result that attends to it, and no other head. */
static void check_nan(struct backend *b)
{
    enum { HEADS = 2, D = 48, KEYS = 20 };
    struct tensor x = b->ops->alloc(b, DT_BF16, KEYS, HEADS * D),
                  q = b->ops->alloc(b, DT_BF16, KEYS, HEADS * D),
                  y = b->ops->alloc(b, DT_BF16, KEYS, HEADS * D),
                  k = b->ops->alloc(b, DT_F8E4M3, KEYS, kv8_cols(HEADS, D));
    for (int r = 0; r < KEYS; r++)
        for (int c = 0; c < HEADS * D; c++)
            set(x, r, c, 0.5f), set(q, r, c, 0.25f);
    set(x, 7, D + 3, NAN);
    b->ops->kv_quantize(b, k, x, HEADS);
    b->ops->attend_tokens(b, y, q, k, k, HEADS, HEADS, 0);
    for (int r = 0; r < KEYS; r++)
        for (int c = 0; c < HEADS * D; c++)
            assert_true(c < D ? !isnan(lab_at(y, r, c)) : r < 7 || isnan(lab_at(y, r, c)));
    struct tensor *all[] = {&x, &q, &y, &k};
    for (int t = 0; t < 4; t++)
        b->ops->free(b, all[t]);
}

static void t_nan(void **state)
{
    lab_each_isa(check_nan);
}

/* ---- a model --------------------------------------------------------------------------------- */

static void t_model(void **state)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    for (int i = 0; i < n; i++)
        kv_claims_check(&tiny, "cpu", isa[i]);
}

/* A query sees 8-bit keys, whether or not they were prefilled in the same piece. */
static void t_pieces(void **state)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    for (int i = 0; i < n; i++) {
        struct engine *g = kv_claims_engine(&tiny, "cpu", isa[i], true, false);
        struct session *whole = session_new(g, 1), *pieces = session_new(g, 1);
        int32_t ids[96];
        for (int t = 0; t < 96; t++)
            ids[t] = lab_between(16, 271);
        assert_int_equal(session_append(whole, ids, 96, NULL), 0);
        for (int t = 0; t < 96; t += 32) { /* at chunk boundaries, because a scan rounds at its end */
            assert_int_equal(session_append(pieces, ids + t, 32, NULL), 0);
            assert_int_equal(session_prefill(pieces, NULL), 0);
        }
        assert_memory_equal(session_logits(whole), session_logits(pieces),
                            (size_t)engine_vocab(g) * sizeof(float));
        session_free(whole);
        session_free(pieces);
        engine_close(g);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a row holds the nearest representable numbers, or NaN if its input is not finite", t_rows),
    CLAIM("attention over 8-bit rows has the bits of attention over their values", t_attention),
    CLAIM("NaN in a key shows in the results", t_nan),
    CLAIM("rewind, fork, save and batch keep the bits of a model with 8-bit keys", t_model),
    CLAIM("a text prefilled in pieces has the same bits as prefilled at once", t_pieces),
};

TINY_MAIN(lab_random = check_seed())
