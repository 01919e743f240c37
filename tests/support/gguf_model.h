/* gguf_model.h - the weights of golden data as GGUF files, as the converter of such files makes them: names,
 * 1 added to norms, -exp(A_log), value heads in tiled order, experts and frames in tensors of their own.
 *
 * make_gguf.py writes the same with the gguf package and lets llama.cpp read it; tests/golden/gguf has the
 * hashes.
 */
#ifndef HOLORUN_TESTS_GGUF_MODEL_H
#define HOLORUN_TESTS_GGUF_MODEL_H

#include "full_model.h"
#include "gguf.h"
#include "golden.h"

/* How matrices are stored where a row has whole blocks, else in F32: F32, BF16, F16, Q8_0 with the model's
 * values; in another type random blocks of numbers of their usual size; GGML_MIXED: each in the next of all
 * types, vectors in F32 and F64 in turn. */
enum { GGML_MIXED = GGML_TYPES };
struct gguf_form {
    enum ggml_type matrices;
    bool numbers; /* instead of blocks the numbers that they stand for, in F32 */
    bool scales;  /* matrices in NVFP4 have a scale of 0.5 beside them, each expert its own */
};

/* Writes the merges of a tokenizer.json, pairs of texts, as GGUF has them. */
void gguf_merges(struct gguf *g, const json_t *merges);

/* Writes DIR/model.gguf and, of a model with a tower, DIR/mmproj.gguf; the tokenizer is that of
 * g->dir/tokenizer.json, if there is one. */
void gguf_model(const struct golden *g, struct gguf_form form, const char *dir);

/* The same of a model of a published size, beside its other files in m->dir, whose tensors are holes; the
 * tower's matrices are BF16, as converters leave them. */
void gguf_holes(const struct full_model *m, enum ggml_type matrices);

#endif
