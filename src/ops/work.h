/* work.h - working memory of operations on a GPU beside the tensors they are given: how much each takes.
 *
 * The kernels' side asks here before it takes memory, and the plan of a model before there is a GPU, so that both mean the
 * same.  What many rows would need without end is bounded: they go through in parts.
 */
#ifndef HOLORUN_OPS_WORK_H
#define HOLORUN_OPS_WORK_H

#include "ops/quant.h"

/* Bytes that parts of an operation may take; those of a real card unless a test has smaller ones. */
struct work_parts {
    size_t wide;    /* of a matrix of small numbers, widened */
    size_t sums;    /* of a product, in f32 */
    size_t experts; /* of what experts compute */
    size_t pieces;  /* of attention of several sessions */
    size_t library; /* of cuBLASLt, always taken */
};
extern const struct work_parts work_parts_usual;

/* A matrix of small numbers on the device, and one of others, whose rows are padded to 16 bytes. */
size_t work_quantized_matrix(enum quant_format format, int64_t rows, int64_t cols);
size_t work_matrix(enum dtype t, int64_t rows, int64_t cols);
size_t work_tensor(size_t bytes); /* what memory is taken in */

/* Sums of a product with so many columns. */
size_t work_sums(const struct work_parts *p, int64_t cols);

/* Rows of a matrix of small numbers that are widened at once, K rounded up to whole blocks being `room`, and the bytes
 * they take; together with what products of many rows need beside. */
struct work_widened {
    int64_t rows;
    size_t bytes;
};
struct work_widened work_widened(const struct work_parts *p, int64_t room);
size_t work_quantized(const struct work_parts *p, enum quant_format format, int64_t room);
int64_t work_room(enum quant_format format, int64_t cols);

/* Experts: bytes of each of four lists of so many choices, of the inner numbers and the results; rows at once. */
struct work_experts {
    size_t list, inner, results, all;
};
struct work_experts work_experts(int64_t choices, int64_t experts, int64_t inner, int64_t out, enum dtype t);
int64_t work_expert_rows(const struct work_parts *p, int64_t chosen, int64_t inner, int64_t out,
                         enum dtype t);

/* Attention of some queries with keys in so many pieces, each with so many numbers in f32. */
enum { WORK_PIECES = 32 /* of one query, at most */, WORK_KEYS = 40 /* bytes that say where those are */ };
struct work_attend {
    size_t queries, owners, all;
};
struct work_attend work_attend(int64_t queries, int64_t pieces, int64_t floats_each);

/* A choice of the next token in so many rows, and the sets of ids that are kept. */
enum { WORK_CHOICES = 32 /* rows at once */, WORK_CHOICE = 128 /* bytes of one's state */ };
size_t work_choose(int rows);
size_t work_sets(int64_t ids);

/* Counts of blocks that are done, of one token of each of so many sessions. */
enum { WORK_SESSIONS = 128 };
size_t work_counts(int64_t groups);

/* A picture: its pixels, filters, and rows between them. */
size_t work_picture(const struct picture *p, int tiles);

#endif
