/* cuda.h - backend for NVIDIA GPUs.
 *
 * Fills the table of ops/ops.h with functions that launch kernels. Tensors and weights are in device
 * memory. Only uploads and downloads, token ids, pixels and their digests, sets of ids and sampled tokens
 * cross between host and device. All work runs on one stream in the order of the calls; download,
 * make_patches and sample wait for it.
 *
 * In a program built without CUDA these functions fail with a message. */
#pragma once

#include "ops/work.h"

/* Lists GPUs; see backend_gpu_list(). */
int cuda_devices(struct gpu *out, int max, struct err *e);

/* Returns the limits of working memory that operations may use. */
const struct work_parts *cuda_work_parts(void);

/* Opens a backend on device 0, 1, ...; the caller frees it with backend_free(). The pool is borrowed for
 * host work. Returns NULL with e. */
struct backend *backend_cuda(int device, struct pool *pool, struct err *e);
