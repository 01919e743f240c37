/* gguf_model.h - writes the weights of golden data as GGUF files with the conversions of llama.cpp's
 * converter: tensor names, norms + 1, -exp(A_log), tiled value heads, one tensor per expert and frame.
 *
 * make_gguf.py writes the same files with the gguf package and checks that llama.cpp reads them;
 * tests/golden/gguf has the hashes.
 */
#pragma once

#include "full_model.h"
#include "gguf.h"
#include "golden.h"

/* Type of the matrices whose rows have whole blocks; others are F32. F32, BF16, F16 and Q8_0 hold the model's
 * values; other types hold random blocks of similar magnitude. GGML_MIXED: each matrix has the next type,
 * vectors alternate F32 and F64. */
enum { GGML_MIXED = GGML_TYPES };
struct gguf_form {
    enum ggml_type matrices;
    bool numbers; /* dequantized numbers in F32 instead of blocks */
    bool scales;  /* NVFP4 matrices have a separate scale of 0.5, each expert its own */
};

/* Writes the merges of a tokenizer.json, pairs of texts, in the form of GGUF. */
void gguf_merges(struct gguf *g, const json_t *merges);

/* Writes DIR/model.gguf and, for a model with vision, DIR/mmproj.gguf, with the tokenizer of
 * g->dir/tokenizer.json if it exists. */
void gguf_model(const struct golden *g, struct gguf_form form, const char *dir);

/* Writes a model of a published size into m->dir with holes as tensors; the matrices of vision are BF16, as
 * converters leave them. */
void gguf_holes(const struct full_model *m, enum ggml_type matrices);
