/* t_cuda_blocks.c - tests of weights with a record for each block on the device: GGUF's blocks, fp8 in blocks
 * and GPTQ, compared with the scalar reference (see t_cuda_linear.c).  In products of the library their values
 * are rounded to bf16; the reference then multiplies the rounded ones.
 */
#include "check.h"
#include "gguf.h"
#include "lab.h"

#include "ops/gguf_rows.h"
#include "ops/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A matrix as in a file. */
struct matrix {
    struct quant_source source;
    enum quant_format format;
    const char *name;
    uint8_t *bytes;
    struct quant_gptq parts;
    float scales[16];
    int32_t order[1024];
};

static uint8_t *drawn(size_t n)
{
    uint8_t *out = malloc(n);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)lab_between(0, 255);
    return out;
}

static void gguf_matrix(struct matrix *m, enum ggml_type type, int64_t rows, int64_t cols)
{
    int64_t line = (int64_t)gguf_row_bytes(type, cols);
    m->bytes = malloc((size_t)(rows * line));
    gguf_draw(type, (uint64_t)lab_between(1, 1 << 20), 6, m->bytes, (size_t)(rows * line));
    m->source.stored = (struct tensor){m->bytes, DT_U8, rows, line, line};
    m->source.gguf = type;
    m->format = gguf_kept(type);
    m->name = ggml_type_name(type);
}

static void gptq_matrix(struct matrix *m, int64_t rows, int64_t cols, bool moved)
{
    int64_t groups = cols / QUANT_GPTQ_GROUP, codes = rows * cols / 2, zeros = rows * groups / 2;
    m->bytes = drawn((size_t)(codes + zeros + rows * groups * 2));
    uint16_t scale;
    for (int64_t i = 0; i < rows * groups; i++) {
        scale = (uint16_t)(9 << 10 | lab_between(0, 1023)); /* about 1/50 */
        memcpy(m->bytes + codes + zeros + 2 * i, &scale, sizeof scale);
    }
    for (int32_t k = 0; k < cols; k++)
        m->order[k] = k;
    for (int k = (int)cols - 1; k > 0; k--) {
        int other = lab_between(0, k);
        int32_t was = m->order[k];
        m->order[k] = m->order[other];
        m->order[other] = was;
    }
    m->parts =
        (struct quant_gptq){m->bytes, m->bytes + codes, m->bytes + codes + zeros, 1, moved ? m->order : NULL};
    m->source.gptq = &m->parts;
    m->format = QUANT_GPTQ;
    m->name = moved ? "GPTQ, moved" : "GPTQ";
}

static void f8_matrix(struct matrix *m, int64_t rows, int64_t cols)
{
    m->bytes = drawn((size_t)(rows * cols));
    for (int64_t i = 0; i < rows * cols; i++)
        m->bytes[i] = (m->bytes[i] & 127) == 127 ? 0 : m->bytes[i];
    for (int i = 0; i < 16; i++)
        m->scales[i] = (float)lab_uniform(0.001, 0.002);
    m->source.stored = (struct tensor){m->bytes, DT_F8E4M3, rows, cols, cols};
    m->source.blocks = m->scales;
    m->format = QUANT_F8_BLOCKS;
    m->name = "fp8 in blocks";
}

static struct weight *packed(struct backend *b, const struct matrix *m)
{
    const struct quant_source *s = &m->source;
    void *room = NULL;
    assert_int_equal(posix_memalign(&room, 64, b->ops->quant_bytes(b, m->format, s->rows, s->cols)), 0);
    b->ops->quant_pack(b, room, m->format, s);
    return b->ops->quant_weight(b, room, true, m->format, s->rows, s->cols);
}

/* Returns the largest difference from the reference as a multiple of the tolerance, for T rows that begin
 * `skip` columns after the start of x. */
static double product(const struct lab *l, const struct matrix *m, int64_t T, int skip, bool biased,
                      enum accumulate mode)
{
    int64_t N = m->source.rows, K = m->source.cols;
    bool library = T > 16 && l->act == DT_BF16 && (N | K | skip) % 8 == 0;
    struct weight *wr = packed(l->ref, m), *wf = packed(l->fast, m);
    if (library)
        wr = lab_rounded(l, wr, N, K);
    struct tensor X = lab_make(l->mem, l->act, T, K + skip, -1, 1), x = tensor_cols(X, skip, K),
                  want = lab_make(l->mem, l->act, T, N, -1, 1), have = lab_twin(l->mem, want),
                  bias = lab_make(l->mem, DT_F32, 1, N, -1, 1), none = {0};
    l->fast->ops->copy(l->fast, have, want);
    l->ref->ops->linear(l->ref, want, x, wr, biased ? bias : none, EPI_NONE, mode);
    l->fast->ops->linear(l->fast, have, x, wf, biased ? bias : none, EPI_NONE, mode);
    double off =
        lab_worst_within(have, want, mode == ADD && l->act == DT_BF16 ? 0x1p-7 * (1 + lab_largest(want)) : 0);
    l->ref->ops->weight_free(l->ref, wr);
    l->fast->ops->weight_free(l->fast, wf);
    lab_drop(l->mem, 4, (struct tensor *const[]){&X, &want, &have, &bias});
    return off;
}

static void compare(void (*make)(struct matrix *m, int which), int n)
{
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        for (int i = 0; i < n; i++) {
            struct matrix m = {.source.scale = 1};
            make(&m, i);
            static const int64_t tokens[] = {1, 5, 16, 24, 17};
            double worst = 0;
            for (int t = 0; t < 5; t++)
                worst = fmax(worst, product(&l, &m, tokens[t], t % 2 * 3, t > 1, t % 2 ? SET : ADD));
            worst = fmax(worst, product(&l, &m, 40, 8, false, SET));
            worst = fmax(worst, product(&l, &m, 17, 0, true, SET));
            check_note("%s %s, %lldx%lld: %.2f of the tolerance", dtype_name(l.act), m.name,
                       (long long)m.source.rows, (long long)m.source.cols, worst);
            assert_true(worst <= 1);
            free(m.bytes);
        }
        lab_close(&l);
    }
}

static const enum ggml_type types[] = {GGML_Q8_0, GGML_Q4_0, GGML_Q4_1,   GGML_Q5_0, GGML_Q5_1,  GGML_Q4_K,
                                       GGML_Q5_K, GGML_Q6_K, GGML_IQ4_XS, GGML_Q2_K, GGML_IQ2_XS};

static void make_gguf(struct matrix *m, int which)
{
    m->source.rows = 8 * lab_between(1, 9);
    m->source.cols = 256 * lab_between(1, 2);
    gguf_matrix(m, types[which], m->source.rows, m->source.cols);
}

static void make_gptq(struct matrix *m, int which)
{
    m->source.rows = 8 * lab_between(1, 5);
    m->source.cols = 128 * lab_between(1, 4);
    gptq_matrix(m, m->source.rows, m->source.cols, which);
}

/* The second matrix has columns that neither blocks nor runs of eight divide. */
static void make_f8(struct matrix *m, int which)
{
    m->source.rows = which ? 133 : 136;
    m->source.cols = which ? 317 : 264;
    f8_matrix(m, m->source.rows, m->source.cols);
}

static void t_gguf(void **state)
{
    compare(make_gguf, sizeof types / sizeof *types);
}

static void t_gptq(void **state)
{
    compare(make_gptq, 2);
}

static void t_f8(void **state)
{
    compare(make_f8, 2);
}

/* The emulator dequantizes 16 KiB at once, 16 rows of 512 columns: the matrix has seven parts, the last one not
 * whole, and each adds its own part of the bias. */
static void t_parts(void **state)
{
    struct lab l = lab_open(DT_BF16);
    struct matrix m = {.source = {.rows = 104, .cols = 512, .scale = 1}};
    gguf_matrix(&m, GGML_Q8_0, 104, 512);
    for (int T = 17; T <= 136; T *= 8)
        for (int add = 0; add < 2; add++)
            assert_true(product(&l, &m, T, 0, true, add ? ADD : SET) <= 1);
    free(m.bytes);
    lab_close(&l);
}

static void t_bits(void **state)
{
    struct lab l = lab_open(DT_BF16);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct matrix m = {.source = {.rows = 24, .cols = 512, .scale = 1}};
        gguf_matrix(&m, types[i], 24, 512);
        struct weight *w = packed(l.fast, &m);
        struct tensor x = lab_make(l.mem, DT_BF16, 16, 512, -1, 1), none = {0},
                      all = lab_make(l.mem, DT_F32, 16, 24, 0, 0),
                      one = lab_make(l.mem, DT_F32, 16, 24, 0, 0);
        l.fast->ops->linear(l.fast, all, x, w, none, EPI_NONE, SET);
        for (int t = 0; t < 16; t++)
            l.fast->ops->linear(l.fast, tensor_rows(one, t, 1), tensor_rows(x, t, 1), w, none, EPI_NONE, SET);
        assert_memory_equal(all.data, one.data, sizeof(float) * 16 * 24);
        l.fast->ops->weight_free(l.fast, w);
        lab_drop(l.mem, 3, (struct tensor *const[]){&x, &all, &one});
        free(m.bytes);
    }
    lab_close(&l);
}

static const struct CMUnitTest tests[] = {
    CLAIM("products with blocks of GGUF equal the reference, for few rows and many", t_gguf),
    CLAIM("products with GPTQ weights equal the reference, with columns in order or moved", t_gptq),
    CLAIM("products with fp8 in blocks equal the reference, also for odd sizes", t_f8),
    CLAIM("products with several dequantized parts add the bias of each part, to y or instead of it",
          t_parts),
    CLAIM("a row has the same bits alone and among sixteen", t_bits),
};

CHECK_MAIN(lab_random = check_seed())
