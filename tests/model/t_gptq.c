/* t_gptq.c - tests of 4-bit GPTQ weights: values equal those of auto-round (tests/golden/gptq, made by
 * tests/reference/make_gptq.py), and products and whole models equal those with these values. */
#include "check.h"
#include "golden.h"
#include "gptq_model.h"
#include "products.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------- */

enum { SEED = 43 };

static uint64_t drawn_word(const char *part, int64_t i)
{
    return golden_mixed(SEED, part, i);
}

static void t_numbers(void **state)
{
    static struct gptq_matrix m;
    struct golden g;
    golden_open(&g, "gptq");
    for (int i = 0; i < 3; i++) {
        struct golden_array want = golden_find(&g, i == 0   ? "first"
                                                   : i == 1 ? "first moved"
                                                            : "second moved");
        float row[GPTQ_COLS];
        assert_non_null(want.data);
        gptq_fill(&m, want.rows, want.cols, i > 0, i < 2, drawn_word);
        for (int64_t n = 0; n < want.rows; n++) {
            quant_source_row(&m.source, n, row);
            for (int64_t k = 0; k < want.cols; k++)
                if (row[k] != ((const float *)want.data)[n * want.cols + k])
                    fail_msg("row %d, column %d is %g, not %g", (int)n, (int)k, (double)row[k],
                             (double)((const float *)want.data)[n * want.cols + k]);
        }
    }
    golden_close(&g);
}

/* ---- products ------------------------------------------------------------------------------------------ */

static void t_products(void **state)
{
    static const int64_t sizes[][3] = {
        {72, 512, 1}, {40, 256, 3}, {64, 1152, 30}, {8, 128, 2}, {136, 384, 7}};
    static struct gptq_matrix m;
    static float values[GPTQ_ROWS * GPTQ_COLS];
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    gptq_random = check_seed();
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        double worst = 0;
        for (int k = 0; k < 20; k++) {
            gptq_fill(&m, sizes[k / 4][0], sizes[k / 4][1], k & 1, k & 1, gptq_random_word);
            for (int64_t r = 0; r < m.rows; r++)
                quant_source_row(&m.source, r, values + r * m.cols);
            worst =
                check_worse(worst, product_apart(b, QUANT_GPTQ, &m.source, values, k & 2 ? DT_BF16 : DT_F32,
                                                 sizes[k / 4][2], &gptq_random));
        }
        check_note("%-10s off by %.1e of the norms of its factors", names[i], worst);
        assert_true(worst < 1e-5); /* 8-bit weights are multiplied with 16-bit activations */
        backend_free(b);
    }
}

/* ---- directories ---------------------------------------------------------------------------------------- */

static void t_directories(void **state)
{
    gptq_random = check_seed();
    for (int i = 0; i < 4; i++) {
        struct tiny t, plain;
        gptq_pair(&t, &plain, i & 1, i & 2);
        double worst = tiny_worst(&t, &plain);
        check_note("%s format%s: logits off by %.1e", i & 1 ? "first" : "second", i & 2 ? ", moved" : "",
                   worst);
        assert_true(worst < 1e-4);
    }
}

/* ---- refusals ------------------------------------------------------------------------------------------ */

static void t_configs(void **state)
{
    static const char *const configs[][2] = {
        {GPTQ_METHOD(""), "'bits' is missing"},
        {GPTQ_METHOD(",\"bits\":4"), "'group_size' is missing"},
        {GPTQ_METHOD(",\"bits\":8,\"group_size\":128"), "8 bits in groups of 128; only 4 bits"},
        {GPTQ_METHOD(",\"bits\":4,\"group_size\":-1"), "4 bits in groups of -1"},
        {GPTQ_METHOD(",\"bits\":4,\"group_size\":128,\"checkpoint_format\":\"marlin\""),
         "'checkpoint_format' is 'marlin'"},
        {GPTQ_METHOD(",\"bits\":4,\"group_size\":128,\"checkpoint_format\":3"),
         "'checkpoint_format' is 'no text'"},
    };
    tiny_refused_quantization(configs, sizeof configs / sizeof *configs, "config.json: quantization_config");
}

static void t_damage(void **state)
{
    static const char front[] = GPTQ_LAYER "0.mlp.shared_expert.down_proj";
    char codes[96], zeros[96], scales[96], order[96];
    struct tiny t, plain;
    const uint16_t infinite = 0x7c00;
    const int32_t far = 2, negative = -1;
    gptq_random = check_seed();
    snprintf(codes, sizeof codes, "%s.qweight", front);
    snprintf(zeros, sizeof zeros, "%s.qzeros", front);
    snprintf(scales, sizeof scales, "%s.scales", front);
    snprintf(order, sizeof order, "%s.g_idx", front);
#define SPOILT(what, naming, says)                                                                           \
    gptq_pair(&t, &plain, 1, true);                                                                          \
    tiny_free(&plain);                                                                                       \
    what;                                                                                                    \
    tiny_damaged(&t, naming, says)
    SPOILT(tiny_drop(&t, codes), front, "is missing");
    SPOILT(tiny_drop(&t, zeros), codes, "has no matching 'qzeros'");
    SPOILT(tiny_drop(&t, scales), codes, "has no matching 'scales'");
    SPOILT(tiny_find(&t, codes)->type = "F32", codes, "f32 [32, 40]; expected i32 [32, 40]");
    SPOILT(tiny_find(&t, codes)->shape[0] = 64;
           tiny_find(&t, codes)->shape[1] = 20, codes, "expected i32 [32, 40]");
    SPOILT(tiny_find(&t, zeros)->shape[0] = 5;
           tiny_find(&t, zeros)->shape[1] = 2, zeros, "expected i32 [2, 5]");
    SPOILT(tiny_find(&t, scales)->type = "BF16", scales, "bf16 [2, 40]; expected f16 [2, 40]");
    SPOILT(memcpy(tiny_find(&t, scales)->data + 6, &infinite, 2), scales,
           "1 scales that are NaN or infinite");
    SPOILT(memcpy(tiny_find(&t, order)->data + 12, &far, 4), order, "column 3 to a full or invalid group");
    SPOILT(memcpy(tiny_find(&t, order)->data + 12, &negative, 4), order, "column 3 to");
    SPOILT(memset(tiny_find(&t, order)->data, 0, GPTQ_SHARED * 4), order, "column 128 to a full");
    SPOILT(tiny_find(&t, order)->dims = 2; tiny_find(&t, order)->shape[1] = 1, order, "expected i32 [256]");
    SPOILT(tiny_edit(&t.config, "\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128",
                     "\"quant_algo\":\"FP8\""),
           GPTQ_LAYER "0.mlp.experts.3.down_proj.qweight", "'quant_method' in the config is not 'gptq'");
#undef SPOILT
}

static const struct CMUnitTest tests[] = {
    CLAIM("numbers in both formats of GPTQ, columns moved or not, are those that auto-round reads",
          t_numbers),
    CLAIM("products with GPTQ weights equal products with their values, alone and in a batch", t_products),
    CLAIM("a directory in GPTQ computes the same as its values", t_directories),
    CLAIM("widths, groups and formats that no published file has are refused", t_configs),
    CLAIM("missing, damaged or contradictory parts of GPTQ are refused by name", t_damage),
};

CHECK_MAIN()
