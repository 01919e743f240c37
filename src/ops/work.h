/* work.h - working memory of GPU operations, in addition to their tensors.
 *
 * Both the kernels (before they allocate) and the capacity plan (before there is a GPU) use these
 * functions, so that they agree. Memory that would grow with the number of rows is limited: the rows are
 * processed in parts. */
#pragma once

#include "ops/quant.h"

/* Maximum bytes per part of an operation. Tests use smaller limits. */
struct work_parts {
    size_t dequantized; /* dequantized matrix */
    size_t sums;        /* f32 sums of a product */
    size_t experts;     /* intermediate results of experts */
    size_t splits;      /* partial results of attention */
    size_t library;     /* workspace of cuBLASLt */
};
extern const struct work_parts work_parts_usual;

/* Formats with a record for each block: bits of a code; bytes of a row of codes, and the offsets of the
 * records, of the column order and of the end. */
struct work_blocks {
    size_t line, records, order, end;
};
int64_t work_block_bits(enum quant_format format);
struct work_blocks work_blocks(enum quant_format format, int64_t rows, int64_t cols);

/* Return the device bytes of a quantized matrix, and of a plain one, whose rows are padded to 16 bytes. */
size_t work_quantized_matrix(enum quant_format format, int64_t rows, int64_t cols);
size_t work_matrix(enum dtype t, int64_t rows, int64_t cols);
size_t work_tensor(size_t bytes); /* rounded up to the allocation unit of the device */

/* Returns the bytes of f32 sums of a product with `cols` columns. */
size_t work_sums(const struct work_parts *p, int64_t cols);

/* Return the rows of a quantized matrix that are dequantized at once, with K rounded up to whole blocks
 * (`room`), and their bytes; work_quantized() includes their sums. */
struct work_dequantized {
    int64_t rows;
    size_t bytes;
};
struct work_dequantized work_dequantized(const struct work_parts *p, int64_t room);
size_t work_quantized(const struct work_parts *p, int64_t room);
int64_t work_room(enum quant_format format, int64_t cols);

/* Returns the rows of x that are rounded to e4m3 at once: their codes and scales occupy the memory of a
 * dequantized matrix, and at least 16 columns of their sums fit in work_sums(). */
int64_t work_rounded_rows(const struct work_parts *p, int64_t room);

/* Return the memory of experts: bytes of each of four lists with one entry per choice, of the inner
 * activations and of the results, which first hold the gates; and the rows that run at once. */
struct work_experts {
    size_t list, inner, results, all;
};
struct work_experts work_experts(int64_t choices, int64_t experts, int64_t inner, int64_t out, enum dtype t);
int64_t work_expert_rows(const struct work_parts *p, int64_t chosen, int64_t inner, int64_t out,
                         enum dtype t);

/* Returns the memory of attention for queries whose keys are cut into splits, with `floats_each` f32
 * partial results each. */
/* WORK_KEYS: bytes that describe a session's keys */
enum { WORK_SPLITS = 32 /* maximum per query */, WORK_KEYS = 40 };
struct work_attend {
    size_t queries, owners, all;
};
struct work_attend work_attend(int64_t queries, int64_t splits, int64_t floats_each);

/* Sampling: maximum rows at once; bytes of a row's parameters and search state; masks kept on the device,
 * at most two per row. */
enum {
    WORK_SAMPLED_ROWS = 128,
    WORK_SAMPLING_STATE = 128,
    WORK_MASKS = 2 * WORK_SAMPLED_ROWS,
    WORK_EXCHANGE = 2 * WORK_SAMPLED_ROWS * WORK_SAMPLING_STATE
};
size_t work_sampling(int rows); /* bins of a search */
size_t work_masks(int64_t ids);

/* Tokens whose inputs are buffered next to a Mamba-2 state with delayed write-back. */
enum { WORK_RING = 8 };

/* Counters of finished blocks, for a batch of WORK_SESSIONS sessions. */
enum { WORK_SESSIONS = 128 };
size_t work_counts(int64_t groups);

/* Returns the bytes for an image: its pixels, filters, and the rows between the two passes. */
size_t work_picture(const struct picture *p, int tiles);
