/* ops_impl.h - what the CPU backends share; private to src/ops. */
#ifndef HOLORUN_OPS_OPS_IMPL_H
#define HOLORUN_OPS_OPS_IMPL_H

#include "ops/ops.h"

#include <stdlib.h>

/* plain: the reference keeps [N, K] row-major; fast backends keep panels (kernels.h). */
struct weight {
    int64_t rows, cols; /* N, K */
    struct tensor plain;
};

/* Fills the operations of the scalar reference; a faster backend starts from it and replaces some. */
void ops_ref_fill(struct ops *o);
void ops_avx2_fill(struct ops *o);
void ops_avx512_fill(struct ops *o);
void ops_avx512bf16_fill(struct ops *o);

#endif
