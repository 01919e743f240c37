/* t_gptq.c - tests of 4-bit GPTQ weights: values equal those of auto-round (tests/golden/gptq, made by
 * tests/reference/make_gptq.py), and products and whole models equal those with these values. */
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

/* ---- values -------------------------------------------------------------------------------------------- */

enum { SEED = 43, MOST_GROUPS = 9, MOST_COLS = MOST_GROUPS * QUANT_GPTQ_GROUP, MOST_ROWS = 160 };

/* A matrix in the layout of its file. */
struct matrix {
    int64_t rows, cols;
    uint32_t codes[MOST_COLS / 8 * MOST_ROWS], zeros[MOST_GROUPS * MOST_ROWS / 8];
    uint16_t scales[MOST_GROUPS * MOST_ROWS];
    int32_t order[MOST_COLS], group[MOST_COLS];
    struct quant_gptq parts;
    struct quant_source source;
};

static uint64_t keys[MOST_COLS];

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = keys[*(const int32_t *)a], y = keys[*(const int32_t *)b];
    return x < y ? -1 : x > y;
}

/* Assigns columns to groups, in the order of `keys` if moved. */
static void put_order(struct matrix *m, bool moved)
{
    int32_t next[MOST_GROUPS] = {0}, sorted[MOST_COLS];
    for (int32_t k = 0; k < m->cols; k++)
        sorted[k] = k;
    if (moved)
        qsort(sorted, (size_t)m->cols, sizeof *sorted, compare_keys);
    for (int32_t k = 0; k < m->cols; k++)
        m->group[sorted[k]] = k / QUANT_GPTQ_GROUP;
    for (int32_t k = 0; k < m->cols; k++) { /* within a group, columns keep the file's order */
        int32_t g = m->group[k];
        m->order[g * QUANT_GPTQ_GROUP + next[g]++] = k;
    }
    m->parts.order = moved ? m->order : NULL;
}

/* Fills all parts of a matrix with values from `word`. */
static void fill(struct matrix *m, int64_t rows, int64_t cols, bool moved, int least,
                 uint64_t (*word)(const char *part, int64_t i))
{
    m->rows = rows;
    m->cols = cols;
    m->parts = (struct quant_gptq){.codes = m->codes, .zeros = m->zeros, .scales = m->scales, .least = least};
    m->source = (struct quant_source){.rows = rows, .cols = cols, .gptq = &m->parts};
    for (int64_t i = 0; i < cols / 8 * rows; i++)
        m->codes[i] = (uint32_t)(word("codes", i) >> 32);
    for (int64_t i = 0; i < cols / QUANT_GPTQ_GROUP * rows / 8; i++)
        m->zeros[i] = (uint32_t)(word("zeros", i) >> 32);
    for (int64_t i = 0; i < cols / QUANT_GPTQ_GROUP * rows; i++) {
        uint16_t h = (uint16_t)(word("scales", i) >> 48);
        m->scales[i] = (uint16_t)((h & 0x83ff) | (6 + (h >> 10 & 7)) << 10);
    }
    for (int64_t k = 0; k < cols; k++)
        keys[k] = word("order", k);
    put_order(m, moved);
}

static uint64_t drawn_word(const char *part, int64_t i)
{
    return golden_mixed(SEED, part, i);
}

static uint64_t random_word(const char *part, int64_t i)
{
    return (uint64_t)(check_random(&rng) * 4294967296.0) << 32 |
           (uint64_t)(check_random(&rng) * 4294967296.0);
}

static void t_numbers(void **state)
{
    static struct matrix m;
    struct golden g;
    golden_open(&g, "gptq");
    for (int i = 0; i < 3; i++) {
        struct golden_array want = golden_find(&g, i == 0   ? "first"
                                                   : i == 1 ? "first moved"
                                                            : "second moved");
        float row[MOST_COLS];
        assert_non_null(want.data);
        fill(&m, want.rows, want.cols, i > 0, i < 2, drawn_word);
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
    static struct matrix m;
    static float values[MOST_ROWS * MOST_COLS];
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    rng = check_seed();
    for (int i = 0; i < n; i++) {
        struct backend *b = backend_cpu(names[i], NULL, NULL);
        double worst = 0;
        for (int k = 0; k < 20; k++) {
            fill(&m, sizes[k / 4][0], sizes[k / 4][1], k & 1, k & 1, random_word);
            for (int64_t r = 0; r < m.rows; r++)
                quant_source_row(&m.source, r, values + r * m.cols);
            worst = check_worse(worst, product_apart(b, QUANT_GPTQ, &m.source, values,
                                                     k & 2 ? DT_BF16 : DT_F32, sizes[k / 4][2], &rng));
        }
        check_note("%-10s off by %.1e of the norms of its factors", names[i], worst);
        assert_true(worst < 1e-5); /* 8-bit weights are multiplied with 16-bit activations */
        backend_free(b);
    }
}

/* ---- directories --------------------------------------------------------------------------------------- */

enum { SHARED = 256, EXPERT = 128 };

#define LAYER "model.language_model.layers."

static void again(struct tiny *t, const char *name, const int64_t *shape)
{
    tiny_drop(t, name);
    tiny_add(t, name, 0, 0.2, shape);
}

/* Creates the tiny model with wider experts, so that down_proj consists of whole groups. */
static void make_wide(struct tiny *t)
{
    char name[96];
    static const char *const parts[] = {"gate", "up"};
    tiny_qwen(t, 5);
    tiny_edit(&t->config, "\"moe_intermediate_size\":24", "\"moe_intermediate_size\":128");
    tiny_edit(&t->config, "\"shared_expert_intermediate_size\":32",
              "\"shared_expert_intermediate_size\":256");
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, LAYER "%d.mlp.shared_expert.%s_proj.weight", i, parts[k]);
            again(t, name, TINY_SHAPE(SHARED, TINY_QWEN_HIDDEN));
        }
        snprintf(name, sizeof name, LAYER "%d.mlp.shared_expert.down_proj.weight", i);
        again(t, name, TINY_SHAPE(TINY_QWEN_HIDDEN, SHARED));
        if (i % 2) {
            snprintf(name, sizeof name, LAYER "%d.mlp.experts.gate_up_proj", i);
            again(t, name, TINY_SHAPE(5, 2 * EXPERT, TINY_QWEN_HIDDEN));
            snprintf(name, sizeof name, LAYER "%d.mlp.experts.down_proj%s", i, i == 1 ? "" : ".weight");
            again(t, name, TINY_SHAPE(5, TINY_QWEN_HIDDEN, EXPERT));
            continue;
        }
        for (int k = 0; k < 10; k++) {
            snprintf(name, sizeof name, LAYER "%d.mlp.experts.%d.%s_proj.weight", i, k / 2, parts[k % 2]);
            again(t, name, TINY_SHAPE(EXPERT, TINY_QWEN_HIDDEN));
        }
        for (int k = 0; k < 5; k++) {
            snprintf(name, sizeof name, LAYER "%d.mlp.experts.%d.down_proj.weight", i, k);
            again(t, name, TINY_SHAPE(TINY_QWEN_HIDDEN, EXPERT));
        }
    }
}

/* Replaces the weight `front` by the parts of a random matrix, and in `plain` by its values in f32. */
static void encode(struct tiny *t, struct tiny *plain, const char *front, int least, bool moved)
{
    static struct matrix m;
    char name[128];
    snprintf(name, sizeof name, "%s.weight", front);
    struct tiny_tensor *y = tiny_find(plain, name);
    int64_t rows = y->shape[0], cols = y->shape[1], groups = cols / QUANT_GPTQ_GROUP;
    fill(&m, rows, cols, moved, least, random_word);
    for (int64_t i = 0; i < groups * rows; i++)
        m.scales[i] = (uint16_t)((m.scales[i] & 0x83ff) | 9 << 10); /* about 1/50 */
    free(y->data);
    y->bytes = (size_t)(rows * cols) * sizeof(float);
    y->data = malloc(y->bytes);
    y->type = "F32";
    for (int64_t n = 0; n < rows; n++)
        quant_source_row(&m.source, n, (float *)(void *)y->data + n * cols);
    tiny_drop(t, name);
    tiny_put(t, front, ".qweight", "I32", m.codes, cols / 8, rows);
    tiny_put(t, front, ".qzeros", "I32", m.zeros, groups, rows / 8);
    tiny_put(t, front, ".scales", "F16", m.scales, groups, rows);
    if (moved)
        tiny_put(t, front, ".g_idx", "I32", m.group, cols, 0);
}

#define GPTQ(rest) "\"quant_method\":\"gptq\"" rest

static void make_pair(struct tiny *t, struct tiny *plain, int least, bool moved)
{
    static const char *const coded[] = {LAYER "0.mlp.shared_expert.down_proj",
                                        LAYER "3.mlp.shared_expert.down_proj",
                                        LAYER "0.mlp.experts.3.down_proj", LAYER "2.mlp.experts.1.down_proj"};
    make_wide(t);
    make_wide(plain);
    for (size_t i = 0; i < sizeof coded / sizeof *coded; i++)
        encode(t, plain, coded[i], least, moved);
    tiny_quantization(t, least ? GPTQ(",\"bits\":4,\"group_size\":128,\"desc_act\":true,\"sym\":true")
                               : GPTQ(",\"bits\":4,\"group_size\":128,\"checkpoint_format\":\"gptq_v2\""));
}

static void t_directories(void **state)
{
    rng = check_seed();
    for (int i = 0; i < 4; i++) {
        struct tiny t, plain;
        make_pair(&t, &plain, i & 1, i & 2);
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
        {GPTQ(""), "'bits' is missing"},
        {GPTQ(",\"bits\":4"), "'group_size' is missing"},
        {GPTQ(",\"bits\":8,\"group_size\":128"), "8 bits in groups of 128; only 4 bits"},
        {GPTQ(",\"bits\":4,\"group_size\":-1"), "4 bits in groups of -1"},
        {GPTQ(",\"bits\":4,\"group_size\":128,\"checkpoint_format\":\"marlin\""),
         "'checkpoint_format' is 'marlin'"},
        {GPTQ(",\"bits\":4,\"group_size\":128,\"checkpoint_format\":3"), "'checkpoint_format' is 'no text'"},
    };
    tiny_refused_quantization(configs, sizeof configs / sizeof *configs, "config.json: quantization_config");
}

static void t_damage(void **state)
{
    static const char front[] = LAYER "0.mlp.shared_expert.down_proj";
    char codes[96], zeros[96], scales[96], order[96];
    struct tiny t, plain;
    const uint16_t infinite = 0x7c00;
    const int32_t far = 2, negative = -1;
    rng = check_seed();
    snprintf(codes, sizeof codes, "%s.qweight", front);
    snprintf(zeros, sizeof zeros, "%s.qzeros", front);
    snprintf(scales, sizeof scales, "%s.scales", front);
    snprintf(order, sizeof order, "%s.g_idx", front);
#define SPOILT(what, naming, says)                                                                           \
    make_pair(&t, &plain, 1, true);                                                                          \
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
    SPOILT(memset(tiny_find(&t, order)->data, 0, SHARED * 4), order, "column 128 to a full");
    SPOILT(tiny_find(&t, order)->dims = 2; tiny_find(&t, order)->shape[1] = 1, order, "expected i32 [256]");
    SPOILT(tiny_edit(&t.config, "\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128",
                     "\"quant_algo\":\"FP8\""),
           LAYER "0.mlp.experts.3.down_proj.qweight", "'quant_method' in the config is not 'gptq'");
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
