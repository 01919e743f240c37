/* t_cuda_gguf.c - tests of GGUF files on the device, which has the same formats in memory as the CPU. */
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

/* Reads a model of a type on the CPU and on the device, which keeps the same codes and scales, in f32 or bf16.
 * Returns the difference of the logits. */
static double apart(const struct wide *w, enum ggml_type type, bool f32)
{
    float have[WIDE_VOCAB], want[WIDE_VOCAB];
    char *forms, *same;
    struct gguf_form form = {type, false};
    read_on(w, form, "cpu", (struct bind_options){.f32 = f32}, want, &same);
    read_on(w, form, "cuda", (struct bind_options){.f32 = f32}, have, &forms);
    double off = golden_apart(have, want, WIDE_VOCAB);
    check_note("%-8s off by %.1e in %s: %s", type < GGML_TYPES ? ggml_type_name(type) : "mixed", off,
               f32 ? "f32" : "bf16", forms ? forms : "as stored");
    assert_int_equal(!forms, !same);
    assert_true(!forms || !strcmp(forms, same));
    free(forms);
    free(same);
    return off;
}

/* In bf16 one type in each run: t_cuda_blocks compares the products of the stored formats in bf16. */
static void t_each(void **state)
{
    static const enum ggml_type types[] = {GGML_Q4_0,  GGML_Q4_1,   GGML_Q5_0,   GGML_Q8_0,  GGML_Q2_K,
                                           GGML_Q3_K,  GGML_Q4_K,   GGML_Q5_K,   GGML_Q6_K,  GGML_IQ2_XXS,
                                           GGML_IQ3_S, GGML_IQ4_NL, GGML_IQ4_XS, GGML_IQ1_M, GGML_MXFP4,
                                           GGML_NVFP4, GGML_TQ2_0};
    struct wide w;
    wide_open(&w, "qwen/dense");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_true(apart(&w, types[i], true) < 1e-4);
    assert_true(apart(&w, types[check_seed() % (sizeof types / sizeof *types)], false) < 0.1);
    wide_close(&w);
}

static void t_mixed(void **state)
{
    for (int k = 0; k < 2; k++) {
        struct wide w;
        wide_open(&w, k ? "qwen/moe" : "qwen/dense");
        assert_true(apart(&w, (enum ggml_type)GGML_MIXED, true) < 1e-4);
        wide_close(&w);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a file of each type has the same logits on the device as on the CPU", t_each),
    CLAIM("so has one that mixes types, dense and with experts", t_mixed),
};

CHECK_MAIN()
