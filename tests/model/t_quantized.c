/* t_quantized.c - tests of quantized weights: published in a quantized format, or quantized when the model
 * is opened. t_quantized_cache.c tests the file that stores the latter.
 *
 * A quantized tiny model is made from a plain one by storing matrices as codes.  Its exact result is known:
 * in f32, that of a model with the dequantized values.
 */
#include "check.h"
#include "quantized.h"

#include "base/file.h"
#include "capacity/plan.h"
#include "ops/quant.h"

#define LAYER "language_model.backbone.layers."

/* ---- quantized checkpoints ------------------------------------------------------------------- */

static struct tiny_tensor *add(struct tiny *t, const char *name, const char *suffix, const char *type,
                               const void *data, size_t bytes, int64_t rows, int64_t cols)
{
    char full[128];
    snprintf(full, sizeof full, "%.*s.%s", (int)(strlen(name) - strlen(".weight")), name, suffix);
    struct tiny_tensor *x = tiny_add(t, full, 0, 1, (const int64_t[]){1, 0});
    x->type = type;
    x->dims = rows ? 2 : 0;
    x->shape[0] = rows;
    x->shape[1] = cols;
    x->bytes = bytes;
    x->data = realloc(x->data, bytes);
    memcpy(x->data, data, bytes);
    return x;
}

static void add_scale(struct tiny *t, const char *name, const char *suffix, float v)
{
    add(t, name, suffix, "F32", &v, sizeof v, 0, 0);
}

/* FP8: the parts of a matrix that share a scale, and the type of scales. */
enum scaled { MATRIX, ONE_BF16, ONE_F16, ROWS_F32, ROWS_BF16 };

/* Returns the scale of a row; bf16 represents its product with every e4m3 number exactly. */
static float scale_of_row(int64_t n)
{
    return 0.001953125f * (1 + (float)(n % 3) / 4);
}

static void add_row_scales(struct tiny *t, const char *name, int64_t rows, enum scaled what)
{
    float *wide = malloc((size_t)rows * sizeof *wide);
    uint16_t *half = malloc((size_t)rows * sizeof *half);
    for (int64_t n = 0; n < rows; n++)
        half[n] = bf16_from_f32(wide[n] = scale_of_row(n));
    if (what == ROWS_F32)
        add(t, name, "weight_scale", "F32", wide, (size_t)rows * sizeof *wide, rows, 1)->dims = 1;
    else
        add(t, name, "weight_scale", "BF16", half, (size_t)rows * sizeof *half, rows, 1);
    free(wide);
    free(half);
}

/* Stores a matrix as codes, and in `plain` as their values in f32. */
static void shrink(struct tiny *t, struct tiny *plain, const char *name, enum quant_format format,
                   enum scaled what)
{
    struct tiny_tensor *x = tiny_find(t, name), *y = tiny_find(plain, name);
    int64_t rows = x->shape[0], cols = x->shape[1], groups = cols / 16;
    float *out = (float *)(void *)y->data, scale = format == QUANT_F8 ? 0.0027f : 0.013f;
    uint8_t *codes = calloc((size_t)(rows * cols), 1), *marks = malloc((size_t)(rows * groups + 1));
    for (int64_t i = 0; i < rows * groups; i++)
        marks[i] = (uint8_t)(0x30 + i % 24); /* 1/2 to 3.75 */
    for (int64_t i = 0; i < rows * cols; i++) {
        int64_t n = i / cols, k = i % cols;
        scale = what >= ROWS_F32 ? scale_of_row(n) : what ? 0x1.4p-9f : scale; /* 0x1900 in f16 */
        float group = format == QUANT_F4 ? quant_value(QUANT_F8, marks[n * groups + k / 16]) : 1;
        int code = tiny_nearest_code(format, out[i] / (scale * group));
        out[i] = quant_value(format, code) * group * scale;
        if (format == QUANT_F8)
            codes[i] = (uint8_t)code;
        else
            codes[i / 2] |= (uint8_t)(code << (k % 2 ? 4 : 0));
    }
    x->type = format == QUANT_F8 ? "F8_E4M3" : "U8";
    x->shape[1] = format == QUANT_F8 ? cols : cols / 2;
    x->bytes = (size_t)(rows * x->shape[1]);
    memcpy(x->data, codes, x->bytes);
    if (what >= ROWS_F32) {
        add_row_scales(t, name, rows, what);
    } else if (what == ONE_BF16) {
        add(t, name, "weight_scale", "BF16", &(uint16_t){bf16_from_f32(scale)}, 2, 0, 0);
    } else if (what == ONE_F16) {
        add(t, name, "weight_scale", "F16", &(uint16_t){0x1900}, 2, 1, 0)->dims = 1;
    } else if (format == QUANT_F8) {
        add_scale(t, name, "weight_scale", scale);
    } else {
        add(t, name, "weight_scale", "F8_E4M3", marks, (size_t)(rows * groups), rows, groups);
        add_scale(t, name, "weight_scale_2", scale);
    }
    add_scale(t, name, "input_scale", 0.5f);
    free(codes);
    free(marks);
}

/* Creates two copies of a model: `t` with codes, `plain` with their values in f32.  The hidden size of 40
 * is not a multiple of 16, so only matrices with 48 columns can be NVFP4. */
static void make_scaled(struct tiny *t, struct tiny *plain, enum quant_format format, enum scaled what)
{
    static const char *const eight[] = {LAYER "0.mixer.in_proj.weight", LAYER "0.mixer.out_proj.weight",
                                        LAYER "1.mixer.up_proj.weight", LAYER "1.mixer.down_proj.weight",
                                        LAYER "2.mixer.q_proj.weight",  LAYER "2.mixer.k_proj.weight",
                                        LAYER "2.mixer.v_proj.weight",  LAYER "2.mixer.o_proj.weight"};
    static const char *const four[] = {LAYER "0.mixer.out_proj.weight", LAYER "2.mixer.o_proj.weight",
                                       LAYER "4.mixer.out_proj.weight"};
    tiny_init(t, 5);
    tiny_init(plain, 5);
    tiny_widen(plain);
    const char *const *names = format == QUANT_F8 ? eight : four;
    for (size_t i = 0; i < (format == QUANT_F8 ? 8 : 3); i++)
        shrink(t, plain, names[i], format, what);
    if (what) /* exact in bf16, the type of embeddings in memory */
        shrink(t, plain, "language_model.backbone.embeddings.weight", format, what);
}

static void make(struct tiny *t, struct tiny *plain, enum quant_format format)
{
    make_scaled(t, plain, format, MATRIX);
}

static void t_published(void **state)
{
    static const struct {
        const char *name, *config;
        enum quant_format format;
        enum scaled what;
    } kinds[] = {
        {"FP8", "\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"", QUANT_F8, MATRIX},
        {"FP8, a scale for each row", "\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\"",
         QUANT_F8, ROWS_F32},
        {"FP8, one bf16 scale", "\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"", QUANT_F8, ONE_BF16},
        {"FP8, one f16 scale in a list", "\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"", QUANT_F8,
         ONE_F16},
        {"FP8, bf16 scales", "\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\"",
         QUANT_F8, ROWS_BF16},
        {"NVFP4", "\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A16_NVFP4\"", QUANT_F4, MATRIX},
    };
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    for (size_t f = 0; f < sizeof kinds / sizeof *kinds; f++) {
        struct tiny t, plain;
        float want[QUANTIZED_VOCAB], have[QUANTIZED_VOCAB], rough[QUANTIZED_VOCAB], wide[QUANTIZED_VOCAB];
        make_scaled(&t, &plain, kinds[f].format, kinds[f].what);
        tiny_quantization(&t, kinds[f].config);
        tiny_write(&t);
        tiny_write(&plain);
        quantized_look(quantized_open(&plain, "ref", true, WEIGHTS_AUTO, false), want);
        double off = 0;
        for (int i = 0; i < n; i++) {
            quantized_look(quantized_open(&t, isa[i], true, WEIGHTS_AUTO, false), have);
            off = check_worse(off, tiny_distance(want, have, QUANTIZED_VOCAB));
        }
        quantized_look(quantized_open(&t, NULL, false, WEIGHTS_AUTO, false), rough);
        quantized_look(quantized_open(&t, NULL, false, WEIGHTS_BF16, false), wide);
        check_note("%s: in f32 %.1e from the numbers meant, in bf16 %.1e, widened to bf16 %.1e",
                   kinds[f].name, off, tiny_distance(want, rough, QUANTIZED_VOCAB),
                   tiny_distance(want, wide, QUANTIZED_VOCAB));
        assert_true(off < 2e-5);
        assert_true(tiny_distance(want, rough, QUANTIZED_VOCAB) < 0.06 &&
                    tiny_distance(want, wide, QUANTIZED_VOCAB) < 0.06);
        tiny_free(&t);
        tiny_free(&plain);
    }
}

/* With int8 and int4, stored codes are converted only if they become smaller. */
static void t_smaller(void **state)
{
    struct tiny t, plain;
    float stored[QUANTIZED_VOCAB], have[QUANTIZED_VOCAB], plain8[QUANTIZED_VOCAB], plain4[QUANTIZED_VOCAB],
        fp8[QUANTIZED_VOCAB], bf16[QUANTIZED_VOCAB];
    make(&t, &plain, QUANT_F4);
    tiny_write(&t);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_AUTO, false), stored);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_INT8, false), have);
    assert_true(tiny_distance(stored, have, QUANTIZED_VOCAB) > 0 &&
                tiny_distance(stored, have, QUANTIZED_VOCAB) < 0.1);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_FP8, false), have);
    assert_true(tiny_distance(stored, have, QUANTIZED_VOCAB) > 0 &&
                tiny_distance(stored, have, QUANTIZED_VOCAB) < 0.3);
    tiny_free(&t);
    tiny_free(&plain);
    tiny_init(&t, 5);
    tiny_write(&t);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_AUTO, false), bf16);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_INT8, false), plain8);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_INT4, false), plain4);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_FP8, false), fp8);
    check_note("logits of a random model: int8 differs by %.1f %%, fp8 by %.1f %%, int4 by %.1f %%",
               100 * tiny_distance(bf16, plain8, QUANTIZED_VOCAB),
               100 * tiny_distance(bf16, fp8, QUANTIZED_VOCAB),
               100 * tiny_distance(bf16, plain4, QUANTIZED_VOCAB));
    assert_true(tiny_distance(bf16, fp8, QUANTIZED_VOCAB) > 0 &&
                tiny_distance(bf16, fp8, QUANTIZED_VOCAB) < 0.3);
    assert_true(tiny_distance(bf16, plain8, QUANTIZED_VOCAB) > 0 &&
                tiny_distance(bf16, plain8, QUANTIZED_VOCAB) < 0.1);
    assert_true(tiny_distance(bf16, plain4, QUANTIZED_VOCAB) > tiny_distance(bf16, plain8, QUANTIZED_VOCAB) &&
                tiny_distance(bf16, plain4, QUANTIZED_VOCAB) < 0.8);
    tiny_free(&t);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused_config(const char *inside, const char *also)
{
    struct tiny t;
    tiny_init(&t, 5);
    tiny_quantization(&t, inside);
    tiny_damaged(&t, "config.json: quantization_config", also);
}

static void t_refused(void **state)
{
    refused_config("\"quant_algo\":\"W4A8_AWQ\"", "'quant_algo' is 'W4A8_AWQ'; only 'FP8', 'NVFP4'");
    refused_config("\"quant_algo\":8", "'quant_algo' is 'no text'");
    refused_config("\"quant_method\":\"gptq\"", "'quant_method' is 'gptq'; only 'modelopt'");
    refused_config("\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\"",
                   "'format' is 'pack-quantized'; only 'float-quantized'");
    refused_config("\"quant_algo\":\"NVFP4\",\"group_size\":32", "'group_size' is 32");
    static const char out[] = LAYER "0.mixer.out_proj.weight",
                      scale[] = LAYER "0.mixer.out_proj.weight_scale";
    struct tiny t, plain;
#define SPOILT(format, what, naming, also)                                                                   \
    make(&t, &plain, format);                                                                                \
    tiny_free(&plain);                                                                                       \
    what;                                                                                                    \
    tiny_damaged(&t, naming, also)
    SPOILT(QUANT_F8, tiny_drop(&t, scale), out, "f8e4m3 without a matching 'weight_scale'");
    SPOILT(QUANT_F4, tiny_drop(&t, scale), out, "u8 without a matching 'weight_scale'");
    SPOILT(QUANT_F4, tiny_drop(&t, LAYER "0.mixer.out_proj.weight_scale_2"), out,
           "no matching 'weight_scale_2'");
    SPOILT(QUANT_F8, memset(tiny_find(&t, scale)->data, 0, 4), scale, "expected a scale above 0");
    SPOILT(QUANT_F8, memset(tiny_find(&t, scale)->data, 0xff, 4), scale, "1 values that are NaN or infinite");
    SPOILT(QUANT_F8, tiny_find(&t, out)->data[77] = 0xff, out, "1 NaN values");
    SPOILT(QUANT_F4, tiny_find(&t, scale)->data[5] = 0x7f, scale, "1 NaN values");
    SPOILT(QUANT_F8, tiny_find(&t, out)->type = "U8", out, "u8 [40, 48]; expected u8 [40, 24]");
    SPOILT(QUANT_F8, tiny_find(&t, scale)->type = "I32", scale, "expected one f32");
    SPOILT(QUANT_F4, tiny_find(&t, scale)->type = "U8", scale, "expected f8e4m3 [40, 3]");
#undef SPOILT
    make_scaled(&t, &plain, QUANT_F8, ROWS_F32);
    tiny_free(&plain);
    memset(tiny_find(&t, scale)->data + 8, 0, 4);
    tiny_damaged(&t, scale, "has 0 for row 2; expected scales above 0");
    make_scaled(&t, &plain, QUANT_F8, ROWS_F32); /* a scale without its codes */
    tiny_free(&plain);
    tiny_drop(&t, "language_model.backbone.embeddings.weight");
    tiny_damaged(&t, "language_model.backbone.embeddings.weight' is missing", "");
    tiny_init(&t, 5);
    add_scale(&t, LAYER "1.mixer.up_proj.weight", "weight_scale", 1);
    tiny_damaged(&t, LAYER "1.mixer.up_proj.weight", "bf16 [56, 40]; expected f8e4m3");
    tiny_init(&t, 5); /* scales of keys and values cause a warning */
    add_scale(&t, LAYER "2.mixer.k_proj.weight", "k_scale", 1);
    add_scale(&t, LAYER "2.mixer.v_proj.weight", "v_scale", 1);
    add_scale(&t, LAYER "2.mixer.weight", "k_scale", 1);
    tiny_write(&t);
    engine_close(tiny_open(&t, "ref", 1, false));
    char *path = xasprintf("%s/hf_quant_config.json", t.dir);
    static const char odd[] = "{\"quantization\":{\"quant_algo\":\"INT4_AWQ\"}}";
    assert_int_equal(file_write(path, odd, sizeof odd - 1, NULL), 0);
    free(path);
    tiny_damaged(&t, "hf_quant_config.json: quantization", "'INT4_AWQ'");
}

static const struct CMUnitTest tests[] = {
    CLAIM("FP8 and NVFP4 checkpoints compute the same as their values", t_published),
    CLAIM("int8, int4 and fp8 convert larger weights and leave the others", t_smaller),
    CLAIM("unknown quantization and missing or wrong scales are refused in one line", t_refused),
};

CHECK_MAIN()
