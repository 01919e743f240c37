/* gptq_model.h - random matrices in the layout of GPTQ, and tiny models with them. */
#pragma once

#include "tiny_qwen.h"

#include "ops/quant.h"

enum { GPTQ_GROUPS = 9, GPTQ_COLS = GPTQ_GROUPS * QUANT_GPTQ_GROUP, GPTQ_ROWS = 160 };

/* A matrix in the layout of its file. */
struct gptq_matrix {
    int64_t rows, cols;
    uint32_t codes[GPTQ_COLS / 8 * GPTQ_ROWS], zeros[GPTQ_GROUPS * GPTQ_ROWS / 8];
    uint16_t scales[GPTQ_GROUPS * GPTQ_ROWS];
    int32_t order[GPTQ_COLS], group[GPTQ_COLS];
    struct quant_gptq parts;
    struct quant_source source;
};

/* Fills all parts of a matrix with values from `word`. */
void gptq_fill(struct gptq_matrix *m, int64_t rows, int64_t cols, bool moved, int least,
               uint64_t (*word)(const char *part, int64_t i));

/* Words from gptq_random. */
extern uint64_t gptq_random;
uint64_t gptq_random_word(const char *part, int64_t i);

enum { GPTQ_SHARED = 256 }; /* columns of the shared expert's down_proj */
#define GPTQ_LAYER        "model.language_model.layers."
#define GPTQ_METHOD(rest) "\"quant_method\":\"gptq\"" rest

/* Makes a model with GPTQ matrices, their columns in order or moved, and one with their values in f32.
 * Two of them are single experts among others in bf16. least: added to stored zero points, 1 in the first format. */
void gptq_pair(struct tiny *t, struct tiny *plain, int least, bool moved);
