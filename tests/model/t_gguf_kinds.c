/* t_gguf_kinds.c - compares models in GGUF files of every tensor type, alone and mixed, with the same
 * models in F32. */
#include "check.h"
#include "gguf_wide.h"

#include "capacity/plan.h"
#include "ops/gguf_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *read_model(const struct wide *w, struct gguf_form form, const char *isa, struct bind_options o,
                        float *logits)
{
    struct err e = ERR_INIT;
    struct backend *b = backend_cpu(isa, NULL, &e);
    char *forms = wide_read(w, form, b, o, logits);
    backend_free(b);
    return forms;
}

static void t_each(void **state)
{
    struct wide w;
    wide_open(&w, "qwen/dense");
    for (uint32_t type = 0; type < GGML_TYPES; type++) {
        float have[WIDE_VOCAB], want[WIDE_VOCAB];
        if (!gguf_is_coded(type))
            continue;
        struct gguf_form form = {(enum ggml_type)type, false}, numbers = {(enum ggml_type)type, true};
        struct bind_options o = {.f32 = true};
        free(read_model(&w, numbers, NULL, o, want));
        char *forms = read_model(&w, form, NULL, o, have);
        double off = golden_apart(have, want, WIDE_VOCAB);
        check_note("%-8s off by %.1e of the largest: %s", ggml_type_name(type), off,
                   forms ? forms : "as stored");
        bool rounded = type == GGML_Q2_K || (type >= GGML_IQ2_XXS && type <= GGML_IQ2_XS) ||
                       type == GGML_IQ2_S || type == GGML_IQ4_XS; /* with rounded scales */
        assert_true(off < (rounded ? 1e-2 : 1e-5));
        assert_true(gguf_kernels(type) ? !forms : forms && strstr(forms, ggml_type_name(type)));
        free(forms);
    }
    wide_close(&w);
}

/* By default activations are rounded for block formats only, including the output head. */
static void t_activations(void **state)
{
    struct wide w;
    float rounded[WIDE_VOCAB], exact[WIDE_VOCAB];
    wide_open(&w, "qwen/dense");
    for (int blocks = 0; blocks < 2; blocks++) {
        struct gguf_form form = {GGML_Q8_0, !blocks};
        free(read_model(&w, form, NULL, (struct bind_options){0}, exact));
        free(read_model(&w, form, NULL, (struct bind_options){.coarse_blocks = true}, rounded));
        double off = golden_apart(rounded, exact, WIDE_VOCAB);
        check_note("%s: off by %.1e of the largest logit", blocks ? "Q8_0" : "F32 ", off);
        assert_true(blocks ? off > 1e-5 && off < 0.5 : off == 0);
    }
    wide_close(&w);
}

/* Matrices of one fused product (query and key, gate and up) have different types. */
static void t_mixed(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    struct gguf_form form = {(enum ggml_type)GGML_MIXED, false}, numbers = {(enum ggml_type)GGML_MIXED, true};
    for (int k = 0; k < 2; k++) {
        struct wide w;
        float have[WIDE_VOCAB], want[WIDE_VOCAB];
        wide_open(&w, k ? "qwen/moe" : "qwen/dense");
        for (int i = 0; i < n; i++)
            for (int f32 = k; f32 < 2; f32++) { /* in bf16 other experts might be chosen */
                struct bind_options o = {.f32 = f32};
                free(read_model(&w, numbers, names[i], o, want));
                free(read_model(&w, form, names[i], o, have));
                double off = golden_apart(have, want, WIDE_VOCAB);
                check_note("%-10s %s %s off by %.1e", names[i], k ? "moe  " : "dense", f32 ? "f32 " : "bf16",
                           off);
                assert_true(off < (f32 ? 0.01 : 0.1));
            }
        wide_close(&w);
    }
}

/* Tests NVFP4 with a scale for each matrix, and for each expert in a stack. */
static void t_scales(void **state)
{
    for (int k = 0; k < 2; k++) {
        struct wide w;
        float have[WIDE_VOCAB], want[WIDE_VOCAB], without[WIDE_VOCAB];
        wide_open(&w, k ? "qwen/moe" : "qwen/dense");
        struct bind_options o = {.f32 = true};
        free(read_model(&w, (struct gguf_form){GGML_NVFP4, true, true}, NULL, o, want));
        free(read_model(&w, (struct gguf_form){GGML_NVFP4, false, true}, NULL, o, have));
        free(read_model(&w, (struct gguf_form){GGML_NVFP4, false, false}, NULL, o, without));
        check_note("off by %.1e, without scales %.1e", golden_apart(have, want, WIDE_VOCAB),
                   golden_apart(without, want, WIDE_VOCAB));
        assert_true(golden_apart(have, want, WIDE_VOCAB) < 1e-4 &&
                    golden_apart(without, want, WIDE_VOCAB) > 0.1);
        wide_close(&w);
    }
}

/* With another weight format, the file's values are quantized to it. */
static void t_storage(void **state)
{
    static const struct {
        enum weight_storage storage;
        double most;
    } cases[] = {{WEIGHTS_BF16, 0.05}, {WEIGHTS_INT8, 0.1}, {WEIGHTS_INT4, 2}, {WEIGHTS_FP8, 0.3}};
    struct wide w;
    float have[WIDE_VOCAB], want[WIDE_VOCAB];
    struct gguf_form form = {(enum ggml_type)GGML_MIXED, false}, numbers = {(enum ggml_type)GGML_MIXED, true};
    wide_open(&w, "qwen/moe");
    free(read_model(&w, numbers, NULL, (struct bind_options){.f32 = true}, want));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bind_options o = {.f32 = true, .storage = cases[i].storage};
        free(read_model(&w, form, NULL, o, have));
        double off = golden_apart(have, want, WIDE_VOCAB);
        check_note("storage %d off by %.1e", (int)cases[i].storage, off);
        assert_true(off < cases[i].most);
    }
    free(read_model(&w, form, NULL, (struct bind_options){.f32 = true, .random = 7}, have));
    for (int i = 0; i < WIDE_VOCAB; i++)
        assert_true(isfinite(have[i]));
    wide_close(&w);
}

/* The plan counts the stored format: a file in IQ4_NL is stored as Q8_0. */
static void t_plan(void **state)
{
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
        assert_true(i ? strstr(p.forms, "IQ4_NL -> Q8_0 (") != NULL : !*p.forms);
        safetensors_close(files);
    }
    assert_int_equal(own[0], own[1]);
    free(place);
    wide_close(&w);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a model of each type computes the same as its values in F32", t_each),
    CLAIM("activations are rounded to 8 bits for matrices in blocks and no others", t_activations),
    CLAIM("types may be mixed, dense and with experts", t_mixed),
    CLAIM("matrices in NVFP4 are multiplied by their separate scales", t_scales),
    CLAIM("every type can be converted to bf16, int8, int4, fp8 and synthetic values", t_storage),
    CLAIM("the plan counts the stored format and names it", t_plan),
};

CHECK_MAIN()
