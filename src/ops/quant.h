/* quant.h - quantized matrices: what they mean, and how a row is quantized.
 *
 *     W[n, k] = value(code[n, k]) * group[n, k / G] * scale[n]
 *
 *   format  code                 G    group scale                scale
 *   i8      integer, -127..127   -    1                          largest magnitude of the row / 127
 *   i4      integer, -8..7       32   bf16, least square error   1
 *   f8      e4m3                 -    1                          the file's, one for the matrix or the row;
 *                                                                made here: largest magnitude / 448
 *   f4      e2m1                 16   the file's, e4m3           the file's, one for the matrix
 *   f8 in blocks  e4m3           128  the file's for 128 x 128, bf16   1
 *
 * i8, i4 and f8 are quantized here from any float type; f8 and f4 are also what published checkpoints
 * hold (FP8 and NVFP4), and keep every bit of it.  Every value(code) is exact in bf16, so that products
 * with bf16 activations need no further rounding: the kernels multiply exactly what this table says.
 *
 * Quantizing is plain C without contraction, the same on every machine.
 */
#ifndef HOLORUN_OPS_QUANT_H
#define HOLORUN_OPS_QUANT_H

#include "ops/ops.h"

enum { QUANT_I4_GROUP = 32, QUANT_F4_GROUP = 16, QUANT_F8_BLOCK = 128 };

/* "i8" */
const char *quant_name(enum quant_format format);
int64_t quant_group(enum quant_format format); /* G; 0: no groups */
int64_t quant_groups(enum quant_format format, int64_t cols);

/* Bytes of codes and scales, without a backend's padding. */
double quant_size(enum quant_format format, int64_t rows, int64_t cols);

float quant_value(enum quant_format format, int code);

/* Row n of a source as f32. */
void quant_source_row(const struct quant_source *s, int64_t n, float *out);

/* Quantizes row n: a byte for each code, [cols]; group scales [quant_groups] as bf16; the row's scale.
 * f4 only from a source stored so; an f8 source keeps its codes and scale. */
struct quant_row {
    uint8_t *codes;
    uint16_t *groups;
    float scale;
    float *room; /* [cols] scratch */
};
void quant_make_row(enum quant_format format, const struct quant_source *s, int64_t n, struct quant_row *out);

/* Panels of so many columns of W^T, as the fast kernels keep them: for each column of a panel as many
 * bytes as it has codes (half as many when packed4), in the kernels' order; bf16 group scales, all
 * columns of a panel together; an f32 scale for each column.  Padding up to whole panels and groups
 * (fours of k without groups) is zero. */
struct quant_panels {
    bool packed4;
    int64_t panels, lines, groups; /* lines: a byte for each column of a panel */
    size_t groups_at, scales_at, end;
};
struct quant_panels quant_panels(enum quant_format format, int64_t rows, int64_t cols, int64_t columns);

#endif
