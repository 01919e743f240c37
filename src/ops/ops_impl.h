/* ops_impl.h - what the CPU backends share; private to src/ops. */
#ifndef HOLORUN_OPS_OPS_IMPL_H
#define HOLORUN_OPS_OPS_IMPL_H

#include "ops/ops.h"

#include <stdlib.h>

/* plain: [N, K] row-major f32 or bf16, owned. */
struct weight {
    struct tensor plain;
};

/* Fills the operations of the scalar reference; a faster backend starts from it and replaces some. */
void ops_ref_fill(struct ops *o);

#endif
