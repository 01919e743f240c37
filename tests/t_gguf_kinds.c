/* t_gguf_kinds.c - whole models in GGUF files of every tensor type, alone and mixed, compared with the same models
 * whose numbers are in F32. */
#include "check.h"
#include "gguf_model.h"

#include "capacity/plan.h"
#include "checkpoint/find.h"
#include "model/language.h"
#include "model/weights.h"
#include "ops/gguf_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A golden model, wide enough for rows of 256 numbers. */
struct wide {
    struct golden g;
    char golden[64], dir[PLACE_PATH];
};

enum { WIDE = 256, VALUE = 128, VOCAB = 160 };

static void set_int(json_t *o, const char *key, int64_t v)
{
    if (json_object_get(o, key))
        json_object_set_new(o, key, json_integer(v));
}

static bool has(const char *name, const char *part)
{
    return strstr(name, part);
}

/* The last dimension is the hidden size but in few tensors, and so is the first of those that write to it. */
static void widen(json_t *entry, int64_t heads)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    json_t *shape = json_object_get(entry, "shape");
    size_t last = json_array_size(shape) - 1;
    int64_t first = json_integer_value(json_array_get(shape, 0)), inner = heads * VALUE,
            channels = first + heads * (VALUE - 16);
    bool small = has(name, "A_log") || has(name, "dt_bias") || has(name, "q_norm") || has(name, "k_norm") ||
                 has(name, "conv1d");
    bool out = has(name, "out_proj") || has(name, "o_proj") || has(name, "down_proj"),
         wide = has(name, "mlp.") && !has(name, "mlp.gate.") && !has(name, "expert_gate");
    if (!small)
        json_array_set_new(shape, last, json_integer(has(name, "out_proj") ? inner : WIDE));
    if (has(name, "linear_attn.norm"))
        json_array_set_new(shape, 0, json_integer(VALUE));
    if (has(name, "in_proj_qkv") || has(name, "conv1d"))
        json_array_set_new(shape, 0, json_integer(channels));
    if (has(name, "in_proj_z"))
        json_array_set_new(shape, 0, json_integer(inner));
    if (last && (out || wide))
        json_array_set_new(shape, last - 1, json_integer(has(name, "gate_up") ? 2 * WIDE : WIDE));
}

static void wide_open(struct wide *w, const char *name)
{
    struct err e = ERR_INIT;
    size_t i;
    json_t *entry;
    golden_open(&w->g, name);
    assert_non_null(mkdtemp(place_template(w->dir)));
    char *path = xasprintf("%s/config.json", w->g.dir);
    json_t *config = json_load_file(path, 0, NULL);
    free(path);
    assert_non_null(config);
    set_int(config, "hidden_size", WIDE);
    set_int(config, "intermediate_size", WIDE);
    set_int(config, "moe_intermediate_size", WIDE);
    set_int(config, "shared_expert_intermediate_size", WIDE);
    set_int(config, "linear_value_head_dim", VALUE);
    json_array_foreach(json_object_get(w->g.root, "weights"), i, entry)
        widen(entry, json_integer_value(json_object_get(config, "linear_num_value_heads")));
    path = xasprintf("%s/config.json", w->dir);
    char *text = json_dumps(config, 0);
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    memcpy(w->golden, w->g.dir, sizeof w->golden);
    snprintf(w->g.dir, sizeof w->g.dir, "%s", w->dir);
    free(text);
    free(path);
    json_decref(config);
}

static void wide_close(struct wide *w)
{
    static const char *const files[] = {"model.gguf", "config.json"};
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/%s", w->dir, files[i]);
        unlink(path);
        free(path);
    }
    rmdir(w->dir);
    golden_close(&w->g);
}

/* Logits after five tokens, and the list of changed formats, which the caller frees. */
static char *read_model(const struct wide *w, struct gguf_form form, const char *isa, struct bind_options o,
                        float *logits)
{
    static const int32_t ids[5] = {3, 150, 7, 42, 99};
    struct err e = ERR_INIT;
    struct model_config c;
    struct model_weights weights;
    struct language m;
    struct lm_state s;
    gguf_model(&w->g, form, w->dir);
    char *place = xasprintf("%s/model.gguf", w->dir);
    struct backend *b = backend_cpu(isa, NULL, &e);
    struct safetensors *files = safetensors_open(place, &e);
    if (!files || config_load(&c, place, &e) || weights_bind(&weights, &c, files, b, &o, &e))
        fail_msg("%s", e.text);
    enum dtype act = o.f32 ? DT_F32 : DT_BF16;
    language_init(&m, &c.lm, &weights, b, act);
    state_init(&s, &c.lm, b, (struct state_types){act, DT_F32, act});
    assert_int_equal(language_forward(&m, &s, ids, 5, NULL, 0), 0);
    language_logits(&m, &s, logits);
    char *forms = weights.forms ? xstrdup(weights.forms) : NULL;
    state_free(&s, &c.lm, b);
    language_free(&m);
    weights_free(&weights, &c, b);
    safetensors_close(files);
    backend_free(b);
    free(place);
    return forms;
}

static double apart(const float *have, const float *want)
{
    double most = 0, off = 0;
    for (int i = 0; i < VOCAB; i++) {
        most = fmax(most, fabs((double)want[i]));
        off = check_worse(off, fabs((double)have[i] - (double)want[i]));
    }
    return off / most;
}

static void t_each(void **state)
{
    (void)state;
    struct wide w;
    wide_open(&w, "qwen/dense");
    for (uint32_t type = 0; type < GGML_TYPES; type++) {
        float have[VOCAB], want[VOCAB];
        if (!gguf_is_coded(type))
            continue;
        struct gguf_form form = {(enum ggml_type)type, false}, numbers = {(enum ggml_type)type, true};
        struct bind_options o = {.f32 = true};
        free(read_model(&w, numbers, NULL, o, want));
        char *forms = read_model(&w, form, NULL, o, have);
        double off = apart(have, want);
        check_note("%-8s off by %.1e of the largest: %s", ggml_type_name(type), off,
                   forms ? forms : "as stored");
        bool rounded = type == GGML_Q2_K || (type >= GGML_IQ2_XXS && type <= GGML_IQ2_XS) ||
                       type == GGML_IQ2_S || type == GGML_IQ4_XS; /* scales */
        assert_true(off < (rounded ? 1e-2 : 1e-5));
        assert_true(gguf_kernels(type) ? !forms : forms && has(forms, ggml_type_name(type)));
        free(forms);
    }
    wide_close(&w);
}

/* Neighbours in one product, query and key or gate and up, are of different types. */
static void t_mixed(void **state)
{
    (void)state;
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    struct gguf_form form = {(enum ggml_type)GGML_MIXED, false}, numbers = {(enum ggml_type)GGML_MIXED, true};
    for (int k = 0; k < 2; k++) {
        struct wide w;
        float have[VOCAB], want[VOCAB];
        wide_open(&w, k ? "qwen/moe" : "qwen/dense");
        for (int i = 0; i < n; i++)
            for (int f32 = k; f32 < 2; f32++) { /* in bf16 other experts are chosen */
                struct bind_options o = {.f32 = f32};
                free(read_model(&w, numbers, names[i], o, want));
                free(read_model(&w, form, names[i], o, have));
                double off = apart(have, want);
                check_note("%-10s %s %s off by %.1e", names[i], k ? "moe  " : "dense", f32 ? "f32 " : "bf16",
                           off);
                assert_true(off < (f32 ? 0.01 : 0.1));
            }
        wide_close(&w);
    }
}

/* Other storage asked for: numbers are quantized from those of the file. */
static void t_storage(void **state)
{
    (void)state;
    static const struct {
        enum weight_storage storage;
        double most;
    } cases[] = {{WEIGHTS_BF16, 0.05}, {WEIGHTS_INT8, 0.1}, {WEIGHTS_INT4, 2}, {WEIGHTS_FP8, 0.3}};
    struct wide w;
    float have[VOCAB], want[VOCAB];
    struct gguf_form form = {(enum ggml_type)GGML_MIXED, false}, numbers = {(enum ggml_type)GGML_MIXED, true};
    wide_open(&w, "qwen/moe");
    free(read_model(&w, numbers, NULL, (struct bind_options){.f32 = true}, want));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bind_options o = {.f32 = true, .storage = cases[i].storage};
        free(read_model(&w, form, NULL, o, have));
        double off = apart(have, want);
        check_note("storage %d off by %.1e", (int)cases[i].storage, off);
        assert_true(off < cases[i].most);
    }
    wide_close(&w);
}

/* The plan counts the format that is kept: Q8_0 of a file in IQ4_NL. */
static void t_plan(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct wide w;
    struct model_config c;
    size_t own[2];
    wide_open(&w, "qwen/dense");
    char *place = xasprintf("%s/model.gguf", w.dir);
    for (int i = 0; i < 2; i++) {
        struct plan p;
        gguf_model(&w.g, (struct gguf_form){i ? GGML_IQ4_NL : GGML_Q8_0, false}, w.dir);
        struct safetensors *files = safetensors_open(place, &e);
        struct engine_options o = {.dir = place, .weights_in = WEIGHTS_IN_RAM, .device = "cpu"};
        if (!files || config_load(&c, place, &e) || plan_make(&p, &c, files, &o, &e))
            fail_msg("%s", e.text);
        own[i] = p.weights.own;
        assert_true(i ? strstr(p.forms, "in IQ4_NL as Q8_0") != NULL : !*p.forms);
        safetensors_close(files);
    }
    assert_int_equal(own[0], own[1]);
    free(place);
    wide_close(&w);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a model of each type computes what its numbers compute", t_each),
    CLAIM("types may be mixed, dense and with experts", t_mixed),
    CLAIM("bf16, int8, int4 and fp8 are made of every type", t_storage),
    CLAIM("the plan counts the format that is kept and names it", t_plan),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
