/* none.c - stub of the GPU interface for builds without CUDA: each function reports that. */
#include "src/ops/cuda.h"

int cuda_devices(struct gpu *out, int max, struct err *e)
{
    return err_set(e, ERR_ENV, "this program was built without CUDA: rebuild it on a machine with nvcc");
}

const struct work_parts *cuda_work_parts(void)
{
    return &work_parts_usual;
}

struct backend *backend_cuda(int device, struct pool *pool, struct err *e)
{
    cuda_devices(NULL, 0, e);
    return NULL;
}
