/* work.h - working memory of GPU operations: how much each takes beside the tensors it is given.
 *
 * The kernels ask here before they take memory, and the capacity plan before there is a GPU, so that
 * both agree.  Memory that would grow with the number of rows is bounded: the rows run in parts.
 */
#ifndef HOLORUN_OPS_WORK_H
#define HOLORUN_OPS_WORK_H

#include "ops/quant.h"

/* Bytes that one part of an operation may take.  Tests use smaller ones than real cards. */
struct work_parts {
    size_t dequantized; /* of a dequantized matrix */
    size_t sums;        /* of a product, in f32 */
    size_t experts;     /* of experts' intermediate results */
    size_t splits;      /* of attention's partial results */
    size_t partials;    /* of products' partial sums */
    size_t library;     /* workspace of cuBLASLt */
};
extern const struct work_parts work_parts_usual;

/* Device bytes of a quantized matrix, and of a plain one, whose rows are padded to 16 bytes. */
size_t work_quantized_matrix(enum quant_format format, int64_t rows, int64_t cols);
size_t work_matrix(enum dtype t, int64_t rows, int64_t cols);
size_t work_tensor(size_t bytes); /* rounded up to the unit of a card's memory */

/* f32 sums of a product with so many columns. */
size_t work_sums(const struct work_parts *p, int64_t cols);

/* Rows of a quantized matrix that are dequantized at once, with K rounded up to whole blocks (`room`),
 * and their bytes; work_quantized: with what products of many rows need as well. */
struct work_dequantized {
    int64_t rows;
    size_t bytes;
};
struct work_dequantized work_dequantized(const struct work_parts *p, int64_t room);
size_t work_quantized(const struct work_parts *p, enum quant_format format, int64_t room);
int64_t work_room(enum quant_format format, int64_t cols);

/* Rows of x that are rounded to e4m3 at once: their codes and scales are where a dequantized matrix would
 * be, and of their sums 16 columns or more fit into work_sums. */
int64_t work_rounded_rows(const struct work_parts *p, int64_t room);

/* Partial sums of a product of quantized weights on their codes: two for each of so many blocks. */
enum { WORK_BANDS = 4096 /* of 64 rows of the weight, at most */ };
int64_t work_partial_blocks(const struct work_parts *p);
size_t work_partials(const struct work_parts *p);

/* Experts: bytes of each of four lists with one entry per choice, of the inner activations and of the
 * results, where gates are before; and the rows that run at once. */
struct work_experts {
    size_t list, inner, results, all;
};
struct work_experts work_experts(int64_t choices, int64_t experts, int64_t inner, int64_t out, enum dtype t);
int64_t work_expert_rows(const struct work_parts *p, int64_t chosen, int64_t inner, int64_t out,
                         enum dtype t);

/* Attention of some queries whose keys are cut into splits, with so many f32 partial results each. */
/* bytes that describe a session's keys */
enum { WORK_SPLITS = 32 /* of one query, at most */, WORK_KEYS = 40 };
struct work_attend {
    size_t queries, owners, all;
};
struct work_attend work_attend(int64_t queries, int64_t splits, int64_t floats_each);

/* Sampling: rows at once, bytes of a row's parameters and search state; and the masks kept on the device,
 * of which each row needs two at most. */
enum {
    WORK_SAMPLED_ROWS = 128,
    WORK_SAMPLING_STATE = 128,
    WORK_MASKS = 2 * WORK_SAMPLED_ROWS,
    WORK_EXCHANGE = 2 * WORK_SAMPLED_ROWS * WORK_SAMPLING_STATE
};
size_t work_sampling(int rows); /* bins of a search */
size_t work_masks(int64_t ids);

/* Tokens whose inputs are kept beside a Mamba-2 state that is not written at each. */
enum { WORK_RING = 8 };

/* Counters of finished blocks, for a batch of so many sessions. */
enum { WORK_SESSIONS = 128 };
size_t work_counts(int64_t groups); /* and for the bands of a product */

/* An image: its pixels, filters, and the rows between the two passes. */
size_t work_picture(const struct picture *p, int tiles);

#endif
