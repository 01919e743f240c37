/* quantized.cuh - matrices of small numbers on the device. */
#ifndef HOLORUN_CUDA_SMALL_CUH
#define HOLORUN_CUDA_SMALL_CUH

#include "host.cuh"

/* quant_bytes, quant_pack and quant_weight of ops.h. */
size_t small_bytes(const struct backend *b, enum quant_form form, int64_t rows, int64_t cols);
void small_pack(struct backend *b, void *bytes, enum quant_form form, const struct quant_source *s);
struct weight *small_weight(struct backend *b, void *bytes, bool owned, enum quant_form form, int64_t rows,
                            int64_t cols);

/* Rows [first, first + to.rows) as bf16, without the scales of the rows; first and to.rows are multiples of 16, and
 * a row of `to` has room for small_room() numbers.  rest: of i4, room for as much, what is missing in `to`. */
int64_t small_room(const struct weight *w);
void small_widen(struct backend *b, struct tensor to, void *rest, const struct weight *w, int64_t first);

#endif
