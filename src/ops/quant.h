/* quant.h - matrices of small numbers: what they mean, and how one is made from a matrix of a file.
 *
 *     W[n, k] = value(code[n, k]) * group[n, k / G] * scale[n]
 *
 *   form  code                 G    group scale               scale
 *   i8    integer, -127..127   -    1                         largest magnitude of the row / 127
 *   i4    integer, -8..7       32   bf16, least square error   1
 *   f8    e4m3                 -    1                         of the file, one for the matrix or the row; made here:
 *                                                             largest magnitude of the row / 448
 *   f4    e2m1                 16   e4m3 of the file           of the file, one for the matrix
 *
 * i8, i4 and f8 are made here from numbers of any kind; f8 and f4 are also what published checkpoints hold (FP8 and
 * NVFP4) and keep every bit of it.  Every value(code) is exact in bf16, so that products with bf16 activations need no
 * further rounding: the kernels multiply exactly what this table says.
 *
 * Making codes is plain C without contraction, the same on every machine.
 */
#ifndef HOLORUN_OPS_QUANT_H
#define HOLORUN_OPS_QUANT_H

#include "ops/ops.h"

enum { QUANT_I4_GROUP = 32, QUANT_F4_GROUP = 16 };

/* "i8" */
const char *quant_name(enum quant_format format);
bool quant_is_packed4(enum quant_format format); /* two codes in a byte, the even k in the low half */
int64_t quant_group(enum quant_format format);   /* G; 0: no groups */
int64_t quant_groups(enum quant_format format, int64_t cols);

/* Bytes of codes and scales, whatever is added for a backend's order. */
double quant_size(enum quant_format format, int64_t rows, int64_t cols);

float quant_value(enum quant_format format, int code);

/* Row n of a matrix as numbers. */
void quant_source_row(const struct quant_source *s, int64_t n, float *out);

/* Row n in a form: a byte for each code, [cols]; group scales [quant_groups] as bf16; the row's scale.
 * f4 only of a source that is stored so; f8 of one that is stored so has its codes and its scale. */
struct quant_row {
    uint8_t *codes;
    uint16_t *groups;
    float scale;
    float *room; /* [cols] */
};
void quant_make_row(enum quant_format format, const struct quant_source *s, int64_t n, struct quant_row *out);

/* Panels of so many columns of W^T, as the fast kernels keep them: as many bytes for each column of a panel as it
 * has codes (of two codes in a byte, half as many), in an order of their own; bf16 scales of each group of all
 * columns of a panel together; then an f32 scale for each column.  What is missing up
 * to whole panels and whole groups (without groups, fours of k) is zero. */
struct quant_panels {
    bool packed4;
    int64_t panels, lines, groups; /* lines: of a byte for each column of a panel */
    size_t groups_at, scales_at, end;
};
struct quant_panels quant_panels(enum quant_format format, int64_t rows, int64_t cols, int64_t columns);

#endif
