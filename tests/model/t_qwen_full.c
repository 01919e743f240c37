/* t_qwen_full.c - tests of models of the Qwen3.5 family at their published sizes, stored as sparse files:
 * plain, in Qwen's FP8 blocks, in compressed-tensors' FP8 rows, in NVFP4 of two tools, in 4-bit GPTQ, as
 * GGUF files. */
#include "check.h"
#include "full_start.h"
#include "gguf_model.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/gguf.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

enum form { PLAIN, APART, F8_BLOCKS, F8_ROWS, F4_MODELOPT, F4_PACKED, GPTQ, FORMS };

static const struct {
    const char *name, *config, *weight, *type;
    struct {
        const char *name, *type;
        int rows, cols; /* block that shares one scale; 0: one for all */
    } scales[3];
} forms[FORMS] = {
    [PLAIN] = {"bf16", NULL, NULL, NULL, {{0}}},
    [APART] = {"bf16, as transformers saves experts", NULL, "weight", "BF16", {{0}}},
    [F8_BLOCKS] = {"FP8 in blocks",
                   "\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[128,128]",
                   "weight",
                   "F8_E4M3",
                   {{"weight_scale_inv", "BF16", 128, 128}}},
    [F8_ROWS] = {"FP8 in rows",
                 "\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\"",
                 "weight",
                 "F8_E4M3",
                 {{"weight_scale", "BF16", 1, 1 << 30}}},
    [F4_MODELOPT] = {"NVFP4",
                     "\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"",
                     "weight",
                     "U8",
                     {{"weight_scale", "F8_E4M3", 1, 16}, {"weight_scale_2", "F32"}, {"input_scale", "F32"}}},
    [F4_PACKED] = {"packed NVFP4",
                   "\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\"",
                   "weight_packed",
                   "U8",
                   {{"weight_scale", "F8_E4M3", 1, 16},
                    {"weight_global_scale", "F32"},
                    {"input_global_scale", "F32"}}},
    [GPTQ] = {"GPTQ", "\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128", "qweight", "I32", {{0}}},
};

/* Returns whether such files quantize the tensor; norms, gates, the head and the tower are not quantized. */
static bool is_coded(const struct full_tensor *t)
{
    static const char *const kept[] = {"visual.",   "in_proj_a",          "in_proj_b", "conv1d",
                                       "mlp.gate.", "shared_expert_gate", "norm"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(t->name, kept[i]))
            return false;
    return strstr(t->name, "layers.") && t->dims == 2;
}

static int64_t groups(int64_t n, int each)
{
    return (n + each - 1) / each;
}

static void add_coded(struct full_model *m, enum form form, const char *front, int shard, int64_t rows,
                      int64_t cols)
{
    char name[160];
    bool half = !strcmp(forms[form].type, "U8");
    snprintf(name, sizeof name, "%s.%s", front, forms[form].weight);
    if (form == GPTQ) {
        full_add(m, name, shard, 2, (const int64_t[]){cols / 8, rows})->dtype = "I32";
        return;
    }
    full_add(m, name, shard, 2, (const int64_t[]){rows, half ? cols / 2 : cols})->dtype = forms[form].type;
}

/* Adds scales after all weights of a file, so that the parts which are not sparse are contiguous. */
static void add_scales(struct full_model *m, enum form form, const char *front, int shard, int64_t rows,
                       int64_t cols)
{
    char name[160];
    for (int i = 0; form == GPTQ && i < 2; i++) {
        snprintf(name, sizeof name, "%s.%s", front, i ? "scales" : "qzeros");
        full_add(m, name, shard, 2, (const int64_t[]){cols / 128, i ? rows : rows / 8})->dtype =
            i ? "F16" : "I32";
    }
    for (int i = 0; i < 3 && forms[form].scales[i].name; i++) {
        int down = forms[form].scales[i].rows, across = forms[form].scales[i].cols;
        const int64_t shape[2] = {down ? groups(rows, down) : 1, down ? groups(cols, across) : 1};
        snprintf(name, sizeof name, "%s.%s", front, forms[form].scales[i].name);
        struct full_tensor *t = full_add(m, name, shard, down ? 2 : 1, shape);
        t->dtype = forms[form].scales[i].type;
        t->ones = strcmp(t->dtype, "F8_E4M3") != 0;
    }
}

typedef void add_matrix(struct full_model *m, enum form form, const char *front, int shard, int64_t rows,
                        int64_t cols);

/* Adds the matrices of a tensor of the plain model: one, or gate, up and down of each expert. */
static void each_matrix(struct full_model *m, enum form form, const struct full_tensor *t, add_matrix *add)
{
    static const char *const both[] = {"gate_proj", "up_proj"}, *const down[] = {"down_proj"};
    char front[160];
    snprintf(front, sizeof front, "%.*s", (int)(strlen(t->name) - strlen(".weight")), t->name);
    if (t->dims == 2) {
        add(m, form, front, t->shard, t->shape[0], t->shape[1]);
        return;
    }
    bool two = strstr(t->name, "gate_up_proj");
    int body = (int)(strstr(t->name, "experts.") + strlen("experts.") - t->name);
    for (int64_t e = 0; e < t->shape[0]; e++)
        for (int k = 0; k <= two; k++) {
            snprintf(front, sizeof front, "%.*s%d.%s", body, t->name, (int)e, two ? both[k] : down[k]);
            add(m, form, front, t->shard, t->shape[1] / (1 + two), t->shape[2]);
        }
}

static void init(struct full_model *m, const char *name, enum form form)
{
    struct full_model plain;
    full_init_as(m, name);
    if (form == PLAIN)
        return;
    plain = *m;
    m->tensors = NULL;
    m->n = 0;
    m->quantization = forms[form].config;
    for (int k = 0; k < 3; k++) /* unquantized tensors, weights, scales */
        for (int i = 0; i < plain.n; i++) {
            const struct full_tensor *t = &plain.tensors[i];
            bool coded = is_coded(t) || t->dims == 3;
            if (strstr(t->name, "conv1d"))
                coded = false;
            if (coded && k)
                each_matrix(m, form, t, k == 1 ? add_coded : add_scales);
            else if (!coded && !k)
                full_add(m, t->name, t->shard, t->dims, t->shape);
        }
    free(plain.tensors);
}

static void write_one(struct full_model *m, const char *name, enum form form)
{
    init(m, name, form);
    full_write(m);
    check_note("%s, %s: %d tensors", name, forms[form].name, m->n);
}

static void sizes(const struct full_model *m, const struct plan *p, double gigabytes)
{
    double stored = (double)p->weights.stored * 1e-9;
    assert_int_equal(p->weights.tensors, m->n);
    check_note("%.2f GB in the files, %.2f copied", stored, (double)p->weights.own * 1e-9);
    assert_true(stored > gigabytes * 0.99 && stored < gigabytes * 1.01);
}

static void starts(const char *name, enum form form, double gigabytes, bool largest)
{
    struct full_model m;
    write_one(&m, name, form);
    struct engine_options o = {.dir = m.dir, .weights_in = WEIGHTS_IN_MMAP, .threads = 2};
    struct plan p = full_starts(m.dir, &o, largest);
    sizes(&m, &p, gigabytes);
    full_free(&m);
}

static void t_plain(void **state)
{
    starts("qwen3.5-0.8b", PLAIN, 1.71, true);
    starts("qwen3.5-4b", PLAIN, 9.08, false);
    starts("qwen3.5-9b", PLAIN, 18.82, false);
    starts("qwen3.5-35b-a3b", PLAIN, 70.21, false);
    starts("qwen3.5-35b-a3b", APART, 70.21, false);
}

static void t_coded(void **state)
{
    starts("qwen3.5-0.8b", F8_BLOCKS, 1.21, false);
    starts("qwen3.5-0.8b", F4_PACKED, 0.99, false);
    starts("qwen3.5-0.8b", GPTQ, 0.97, false);
}

/* Opening would copy quantized weights, which takes minutes at this size, so only the plan is tested. */
static void t_planned(void **state)
{
    static const struct {
        const char *name;
        enum form form;
        double gigabytes;
    } all[] = {{"qwen3.5-4b", F8_BLOCKS, 5.5},    {"qwen3.5-9b", F8_ROWS, 11.9},
               {"qwen3.5-9b", F4_MODELOPT, 8.88}, {"qwen3.5-35b-a3b", F8_BLOCKS, 36.6},
               {"qwen3.5-4b", GPTQ, 3.8},         {"qwen3.5-35b-a3b", F4_PACKED, 21.89}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct full_model m;
        write_one(&m, all[i].name, all[i].form);
        struct engine_options o = {.dir = m.dir, .weights_in = WEIGHTS_IN_MMAP};
        int64_t start = clock_ns();
        struct plan p = full_planned(m.dir, &o);
        check_note("planned in %.2f s", clock_ms_since(start) * 1e-3);
        sizes(&m, &p, all[i].gigabytes);
        full_free(&m);
    }
}

/* Tests a model as GGUF files; opens it if `opened`, else only plans it. */
static void gguf_one(const char *name, enum ggml_type type, double gigabytes, bool opened)
{
    struct full_model m;
    full_init_as(&m, name);
    full_write(&m);
    gguf_holes(&m, type);
    char *place = xasprintf("%s/model.gguf,%s/mmproj.gguf", m.dir, m.dir);
    struct engine_options o = {.dir = place, .weights_in = WEIGHTS_IN_MMAP, .threads = 2};
    check_note("%s, %s", name, ggml_type_name(type));
    int64_t start = clock_ns();
    struct plan p = opened ? full_starts(place, &o, false) : full_planned(place, &o);
    if (!opened)
        check_note("planned in %.2f s", clock_ms_since(start) * 1e-3);
    double stored = (double)p.weights.stored * 1e-9;
    check_note("%.2f GB in the files, %.2f copied", stored, (double)p.weights.own * 1e-9);
    assert_true(stored > gigabytes * 0.99 && stored < gigabytes * 1.01);
    free(place);
    full_free(&m);
}

static void t_gguf(void **state)
{
    gguf_one("qwen3.5-0.8b", GGML_BF16, 1.71, true);
    gguf_one("qwen3.5-4b", GGML_BF16, 9.08, true);
    gguf_one("qwen3.5-9b", GGML_BF16, 18.82, true);
    gguf_one("qwen3.5-35b-a3b", GGML_BF16, 70.21, true);
    gguf_one("qwen3.5-0.8b", GGML_Q8_0, 1.01, true);
    gguf_one("qwen3.5-0.8b", GGML_Q4_K, 0.63, true);
    gguf_one("qwen3.5-0.8b", GGML_F16, 1.71, true);
    gguf_one("qwen3.5-4b", GGML_Q4_K, 3.04, false);
    gguf_one("qwen3.5-9b", GGML_Q6_K, 8.27, false);
    gguf_one("qwen3.5-35b-a3b", GGML_Q4_K, 20.48, false);
}

/* ---- damage -------------------------------------------------------------------------------------------- */

#define LAYER "model.language_model.layers."

/* Opens the model, expects an error with both texts, and repairs the model for the next case. */
static void refused(struct full_model *m, enum form form, const char *naming, const char *also)
{
    full_damaged(m, (struct engine_options){.weights_in = WEIGHTS_IN_MMAP}, naming, also);
    char dir[sizeof m->dir];
    strcpy(dir, m->dir);
    init(m, "qwen3.5-0.8b", form);
    strcpy(m->dir, dir);
}

static void spoil_plain(struct full_model *m)
{
    full_drop(m, LAYER "3.self_attn.q_norm.weight");
    refused(m, PLAIN, LAYER "3.self_attn.q_norm.weight", "is missing");
    full_find(m, LAYER "3.self_attn.q_proj.weight")->shape[0] = 2048;
    refused(m, PLAIN, LAYER "3.self_attn.q_proj.weight", "[2048, 1024]; the config requires [4096, 1024]");
    full_find(m, LAYER "0.linear_attn.conv1d.weight")->shape[2] = 3;
    refused(m, PLAIN, LAYER "0.linear_attn.conv1d.weight", "the config requires [6144, 1, 4]");
    full_find(m, LAYER "1.linear_attn.A_log")->dtype = "I8";
    refused(m, PLAIN, LAYER "1.linear_attn.A_log", "i8");
    full_find(m, "model.visual.pos_embed.weight")->shape[0] = 2025;
    refused(m, PLAIN, "model.visual.pos_embed.weight", "[2025, 768]");
    full_add(m, LAYER "9.mlp.experts.0.up_proj.weight", 0, 2, (const int64_t[]){512, 1024});
    refused(m, PLAIN, LAYER "9.mlp.experts.0.up_proj.weight", "is not part of this model");
    m->cut = 1;
    refused(m, PLAIN, "model-00006-of-00006.safetensors", "truncated");
    m->without = 1;
    refused(m, PLAIN, "model-00002-of-00006.safetensors", "copy or download it");
}

static void spoil_blocks(struct full_model *m)
{
    full_drop(m, LAYER "0.mlp.up_proj.weight_scale_inv");
    refused(m, F8_BLOCKS, LAYER "0.mlp.up_proj.weight", "without a matching 'weight_scale'");
    full_find(m, LAYER "0.mlp.up_proj.weight_scale_inv")->shape[0] = 27;
    refused(m, F8_BLOCKS, LAYER "0.mlp.up_proj.weight_scale_inv", "expected bf16 [28, 8]");
    full_find(m, LAYER "0.mlp.up_proj.weight_scale_inv")->ones = false;
    refused(m, F8_BLOCKS, LAYER "0.mlp.up_proj.weight_scale_inv", "above 0");
}

static void t_damage(void **state)
{
    static const struct {
        enum form form;
        void (*spoil)(struct full_model *m);
    } all[] = {{PLAIN, spoil_plain}, {F8_BLOCKS, spoil_blocks}};
    for (int i = 0; i < 2; i++) {
        struct full_model m;
        init(&m, "qwen3.5-0.8b", all[i].form);
        full_write(&m);
        all[i].spoil(&m);
        full_free(&m);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("plain models of the published sizes open within the planned memory", t_plain),
    CLAIM("models in FP8, NVFP4 and GPTQ open within the planned memory", t_coded),
    CLAIM("the largest in FP8, NVFP4 and GPTQ are planned, each expert's matrices separately", t_planned),
    CLAIM("GGUF files of the published sizes open within the planned memory", t_gguf),
    CLAIM("damage to a model of the published size is refused by its name", t_damage),
};

CHECK_MAIN()
