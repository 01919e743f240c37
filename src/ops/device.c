/* device.c - whether the model runs on the processor or on a GPU. */
#include "ops/ops_impl.h"

#include "cuda/cuda.h"

#include <string.h>

enum { MAX_GPUS = 64, LEAST_MAJOR = 8 };

int backend_gpu_list(struct gpu *out, int max, struct err *e)
{
    return cuda_devices(out, max, e);
}

/* The first that runs the kernels and has room; -1: none. */
static int fitting_gpu(size_t need)
{
    struct gpu found[MAX_GPUS];
    int n = cuda_devices(found, MAX_GPUS, NULL);
    for (int i = 0; i < n && i < MAX_GPUS; i++)
        if (found[i].major >= LEAST_MAJOR && found[i].free >= need)
            return i;
    return -1;
}

static int number_of(const char *device, int *n)
{
    const char *digits = device + strlen("cuda:");
    if (strlen(digits) < 1 || strlen(digits) > 2 || strspn(digits, "0123456789") != strlen(digits))
        return -1;
    *n = 0;
    for (; *digits; digits++)
        *n = *n * 10 + *digits - '0';
    return 0;
}

struct backend *backend_open(const char *device, const char *isa, size_t need, struct pool *pool,
                             struct err *e)
{
    int n = 0;
    if (!device || !strcmp(device, "auto"))
        n = isa ? -1 : fitting_gpu(need);
    else if (!strcmp(device, "cpu"))
        n = -1;
    else if (strcmp(device, "cuda") != 0 && (strncmp(device, "cuda:", 5) != 0 || number_of(device, &n)))
        return err_set(e, ERR_USAGE, "there is no device '%s'; one of auto, cpu, cuda, cuda:N", device), NULL;
    if (n < 0)
        return backend_cpu(isa, pool, e);
    if (isa)
        return err_set(e, ERR_USAGE, "--isa is for the CPU and --device names a GPU: leave one of them out"),
               NULL;
    return backend_cuda(n, pool, e);
}
