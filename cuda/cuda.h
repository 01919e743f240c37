/* cuda.h - the operations of the model on an NVIDIA GPU.
 *
 * The same table as on the CPU (ops/ops.h), filled with functions that launch kernels.  Tensors and weights
 * lie in the memory of the card; upload, download and the ids of embed are the only ways between it and the host.
 * All work goes through one stream in the order of the calls, and only download waits for it.
 *
 * In a program that was built without CUDA these functions say so.
 */
#ifndef HOLORUN_CUDA_CUDA_H
#define HOLORUN_CUDA_CUDA_H

#include "ops/ops.h"

struct cuda_device {
    char name[64];
    int major, minor;    /* compute capability */
    size_t memory, free; /* bytes */
};

/* Devices of this machine, at most max; how many there are.  -1 and why: no driver, one that is too old, a program
 * without CUDA. */
int cuda_devices(struct cuda_device *out, int max, struct err *e);

/* A backend on device 0, 1, ...; freed with backend_free.  NULL and why. */
struct backend *backend_cuda(int device, struct err *e);

#endif
