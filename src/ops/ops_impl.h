/* ops_impl.h - types and functions shared by the CPU backends; private to src/ops. */
#pragma once

#include "ops/ops.h"
#include "ops/quant.h"

#include <stdbool.h>
#include <stdlib.h>

/* A weight of a CPU backend. plain: the reference stores [N, K] row-major; fast backends store panels
 * (kernels_linear.h); a borrowed weight is row-major in memory it does not own. */
struct weight {
    int64_t rows, cols; /* N, K */
    int64_t words;      /* K in 32-bit words of a panel */
    struct tensor plain;
    bool borrowed, once; /* once: its pages are released after each product */

    enum quant_format format; /* quantized: `plain` is then empty */
    const uint8_t *codes;
    const uint16_t *groups; /* bf16 */
    const float *scales;
    /* Column k is multiplied with element order[k] of a row; NULL: with element k. */
    const int32_t *order;
    void *owned; /* memory of the four pointers above, freed with the weight; or NULL */
    bool coarse; /* activations are rounded to 8 bits (W8A8) */
};

/* Creates a quantized weight; groups and scales: offsets in its bytes. */
struct weight *cpu_quantized(void *bytes, bool owned, enum quant_format format, int64_t rows, int64_t cols,
                             size_t groups, size_t scales);

/* Store and load the column order of a GPTQ matrix, at an offset of its bytes. */
void cpu_put_order(void *bytes, size_t at, enum quant_format format, const struct quant_source *s);
void cpu_weight_order(struct weight *w, size_t at);

void cpu_round_activations(struct backend *b, struct weight *w);

/* Releases the pages of a `once` weight after a product has read it. */
void cpu_weight_read(const struct weight *w);

/* Returns scratch memory of one thread, or of the whole call with SHARED_SCRATCH, or of an operation made
 * of others with OUTER_SCRATCH, or of rows in a weight's order with ORDER_SCRATCH. Aligned to 64 bytes,
 * contents undefined, valid until the same block is requested again. It grows to the largest size
 * requested and belongs to the backend. */
enum { SHARED_SCRATCH = -1, OUTER_SCRATCH = -2, ORDER_SCRATCH = -3, SCRATCHES = 3 };
void *cpu_scratch(struct backend *b, int thread, size_t bytes);

void ops_synthetic_fill(struct ops *o);
void ops_kv8_fill(struct ops *o);

/* Dequantizes rows of kv8.h to f32; the caller frees the data. */
struct tensor kv8_dequantize(struct tensor t, int heads, int d);

/* Fill in operations: the reference all of them, an instruction set those it computes faster. */
void ops_ref_fill(struct ops *o);
void ops_avx2_fill(struct ops *o);
void ops_avx512_fill(struct ops *o);
void ops_avx512bf16_fill(struct ops *o);
void ops_neon_fill(struct ops *o);
void ops_neondot_fill(struct ops *o);
void ops_neonbf16_fill(struct ops *o);
