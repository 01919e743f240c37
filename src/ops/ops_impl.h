/* ops_impl.h - what the CPU backends share; private to src/ops. */
#ifndef HOLORUN_OPS_OPS_IMPL_H
#define HOLORUN_OPS_OPS_IMPL_H

#include "ops/ops.h"
#include "ops/quant.h"

#include <stdbool.h>
#include <stdlib.h>

/* plain: the reference keeps [N, K] row-major; fast backends keep panels (kernels_linear.h), and what is
 * borrowed is row-major and belongs to somebody else. */
struct weight {
    int64_t rows, cols; /* N, K */
    int64_t words;      /* K as 32-bit words of a panel */
    struct tensor plain;
    bool borrowed, once; /* once: its pages go back to the system after each product */

    enum quant_format format; /* small numbers: then `plain` is empty */
    const uint8_t *codes;
    const uint16_t *groups; /* bf16 */
    const float *scales;
    void *owned; /* all of them, or NULL */
};

/* A product has read this weight. */
void cpu_weight_read(const struct weight *w);

/* Working memory of one thread, or of the whole call with SHARED_SCRATCH, or of an operation that is made of
 * others with OUTER_SCRATCH: aligned to 64 bytes, undefined contents, valid until the same piece is asked for
 * again.  It grows to the largest size ever asked for and belongs to the backend. */
enum { SHARED_SCRATCH = -1, OUTER_SCRATCH = -2 };
void *cpu_scratch(struct backend *b, int thread, size_t bytes);

/* W[n, k] of a weight of the reference, whatever its form; and its forms of small numbers, row by row. */
float ref_number(const struct weight *w, int64_t n, int64_t k);
void ops_ref_quant_fill(struct ops *o);
void ops_synthetic_fill(struct ops *o);
void ops_kv8_fill(struct ops *o);

/* Rows of kv8.h as f32, which the caller frees. */
struct tensor kv8_dequantize(struct tensor t, int heads, int d);

/* Fill in operations: the reference all of them, an instruction set those that it does better. */
void ops_ref_fill(struct ops *o);
void ops_avx2_fill(struct ops *o);
void ops_avx512_fill(struct ops *o);
void ops_avx512bf16_fill(struct ops *o);

#endif
