/* t_cuda_gguf.c - tests of GGUF files on the device.  Types without a kernel are converted to bf16, int8,
 * int4 or f4 when the model is opened. */
#include "check.h"
#include "gguf_wide.h"

#include "emu/emu.h"
#include "ops/gguf_rows.h"

#include <stdlib.h>
#include <string.h>

static void read_on(const struct wide *w, struct gguf_form form, const char *device, struct bind_options o,
                    float *logits, char **forms)
{
    struct err e = ERR_INIT;
    struct pool *pool = pool_new(2);
    struct backend *b =
        strcmp(device, "cuda") ? backend_cpu("ref", pool, &e) : backend_open(device, NULL, 0, pool, &e);
    if (!b)
        fail_msg("%s", e.text);
    *forms = wide_read(w, form, b, o, logits);
    backend_free(b);
    pool_free(pool);
}

/* Expected format of each type on the device in an f32 run, and the limit for the error of the logits.
 * Random blocks lose more in int8 than the weights of a trained model. */
static const struct {
    enum ggml_type type;
    const char *as;
    double most;
} kept[] = {{GGML_Q4_0, "i4", 0.05},   {GGML_Q4_1, "i8", 0.15}, {GGML_Q5_0, "i8", 0.15},
            {GGML_Q8_0, "f32", 1e-4},  {GGML_Q2_K, "i8", 0.15}, {GGML_Q3_K, "i8", 0.3},
            {GGML_Q4_K, "i8", 0.15},   {GGML_Q5_K, "i8", 0.15}, {GGML_Q6_K, "f32", 1e-4},
            {GGML_IQ2_XXS, "i8", 0.3}, {GGML_IQ3_S, "i8", 0.3}, {GGML_IQ4_NL, "i8", 0.15},
            {GGML_IQ4_XS, "i8", 0.3},  {GGML_IQ1_M, "i8", 0.3}, {GGML_MXFP4, "f32", 1e-4},
            {GGML_NVFP4, "f4", 1e-4},  {GGML_TQ2_0, "i8", 0.15}};

static void t_each(void **state)
{
    struct wide w;
    wide_open(&w, "qwen/dense");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        float have[WIDE_VOCAB], want[WIDE_VOCAB];
        char *forms, *none, *as = xasprintf("%s -> %s (", ggml_type_name(kept[i].type), kept[i].as);
        struct gguf_form form = {kept[i].type, false}, numbers = {kept[i].type, true};
        read_on(&w, numbers, "cpu", (struct bind_options){.f32 = true}, want, &none);
        read_on(&w, form, "cuda", (struct bind_options){.f32 = true}, have, &forms);
        double off = golden_apart(have, want, WIDE_VOCAB);
        check_note("%-8s off by %.1e: %s", ggml_type_name(kept[i].type), off, forms ? forms : "as stored");
        assert_true(off < kept[i].most);
        assert_true(forms && strstr(forms, as));
        free(as);
        free(forms);
        free(none);
    }
    wide_close(&w);
}

static void t_mixed(void **state)
{
    for (int k = 0; k < 2; k++) {
        struct wide w;
        float have[WIDE_VOCAB], want[WIDE_VOCAB];
        char *forms, *none;
        struct gguf_form form = {(enum ggml_type)GGML_MIXED, false},
                         numbers = {(enum ggml_type)GGML_MIXED, true};
        wide_open(&w, k ? "qwen/moe" : "qwen/dense");
        read_on(&w, numbers, "cpu", (struct bind_options){.f32 = true}, want, &none);
        read_on(&w, form, "cuda", (struct bind_options){.f32 = true}, have, &forms);
        double off = golden_apart(have, want, WIDE_VOCAB);
        check_note("%s off by %.1e: %s", k ? "moe  " : "dense", off, forms);
        assert_true(off < 0.3);
        free(forms);
        free(none);
        wide_close(&w);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a file of each type is read on the device", t_each),
    CLAIM("a model may mix types on the device, dense and with experts", t_mixed),
};

CHECK_MAIN()
