/* quant.h - formats of quantized matrices, and quantization of a row.
 *
 *     W[n, k] = value(code[n, k]) * group[n, k / G] * scale[n]
 *
 *   format  code                 G    group scale                scale
 *   i8      integer, -127..127   -    1                          largest magnitude of the row / 127
 *   i4      integer, -8..7       32   bf16, least square error   1
 *   f8      e4m3                 -    1                          the file's, one for the matrix or the row;
 *                                                                made here: largest magnitude / 448
 *   f4      e2m1                 16   the file's, e4m3           the file's, one for the matrix
 *   f8 in blocks  e4m3           128  the file's for 128 x 128, f32    1
 *   Q8_0         integer, -128..127   32   f16                          1
 *   Q4_1, Q5_1   integer, 0..15, 0..31  32   f16                        1    less a minimum of the group
 *   8 bits in 16s  integer, -128..127   16   f16                        1
 *   4 bits in 16s  integer, 0..15       16   f16                        1    less a minimum of the group
 *   Q4_K, Q5_K   integer, 0..15, 0..31  32   the file's                 1    less a minimum of the group
 *   Q6_K         integer, -32..31     16   the file's                   1
 *   GPTQ         integer, 0..15      128   the file's, f16              1    less the group's zero * scale
 *
 * i8, i4 and f8 are quantized here from any float type; f8 and f4 also store the FP8 and NVFP4 matrices of
 * published checkpoints without loss. Every value(code) is exact in bf16, so that products with bf16
 * activations need no further rounding: the kernels multiply exactly what this table says.
 *
 * Quantizing is plain C without contraction, the same on every machine.
 */
#pragma once

#include "ops/ops.h"

enum { QUANT_I4_GROUP = 32, QUANT_F4_GROUP = 16, QUANT_F8_BLOCK = 128, QUANT_GPTQ_GROUP = 128 };

/* "i8" */
const char *quant_name(enum quant_format format);
int64_t quant_group(enum quant_format format); /* G; 0: no groups */
/* Returns the number of 16-bit words for the group scales of a row: one per group; two per group for f8 in
 * blocks, the upper half of an f32 first; for GGUF blocks the size of their records. */
int64_t quant_groups(enum quant_format format, int64_t cols);

/* Returns the bytes of codes and scales, without the padding of a backend. */
double quant_size(enum quant_format format, int64_t rows, int64_t cols);

float quant_value(enum quant_format format, int code);

/* Converts row n of a source to f32. */
void quant_source_row(const struct quant_source *s, int64_t n, float *out);

/* Quantizes row n: codes [cols], one byte each; group scales [quant_groups]; the row's scale. f4 requires a
 * source stored as f4; an f8 source keeps its codes and scale. Q8_0, Q4_1, Q5_1 and the groups of 16 require
 * the GGUF types that gguf_rows.h lists for them. */
struct quant_row {
    uint8_t *codes;
    uint16_t *groups;
    float scale;
    float *room; /* [cols] scratch */
};
void quant_make_row(enum quant_format format, const struct quant_source *s, int64_t n, struct quant_row *out);

/* Returns x rounded to f16, clamped to its largest finite number. */
uint16_t quant_half(float x);

/* Returns the scale of group g of row n of an f4 source, as e4m3. */
uint8_t quant_f4_scale(const struct quant_source *s, int64_t n, int64_t g);

/* If a weight was marked by round_activations, the activations of its products are rounded to 8 bits:
 * -127..127 times one scale per group. quant_activation_group() returns the columns of a group: those of the
 * weight's groups, else 128. quant_round_row() rounds a row of n values. */
int64_t quant_activation_group(enum quant_format format);
void quant_round_row(float *row, int64_t n, int64_t group);

/* Rounds a row to e4m3 for f8 weights, with one scale (f8.h), which is returned. */
float quant_f8_row(uint8_t *codes, const float *row, int64_t n);

/* ---- blocks of GGUF files (blocks.c) --------------------------------------------------------------------
 *
 * A block of 32 or 256 numbers becomes codes of one byte each and a record of 16-bit words: d as f16; for
 * Q4_K and Q5_K also m as f16; then the scales of the groups and their minima, two bytes per word. A number
 * is
 *     code d scale - m minimum
 * where 32 is subtracted from Q6_K's codes. quant_group() returns the numbers in a block, quant_groups() the
 * words of the records.
 *
 * A GPTQ group is also stored as such a block; its record is d as f16 and the integer zero point. */
static inline bool quant_is_blocks(enum quant_format format)
{
    return format >= QUANT_Q8_0;
}
/* Returns whether a matrix has a record for each block, or f32 scales of its blocks: a GPU multiplies few
 * rows by it without tensor cores (cuda/blocks.cuh). */
static inline bool quant_has_records(enum quant_format format)
{
    return format == QUANT_F8_BLOCKS || quant_is_blocks(format);
}
int64_t blocks_span(enum quant_format format);                 /* numbers of a block */
int64_t blocks_stored(enum quant_format format, int64_t cols); /* bytes of a row in the file */
int64_t blocks_bits(enum quant_format format);                 /* of a code in memory */
int64_t blocks_lines(enum quant_format format, int64_t cols);  /* bytes of a column's codes in a panel */
int64_t blocks_words(enum quant_format format);                /* words of a record */
int64_t blocks_group(enum quant_format format);                /* numbers that share a scale */
int blocks_offset(enum quant_format format);

struct blocks_scale {
    float scale, low; /* a number is code * scale - low; the product in scale is exact */
};
struct blocks_scale blocks_scale(enum quant_format format, const uint16_t *record, int64_t group);
float blocks_value(enum quant_format format, int code, const uint16_t *record, int64_t k);

void blocks_take(enum quant_format format, const uint8_t *block, uint8_t *codes,
                 uint16_t *record); /* GGUF's */
void blocks_row(enum quant_format format, const uint8_t *row, int64_t cols, float *out);

/* Adds the codes of a column to a panel whose words are `step` bytes apart. 8-bit codes: four per word, plus
 * 128 each. Other codes: units of 8, 32 or 16 codes, whose low four bits are stored eight per word as in
 * quant_panels, followed by a word with the higher bits, those of the unit's first four codes lowest. */
void blocks_put(enum quant_format format, const uint8_t *codes, int64_t cols, uint8_t *to, int64_t step);

/* Read row n of a GPTQ matrix: codes [K], whose columns are ordered by group, and records [K/128][2]; or the
 * numbers in the column order of the matrix. */
void gptq_take(const struct quant_source *s, int64_t n, uint8_t *codes, uint16_t *records);
void gptq_row(const struct quant_source *s, int64_t n, float *out);

/* Layout of panels of `columns` columns of W^T for the fast kernels: the codes of each panel, one byte each
 * (half a byte with packed4), in the kernels' order; bf16 group scales, those of a panel together; one f32
 * scale per column; for GPTQ the column order, i32 [cols]. Padding to whole panels and groups (without
 * groups: to a multiple of four k) is zero. */
struct quant_panels {
    bool packed4;
    int64_t panels, lines, groups; /* lines: number of rows of one byte per column in a panel */
    int64_t wide;                  /* numbers per column, including padding */
    size_t groups_at, scales_at, order_at, end;
};
struct quant_panels quant_panels(enum quant_format format, int64_t rows, int64_t cols, int64_t columns);
