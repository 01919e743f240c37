/* gguf_rows.h - numbers of tensors in GGUF files (base/gguf.h), of every type that is not a plain float.
 *
 * The results equal those of the gguf package bit for bit: products and sums are rounded to f32 in the same
 * places.  The reference lists no numbers for Q8_1 and Q8_K; they follow ggml (d times the code).
 *
 * Matrices of most types have no kernels.  quant.c brings them into a format that has some:
 *
 *   Q8_0, Q4_1, Q5_1, Q4_K, Q5_K, Q6_K     multiplied as stored on a CPU
 *   Q4_0                                   Q4_1
 *   Q5_0                                   Q5_1
 *   NVFP4                                  f4
 *   Q8_1, IQ4_NL, MXFP4                    Q8_0
 *   Q3_K, IQ3_XXS, IQ3_S, IQ1_S, IQ1_M,
 *   TQ1_0, TQ2_0                           Q6_K
 *   Q2_K                                   4 bits in groups of 16, scales rounded to f16
 *   IQ2_XS, IQ2_S                          8 bits in groups of 16, scales rounded to f16
 *   Q8_K, IQ2_XXS, IQ4_XS                  Q8_0, scales rounded to f16
 *   F64                                    f32 or bf16
 *
 * Codes stay as they are.  All others are exact while scales are in the range of f16 (of MXFP4, IQ3_XXS and
 * IQ1 their halves and eighths, too).  Where scales are rounded, numbers are off by up to 1/4096 of the
 * largest of their group.
 */
#ifndef HOLORUN_OPS_GGUF_ROWS_H
#define HOLORUN_OPS_GGUF_ROWS_H

#include "base/gguf.h"
#include "ops/quant.h"

#include <string.h>

/* Returns the f16 at any address. */
static inline float gguf_half(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return f16_to_f32(h);
}

/* Returns whether tensors of a type are dequantized here; false for F32, F16 and BF16. */
bool gguf_is_coded(uint32_t type);

/* Returns the bytes of so many numbers: whole blocks. */
size_t gguf_row_bytes(uint32_t type, int64_t cols);

/* Dequantizes a row of whole blocks. */
void gguf_row(uint32_t type, const uint8_t *row, int64_t cols, float *out);

/* Returns whether all numbers of a block are finite, whatever its codes. */
bool gguf_finite(uint32_t type, const uint8_t *block);

/* Returns scale and minimum of the group of 16 or 32 numbers from k on, of a type that has such groups: a
 * number is an integer times the scale less the minimum, the integer from -128 to 127, or from 0 where there
 * is a minimum. */
struct blocks_scale gguf_group(uint32_t type, const uint8_t *row, int64_t k);

/* Returns d of the 256 numbers from k on, of a type that is kept as Q6_K: the scales of their groups are
 * d times -128..127. */
float gguf_base(uint32_t type, const uint8_t *row, int64_t k);

/* Returns the format whose kernels multiply blocks of a type as they are stored, or NONE. */
enum quant_format gguf_kernels(uint32_t type);

/* Returns the format that a type is kept in on a CPU. */
enum quant_format gguf_kept(uint32_t type);

/* Returns a type that is kept in a format, the one stored so if there is one; 0: none. */
uint32_t gguf_of_format(enum quant_format format);

/* Returns byte g of the scales of an NVFP4 row as e4m3, and whether code k is negative with its magnitude. */
uint8_t gguf_nvfp4_scale(const uint8_t *row, int64_t g);
uint8_t gguf_nvfp4_code(const uint8_t *row, int64_t k);

/* Dequantizes a block of an IQ format with a grid (gguf_iq.c). */
void gguf_iq_block(uint32_t type, const uint8_t *block, float *out);

/* Returns the factor of the grid's numbers in group g of 16 numbers of such a block. */
float gguf_iq_scale(uint32_t type, const uint8_t *block, int g);

/* Returns the scale of a block of IQ1_M. */
float gguf_iq_base(const uint8_t *block);

#endif
