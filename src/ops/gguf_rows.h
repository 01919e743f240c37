/* gguf_rows.h - dequantizes rows of tensors in GGUF files (base/gguf.h) of every quantized type.
 *
 * The results are bit-identical to those of the gguf Python package: products and sums are rounded to f32
 * at the same points. That package has no values for Q8_1 and Q8_K; they follow ggml (d times the code).
 *
 * Matrices of most types have no kernels. quant.c converts them to a format that has:
 *
 *     Q8_0, Q4_1, Q5_1, Q4_K, Q5_K, Q6_K     multiplied as stored on a CPU
 *     Q4_0                                   Q4_1
 *     Q5_0                                   Q5_1
 *     NVFP4                                  f4
 *     Q8_1, IQ4_NL, MXFP4                    Q8_0
 *     Q3_K, IQ3_XXS, IQ3_S, IQ1_S, IQ1_M,
 *     TQ1_0, TQ2_0                           Q6_K
 *     Q2_K                                   4 bits in groups of 16, scales rounded to f16
 *     IQ2_XS, IQ2_S                          8 bits in groups of 16, scales rounded to f16
 *     Q8_K, IQ2_XXS, IQ4_XS                  Q8_0, scales rounded to f16
 *     F64                                    f32 or bf16
 *
 * Codes are unchanged. Conversions without rounding of scales are exact while the scales are in the range
 * of f16 (for MXFP4, IQ3_XXS and IQ1 also their halves and eighths). With rounded scales, values are off
 * by up to 1/4096 of the largest of their group. */
#pragma once

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

/* Returns the bytes of a row of `cols` values, which are whole blocks. */
size_t gguf_row_bytes(uint32_t type, int64_t cols);

/* Dequantizes a row of whole blocks. */
void gguf_row(uint32_t type, const uint8_t *row, int64_t cols, float *out);

/* Returns whether all values of a block are finite, for any codes. */
bool gguf_finite(uint32_t type, const uint8_t *block);

/* Returns scale and minimum of the group of 16 or 32 values that starts at k, for a type with such groups:
 * a value is an integer times the scale minus the minimum. The integer is in -128..127, or not negative if
 * there is a minimum. */
struct blocks_scale gguf_group(uint32_t type, const uint8_t *row, int64_t k);

/* Returns d of the 256 values that start at k, for a type that is converted to Q6_K: the scales of their
 * groups are d times -128..127. */
float gguf_base(uint32_t type, const uint8_t *row, int64_t k);

/* Returns the format whose kernels multiply blocks of a type as they are stored, or NONE. */
enum quant_format gguf_kernels(uint32_t type);

/* Returns the format of a type in CPU memory. */
enum quant_format gguf_kept(uint32_t type);

/* Returns a type that is kept in a format, preferably the one stored in it; 0: none. */
uint32_t gguf_of_format(enum quant_format format);

/* Return byte g of the scales of an NVFP4 row as e4m3, and code k of the row (e2m1: sign and magnitude). */
uint8_t gguf_nvfp4_scale(const uint8_t *row, int64_t g);
uint8_t gguf_nvfp4_code(const uint8_t *row, int64_t k);

/* Dequantizes a block of an IQ format with a grid (gguf_iq.c). */
void gguf_iq_block(uint32_t type, const uint8_t *block, float *out);

/* Returns the factor of the grid values in group g of 16 values of such a block. */
float gguf_iq_scale(uint32_t type, const uint8_t *block, int g);

/* Returns the scale of a block of IQ1_M. */
float gguf_iq_base(const uint8_t *block);
