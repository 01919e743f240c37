/* gptq_model.c - see gptq_model.h. */
#include "gptq_model.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t gptq_random;

static uint64_t keys[GPTQ_COLS];

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = keys[*(const int32_t *)a], y = keys[*(const int32_t *)b];
    return x < y ? -1 : x > y;
}

/* Assigns columns to groups, in the order of `keys` if moved. */
static void put_order(struct gptq_matrix *m, bool moved)
{
    int32_t next[GPTQ_GROUPS] = {0}, sorted[GPTQ_COLS];
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

void gptq_fill(struct gptq_matrix *m, int64_t rows, int64_t cols, bool moved, int least,
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

uint64_t gptq_random_word(const char *part, int64_t i)
{
    return (uint64_t)(check_random(&gptq_random) * 4294967296.0) << 32 |
           (uint64_t)(check_random(&gptq_random) * 4294967296.0);
}

enum { EXPERT = 128 };

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
            snprintf(name, sizeof name, GPTQ_LAYER "%d.mlp.shared_expert.%s_proj.weight", i, parts[k]);
            again(t, name, TINY_SHAPE(GPTQ_SHARED, TINY_QWEN_HIDDEN));
        }
        snprintf(name, sizeof name, GPTQ_LAYER "%d.mlp.shared_expert.down_proj.weight", i);
        again(t, name, TINY_SHAPE(TINY_QWEN_HIDDEN, GPTQ_SHARED));
        if (i % 2) {
            snprintf(name, sizeof name, GPTQ_LAYER "%d.mlp.experts.gate_up_proj", i);
            again(t, name, TINY_SHAPE(5, 2 * EXPERT, TINY_QWEN_HIDDEN));
            snprintf(name, sizeof name, GPTQ_LAYER "%d.mlp.experts.down_proj%s", i, i == 1 ? "" : ".weight");
            again(t, name, TINY_SHAPE(5, TINY_QWEN_HIDDEN, EXPERT));
            continue;
        }
        for (int k = 0; k < 10; k++) {
            snprintf(name, sizeof name, GPTQ_LAYER "%d.mlp.experts.%d.%s_proj.weight", i, k / 2,
                     parts[k % 2]);
            again(t, name, TINY_SHAPE(EXPERT, TINY_QWEN_HIDDEN));
        }
        for (int k = 0; k < 5; k++) {
            snprintf(name, sizeof name, GPTQ_LAYER "%d.mlp.experts.%d.down_proj.weight", i, k);
            again(t, name, TINY_SHAPE(TINY_QWEN_HIDDEN, EXPERT));
        }
    }
}

/* Replaces the weight `front` by the parts of a random matrix, and in `plain` by its values in f32. */
static void encode(struct tiny *t, struct tiny *plain, const char *front, int least, bool moved)
{
    static struct gptq_matrix m;
    char name[128];
    snprintf(name, sizeof name, "%s.weight", front);
    struct tiny_tensor *y = tiny_find(plain, name);
    int64_t rows = y->shape[0], cols = y->shape[1], groups = cols / QUANT_GPTQ_GROUP;
    gptq_fill(&m, rows, cols, moved, least, gptq_random_word);
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

void gptq_pair(struct tiny *t, struct tiny *plain, int least, bool moved)
{
    static const char *const coded[] = {
        GPTQ_LAYER "0.mlp.shared_expert.down_proj", GPTQ_LAYER "3.mlp.shared_expert.down_proj",
        GPTQ_LAYER "0.mlp.experts.3.down_proj", GPTQ_LAYER "2.mlp.experts.1.down_proj"};
    make_wide(t);
    make_wide(plain);
    for (size_t i = 0; i < 4; i++)
        encode(t, plain, coded[i], least, moved);
    tiny_quantization(
        t, least ? GPTQ_METHOD(",\"bits\":4,\"group_size\":128,\"desc_act\":true,\"sym\":true")
                 : GPTQ_METHOD(",\"bits\":4,\"group_size\":128,\"checkpoint_format\":\"gptq_v2\""));
}
