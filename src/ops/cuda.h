/* cuda.h - the operations of the model on an NVIDIA GPU.
 *
 * The same table as on the CPU (ops/ops.h), filled with functions that launch kernels.  Tensors and weights
 * lie in the memory of the card.  Between it and the host go uploads and downloads, token ids, pixels to cut and their
 * digests, sets of ids and what was chosen of them.  All work goes through one stream in the order of the calls;
 * download, cut and choose wait for it.
 *
 * In a program that was built without CUDA these functions say so.
 */
#ifndef HOLORUN_OPS_CUDA_H
#define HOLORUN_OPS_CUDA_H

#include "ops/work.h"

/* backend_gpu_list, which see. */
int cuda_devices(struct gpu *out, int max, struct err *e);

/* How much operations take at once. */
const struct work_parts *cuda_work_parts(void);

/* A backend on device 0, 1, ...; freed with backend_free.  The pool is borrowed, for what the host does.  NULL and
 * why. */
struct backend *backend_cuda(int device, struct pool *pool, struct err *e);

#endif
