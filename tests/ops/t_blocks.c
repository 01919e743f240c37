/* t_blocks.c - compares the block types of GGUF files with the gguf package (tests/golden/blocks, made by
 * tests/reference/make_blocks.py), and products with them with products of their values, on every
 * instruction set. */
#include "check.h"
#include "gguf.h"
#include "golden.h"
#include "products.h"

#include "ops/gguf_rows.h"
#include "ops/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 41 };

static uint8_t *draw_blocks(uint64_t seed, uint32_t type, int64_t rows, int64_t cols)
{
    size_t n = (size_t)rows * gguf_row_bytes(type, cols);
    uint8_t *out = malloc(n);
    gguf_draw((enum ggml_type)type, seed, 0, out, n);
    return out;
}

static void check_numbers(const struct golden *g, uint32_t type)
{
    struct golden_array want = golden_find(g, ggml_type_name(type));
    float row[512];
    if (!want.data || want.cols != 512)
        fail_msg("no golden data of %s", ggml_type_name(type));
    uint8_t *blocks = draw_blocks(SEED, type, want.rows, want.cols);
    for (int64_t r = 0; r < want.rows; r++) {
        const float *w = (const float *)want.data + r * want.cols;
        gguf_row(type, blocks + (size_t)r * gguf_row_bytes(type, want.cols), want.cols, row);
        for (int64_t k = 0; k < want.cols; k++)
            if (memcmp(row + k, w + k, sizeof *w) != 0)
                fail_msg("%s: number %d is %.9g, not %.9g", ggml_type_name(type), (int)k, (double)row[k],
                         (double)w[k]);
    }
    free(blocks);
}

static void t_numbers(void **state)
{
    struct golden g;
    int types = 0;
    golden_open(&g, "blocks");
    for (uint32_t type = 0; type < GGML_TYPES; type++) {
        bool absent =
            type == GGML_Q8_1 || type == GGML_Q8_K || type == GGML_F64; /* not decoded by the package */
        if (!gguf_is_coded(type) || absent)
            continue;
        check_numbers(&g, type);
        types++;
    }
    golden_close(&g);
    assert_int_equal(types, 23);
}

/* Types without golden data: a value is d times the code. */
static void t_by_hand(void **state)
{
    uint8_t block[292] = {0};
    float out[256], d = 0.75f;
    double x = 1.0 / 3;
    memcpy(block, &d, sizeof d);
    block[4] = 3;
    block[4 + 255] = 0x80;
    gguf_row(GGML_Q8_K, block, 256, out);
    assert_true(out[0] == 2.25f && out[1] == 0 && out[255] == -96);
    memcpy(block, (const uint8_t[]){0x00, 0x3a, 0xff, 0xff}, 4); /* 0.75, and an unused sum */
    gguf_row(GGML_Q8_1, block, 32, out);
    assert_true(out[0] == 2.25f && out[31] == 0);
    gguf_row(GGML_F64, (const uint8_t *)&x, 1, out);
    assert_true(out[0] == (float)x);
    assert_true(quant_half(0.75f) == 0x3a00 && quant_half(-1e9f) == 0xfbff && quant_half(0x1p-24f) == 1);
    assert_true(quant_half(0x1.5p-24f) == 1 && quant_half(2049) == 0x6800 && quant_half(2051) == 0x6802);
}

/* Infinite and NaN scales are detected in every type that can represent them. */
static void t_finite(void **state)
{
    for (uint32_t type = 0; type < GGML_TYPES; type++) {
        uint8_t block[292];
        if (!gguf_is_coded(type))
            continue;
        gguf_draw((enum ggml_type)type, SEED, 15, block, (size_t)ggml_block_bytes(type));
        assert_true(gguf_finite(type, block));
        gguf_draw((enum ggml_type)type, SEED, 31, block, (size_t)ggml_block_bytes(type));
        if (type == GGML_F64 || type == GGML_Q8_K)
            memset(block, 0xff, 8);
        if (type == GGML_MXFP4)
            block[0] = 255;
        if (type == GGML_MXFP4)
            block[1] = 0x77;
        if (gguf_finite(type, block) != (type == GGML_NVFP4))
            fail_msg("%s with an infinite scale", ggml_type_name(type));
    }
}

/* Reads a row in the format to which its type is converted. */
static void kept_row(const struct quant_source *s, int64_t n, float *out)
{
    enum quant_format to = gguf_kept(s->gguf);
    int64_t span = quant_group(to), words = quant_groups(to, s->cols) / (s->cols / span);
    uint8_t *codes = malloc((size_t)s->cols);
    uint16_t *groups = malloc((size_t)s->cols * sizeof *groups);
    struct quant_row row = {codes, groups, 0, out};
    quant_make_row(to, s, n, &row);
    for (int64_t k = 0; k < s->cols; k++)
        out[k] = to == QUANT_F4 ? bf16_to_f32(groups[k / span]) * quant_value(to, codes[k])
                                : blocks_value(to, codes[k], groups + k / span * words, k % span);
    free(codes);
    free(groups);
}

static const struct {
    uint32_t type;
    bool exact;
} kept[] = {{GGML_Q4_0, true},     {GGML_Q4_1, true},    {GGML_Q5_0, true},   {GGML_Q5_1, true},
            {GGML_Q8_0, true},     {GGML_Q8_1, true},    {GGML_Q2_K, false},  {GGML_Q3_K, true},
            {GGML_Q4_K, true},     {GGML_Q5_K, true},    {GGML_Q6_K, true},   {GGML_Q8_K, true},
            {GGML_IQ2_XXS, false}, {GGML_IQ2_XS, false}, {GGML_IQ2_S, false}, {GGML_IQ3_XXS, true},
            {GGML_IQ3_S, true},    {GGML_IQ1_S, true},   {GGML_IQ1_M, true},  {GGML_IQ4_NL, true},
            {GGML_IQ4_XS, false},  {GGML_TQ1_0, true},   {GGML_TQ2_0, true},  {GGML_MXFP4, true},
            {GGML_NVFP4, true}};
enum { KEPT = sizeof kept / sizeof *kept };

static void t_kept(void **state)
{
    enum { COLS = 512, GROUP = 16 };
    for (int i = 0; i < KEPT; i++) {
        float have[COLS], want[COLS], worst = 0;
        uint8_t *blocks = draw_blocks(SEED, kept[i].type, 1, COLS);
        int64_t bytes = (int64_t)gguf_row_bytes(kept[i].type, COLS);
        struct quant_source s = {1, COLS, {blocks, DT_U8, 1, bytes, bytes}, .scale = 1, .gguf = kept[i].type};
        quant_source_row(&s, 0, want);
        kept_row(&s, 0, have);
        for (int g = 0; g < COLS; g += GROUP) {
            float most = 0, off = 0;
            for (int k = g; k < g + GROUP; k++) {
                most = fmaxf(most, fabsf(want[k]));
                off = fmaxf(off, fabsf(have[k] - want[k]));
            }
            worst = fmaxf(worst, most > 0 ? off / most : off);
        }
        if (!(worst <= (kept[i].exact ? 0 : 1 / 2048.0f)))
            fail_msg("%s: off by %g of a group", ggml_type_name(kept[i].type), (double)worst);
        free(blocks);
    }
}

/* Int4 uses the codes of Q4_0, with scales rounded to bf16. */
static void t_int4(void **state)
{
    enum { COLS = 512 };
    uint8_t *blocks = draw_blocks(SEED, GGML_Q4_0, 1, COLS), codes[COLS];
    uint16_t groups[COLS];
    float room[COLS], want[COLS];
    struct quant_source s = {
        1, COLS, {blocks, DT_U8, 1, COLS / 32 * 18, COLS / 32 * 18}, .scale = 1, .gguf = GGML_Q4_0};
    struct quant_row row = {codes, groups, 0, room};
    quant_source_row(&s, 0, want);
    quant_make_row(QUANT_I4, &s, 0, &row);
    for (int k = 0; k < COLS; k++) {
        float have = bf16_to_f32(groups[k / 32]) * quant_value(QUANT_I4, codes[k]);
        assert_true(fabsf(have - want[k]) <= fabsf(want[k]) / 256);
    }
    free(blocks);
}

struct product {
    struct backend *b;
    uint32_t type;
    struct quant_source source;
    float *values;
};

static void product_open(struct product *p, int64_t rows, int64_t cols, uint64_t seed)
{
    uint8_t *blocks = draw_blocks(seed, p->type, rows, cols);
    int64_t bytes = (int64_t)gguf_row_bytes(p->type, cols);
    p->source = (struct quant_source){.rows = rows,
                                      .cols = cols,
                                      .stored = {blocks, DT_U8, rows, bytes, bytes},
                                      .scale = 1,
                                      .gguf = p->type};
    p->values = malloc((size_t)(rows * cols) * sizeof *p->values);
    for (int64_t r = 0; r < rows; r++)
        kept_row(&p->source, r, p->values + r * cols);
}

static void product_close(struct product *p)
{
    free(p->source.stored.data);
    free(p->values);
}

static void t_products(void **state)
{
    static const int64_t sizes[][3] = {
        {70, 512, 1}, {33, 256, 3}, {64, 1024, 30}, {1, 256, 2}, {130, 256, 7}};
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    uint64_t rng = check_seed();
    for (int i = 0; i < n; i++) {
        struct product p = {.b = backend_cpu(names[i], NULL, NULL)};
        double worst = 0;
        for (int f = 0; f < KEPT; f++) {
            double off = 0;
            p.type = kept[f].type;
            for (int k = 0; k < 10; k++) {
                product_open(&p, sizes[k / 2][0], sizes[k / 2][1], rng);
                off = check_worse(off, product_apart(p.b, gguf_kept(p.type), &p.source, p.values,
                                                     k % 2 ? DT_BF16 : DT_F32, sizes[k / 2][2], &rng));
                product_close(&p);
            }
            if (!(off < 1e-5)) /* 8-bit weights are multiplied with 16-bit activations */
                fail_msg("%s, %s: off by %g", names[i], ggml_type_name(p.type), off);
            worst = check_worse(worst, off);
        }
        check_note("%-10s off by %.1e of the norms of its factors", names[i], worst);
        backend_free(p.b);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("values of all 23 types have the bits that the gguf package reads", t_numbers),
    CLAIM("types that the package does not read are the code times the scale", t_by_hand),
    CLAIM("infinite scales are detected in every type", t_finite),
    CLAIM("the format to which a type is converted has its values, or scales rounded to f16", t_kept),
    CLAIM("int4 has the codes of Q4_0", t_int4),
    CLAIM("products with blocks equal products with their values, alone and in a batch", t_products),
};

CHECK_MAIN()
