/* quantized.cuh - matrices of small numbers on the device. */
#ifndef HOLORUN_CUDA_SMALL_CUH
#define HOLORUN_CUDA_SMALL_CUH

#include "host.cuh"

/* quant_bytes, quant_pack and quant_weight of ops.h. */
size_t quantized_bytes(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols);
void quantized_pack(struct backend *b, void *bytes, enum quant_format format, const struct quant_source *s);
struct weight *quantized_weight(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                int64_t rows, int64_t cols);

/* Rows [first, first + to.rows) as bf16, without the scales of the rows; first and to.rows are multiples of 16, and
 * a row of `to` has room for quantized_padded() numbers.  rest: of i4, room for as much, what is missing in `to`. */
int64_t quantized_padded(const struct weight *w);
void quantized_dequantize(struct backend *b, struct tensor to, void *rest, const struct weight *w,
                          int64_t first);

#endif
