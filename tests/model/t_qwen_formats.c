/* t_qwen_formats.c - tests of quantized files of the Qwen3.5 family: e4m3 in blocks of 128 x 128, and NVFP4
 * as written by two tools.  A file in codes must compute the same as the model with the codes' values in
 * f32. */
#include "check.h"
#include "golden.h"
#include "products.h"
#include "tiny_qwen.h"

#include "ops/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng;

static float between(float lo, float hi)
{
    return lo + (hi - lo) * (float)check_random(&rng);
}

/* ---- products ------------------------------------------------------------------------------------------ */

enum { MOST_ROWS = 300, MOST_COLS = 270, MOST_TOKENS = 30 };

/* A random matrix in codes, and its values. */
struct coded {
    uint8_t codes[MOST_ROWS * MOST_COLS];
    float blocks[9], values[MOST_ROWS * MOST_COLS];
    struct quant_source source;
};

static void make_coded(struct coded *m, int64_t rows, int64_t cols)
{
    int64_t across = (cols + 127) / 128;
    for (int i = 0; i < 9; i++)
        m->blocks[i] = between(0.001f, 0.02f); /* not representable in bf16 */
    for (int64_t i = 0; i < rows * cols; i++) {
        m->codes[i] = (uint8_t)(check_random(&rng) * 127) | (check_random(&rng) < 0.5 ? 128 : 0);
        m->values[i] = f8e4m3_to_f32(m->codes[i]) * m->blocks[i / cols / 128 * across + i % cols / 128];
    }
    m->source =
        (struct quant_source){rows, cols, {m->codes, DT_F8E4M3, rows, cols, cols}, .blocks = m->blocks};
}

static void t_products(void **state)
{
    static const int64_t sizes[][3] = {{300, 270, 1}, {256, 256, 3}, {130, 100, 30}, {1, 129, 2}};
    static struct coded m;
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    rng = check_seed();
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        double worst = 0;
        for (int k = 0; k < 8; k++) {
            make_coded(&m, sizes[k / 2][0], sizes[k / 2][1]);
            worst = check_worse(worst, product_apart(b, QUANT_F8_BLOCKS, &m.source, m.values,
                                                     k % 2 ? DT_BF16 : DT_F32, sizes[k / 2][2], &rng));
        }
        check_note("%-10s off by %.1e of the norms of its factors", names[i], worst);
        assert_true(worst < 5e-7);
        backend_free(b);
    }
}

/* Compares values and product with torch's, for random scales. */
static void t_torch(void **state)
{
    static const struct tensor none = {0};
    enum { ROWS = 200, COLS = 300 };
    struct golden g;
    golden_open(&g, "fp8_blocks");
    struct golden_array scales = golden_find(&g, "scales"), x = golden_find(&g, "x"),
                        values = golden_find(&g, "values"), want = golden_find(&g, "product");
    uint8_t *codes = malloc(ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++) {
        codes[i] = (uint8_t)(golden_mixed(g.seed, "codes", i) >> 56);
        codes[i] = (codes[i] & 127) == 127 ? 0 : codes[i];
    }
    struct quant_source s = {ROWS, COLS, {codes, DT_F8E4M3, ROWS, COLS, COLS}, .blocks = scales.data};
    float row[COLS];
    for (int64_t r = 0; r < values.rows; r++) {
        quant_source_row(&s, json_integer_value(json_array_get(values.which, (size_t)r)), row);
        assert_memory_equal(row, (const float *)values.data + r * COLS, sizeof row);
    }
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        void *bytes = NULL;
        assert_int_equal(posix_memalign(&bytes, 64, b->ops->quant_bytes(b, QUANT_F8_BLOCKS, ROWS, COLS)), 0);
        b->ops->quant_pack(b, bytes, QUANT_F8_BLOCKS, &s);
        struct weight *w = b->ops->quant_weight(b, bytes, true, QUANT_F8_BLOCKS, ROWS, COLS);
        struct tensor y = b->ops->alloc(b, DT_F32, x.rows, ROWS), in = b->ops->alloc(b, DT_F32, x.rows, COLS);
        b->ops->upload(b, in, (struct tensor){(void *)(uintptr_t)x.data, DT_F32, x.rows, COLS, COLS});
        b->ops->linear(b, y, in, w, none, EPI_NONE, SET);
        double most = 0, off = 0;
        for (int64_t k = 0; k < x.rows * ROWS; k++) {
            double v = (double)((const float *)want.data)[k];
            most = fmax(most, fabs(v));
            off = check_worse(off, fabs(v - (double)((const float *)y.data)[k / ROWS * y.stride + k % ROWS]));
        }
        check_note("%-10s off by %.1e of the largest", names[i], off / most);
        assert_true(off < 2e-6 * most);
        b->ops->free(b, &y);
        b->ops->free(b, &in);
        b->ops->weight_free(b, w);
        backend_free(b);
    }
    free(codes);
    golden_close(&g);
}

/* ---- directories --------------------------------------------------------------------------------------- */

enum form { F8_BLOCKS, F8_BLOCKS_F16, F8_BLOCKS_F32, F4_MODELOPT, F4_PACKED };

static bool is_f8(enum form form)
{
    return form <= F8_BLOCKS_F32;
}

/* Returns the scale of block i, rounded to its type. */
static float block_scale(enum form form, int64_t i)
{
    float scale = 0.0625f * (1 + 0.0123457f * (float)i);
    return form == F8_BLOCKS ? 0.0625f : form == F8_BLOCKS_F16 ? f16_to_f32(quant_half(scale)) : scale;
}

static void put_scales(struct tiny *t, const char *name, enum form form, int64_t rows)
{
    static const char *const types[] = {"BF16", "F16", "F32"};
    uint8_t bytes[64];
    for (int64_t i = 0; i < rows; i++) {
        float scale = block_scale(form, i);
        uint16_t half = form == F8_BLOCKS ? bf16_from_f32(scale) : quant_half(scale);
        if (form == F8_BLOCKS_F32)
            memcpy(bytes + 4 * i, &scale, sizeof scale);
        else
            memcpy(bytes + 2 * i, &half, sizeof half);
    }
    tiny_put(t, name, "", types[form], bytes, rows, 1);
}

/* Stores the weight `front` as codes, and in `plain` as their values in f32. */
static void encode(struct tiny *t, struct tiny *plain, const char *front, enum form form)
{
    char name[160], weight[160];
    snprintf(weight, sizeof weight, "%s.weight", front);
    struct tiny_tensor *x = tiny_find(t, weight), *y = tiny_find(plain, weight);
    int64_t rows = x->shape[0], cols = x->shape[1], groups = cols / 16;
    float *values = (float *)(void *)y->data, scale = 0.0625f, divisor = 16;
    uint8_t *codes = calloc((size_t)(rows * cols), 1), *marks = malloc((size_t)(rows * groups + 1));
    enum quant_format format = is_f8(form) ? QUANT_F8 : QUANT_F4;
    for (int64_t i = 0; i < rows * groups; i++)
        marks[i] = (uint8_t)(0x30 + i % 24);
    for (int64_t i = 0; i < rows * cols; i++) {
        float by =
            is_f8(form) ? block_scale(form, i / cols / 128) : scale * quant_value(QUANT_F8, marks[i / 16]);
        int code = tiny_nearest_code(format, values[i] / by);
        values[i] = quant_value(format, code) * by;
        if (is_f8(form))
            codes[i] = (uint8_t)code;
        else
            codes[i / 2] |= (uint8_t)(code << (i % 2 ? 4 : 0));
    }
    tiny_drop(t, weight);
    snprintf(name, sizeof name, "%s.%s", front, form == F4_PACKED ? "weight_packed" : "weight");
    tiny_put(t, name, "", is_f8(form) ? "F8_E4M3" : "U8", codes, rows, is_f8(form) ? cols : cols / 2);
    snprintf(name, sizeof name, "%s.%s", front, is_f8(form) ? "weight_scale_inv" : "weight_scale");
    if (is_f8(form))
        put_scales(t, name, form, (rows + 127) / 128);
    else
        tiny_put(t, name, "", "F8_E4M3", marks, rows, groups);
    snprintf(name, sizeof name, "%s.%s", front, form == F4_PACKED ? "weight_global_scale" : "weight_scale_2");
    if (!is_f8(form))
        tiny_put(t, name, "", "F32", form == F4_PACKED ? &divisor : &scale, 1, 0);
    snprintf(name, sizeof name, "%s.%s", front, form == F4_PACKED ? "input_global_scale" : "input_scale");
    tiny_put(t, name, "", "F32", &divisor, 1, 0);
    free(codes);
    free(marks);
}

#define LAYER "model.language_model.layers."
static const char *const coded[] = {LAYER "0.linear_attn.out_proj", LAYER "3.self_attn.o_proj",
                                    LAYER "1.mlp.shared_expert.down_proj"};
static const char *const wide[] = {LAYER "1.linear_attn.in_proj_qkv", LAYER "3.self_attn.q_proj",
                                   LAYER "2.mlp.experts.3.up_proj", LAYER "2.mlp.experts.1.down_proj"};

static void make_pair(struct tiny *t, struct tiny *plain, enum form form)
{
    tiny_qwen(t, 5);
    tiny_qwen(plain, 5);
    tiny_widen(plain);
    for (size_t i = 0; i < sizeof coded / sizeof *coded; i++)
        encode(t, plain, coded[i], form);
    for (size_t i = 0; is_f8(form) && i < sizeof wide / sizeof *wide; i++)
        encode(t, plain, wide[i], form);
}

static void t_directories(void **state)
{
    static const struct {
        enum form form;
        const char *name, *config;
    } forms[] = {
        {F8_BLOCKS, "FP8 in blocks",
         "\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[128,128]"},
        {F8_BLOCKS_F16, "with f16", "\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]"},
        {F8_BLOCKS_F32, "with f32", "\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]"},
        {F4_MODELOPT, "NVFP4", "\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\""},
        {F4_PACKED, "packed NVFP4",
         "\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\""},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tiny t, plain;
        make_pair(&t, &plain, forms[i].form);
        tiny_quantization(&t, forms[i].config);
        double worst = tiny_worst(&t, &plain);
        check_note("%-13s logits off by %.1e", forms[i].name, worst);
        assert_true(worst < 1e-4);
    }
}

static void t_refused(void **state)
{
    static const char *const configs[][2] = {
        {"\"quant_method\":\"fp8\",\"weight_block_size\":[64,128]", "'weight_block_size' is not [128, 128]"},
        {"\"quant_method\":\"fp8\",\"weight_block_size\":[128,128],\"fmt\":\"e5m2\"", "'fmt' is 'e5m2'"},
        {"\"quant_method\":\"awq\"", "'quant_method' is 'awq'"},
    };
    struct tiny t, plain;
    tiny_refused_quantization(configs, sizeof configs / sizeof *configs, "");
    static const char scale[] = LAYER "0.linear_attn.out_proj.weight_scale_inv";
    for (int k = 0; k < 3; k++) {
        make_pair(&t, &plain, F8_BLOCKS);
        tiny_free(&plain);
        if (k == 0)
            tiny_drop(&t, scale);
        if (k == 1)
            memset(tiny_find(&t, scale)->data, 0, 2);
        if (k == 2)
            tiny_find(&t, scale)->dims = 1;
        tiny_damaged(&t, "",
                     k == 0   ? "f8e4m3 without a matching 'weight_scale'"
                     : k == 1 ? "above 0"
                              : "expected bf16 [1, 1]");
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a matrix of e4m3 in blocks multiplies as its values do, on every instruction set", t_products),
    CLAIM("blocks with f32 scales have torch's values and product", t_torch),
    CLAIM("files in FP8 blocks and in NVFP4 of two tools compute the same as their values", t_directories),
    CLAIM("other blocks, and scales that are missing, zero or of another shape, are refused", t_refused),
};

CHECK_MAIN()
