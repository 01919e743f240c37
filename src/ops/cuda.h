/* cuda.h - the operations of the model on an NVIDIA GPU.
 *
 * The table of ops/ops.h, filled with functions that launch kernels.  Tensors and weights live in device
 * memory.  Uploads and downloads, token ids, pixels and their digests, sets of ids and sampled tokens
 * cross to the host or back.  All work runs on one stream in the order of the calls; download,
 * make_patches and sample wait for it.
 *
 * In a program built without CUDA these functions answer with an error.
 */
#ifndef HOLORUN_OPS_CUDA_H
#define HOLORUN_OPS_CUDA_H

#include "ops/work.h"

/* See backend_gpu_list. */
int cuda_devices(struct gpu *out, int max, struct err *e);

/* Working memory that operations may take at once. */
const struct work_parts *cuda_work_parts(void);

/* A backend on device 0, 1, ...; freed with backend_free.  The pool is borrowed for host work.  NULL
 * with the reason. */
struct backend *backend_cuda(int device, struct pool *pool, struct err *e);

#endif
