/* device.c - selects the CPU or a GPU. */
#include "ops/ops_impl.h"

#include "base/attempt.h"
#include "src/ops/cuda.h"

#include <stdatomic.h>
#include <string.h>

enum { MAX_GPUS = 64, LEAST_MAJOR = 8 };

int backend_gpu_list(struct gpu *out, int max, struct err *e)
{
    return cuda_devices(out, max, e);
}

/* Returns the number of the first GPU that runs the kernels and has enough memory, or -1. */
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

struct trial {
    struct backend *b;
    struct err *e;
    int rc;
};

static void check(void *arg)
{
    struct trial *t = arg;
    t->rc = backend_check(t->b, t->e);
}

static void give_up(void *arg)
{
    const struct trial *t = arg;
    backend_free(t->b);
}

/* Opens a GPU and runs backend_check() on it, once per process. Returns NULL with e; a GPU on which a call
 * fails during the check is treated like one with wrong results. */
static struct backend *open_gpu(int n, struct pool *pool, struct err *e)
{
    static atomic_bool checked[MAX_GPUS];
    struct trial t = {backend_cuda(n, pool, e), e, 0};
    if (t.b && !(n < MAX_GPUS && checked[n]) && (err_attempt(check, &t, e) || t.rc)) {
        err_attempt(give_up, &t, NULL); /* a GPU that fell off the bus cannot be closed, either */
        return NULL;
    }
    if (t.b && n < MAX_GPUS)
        checked[n] = true;
    return t.b;
}

static struct backend *open_any(const char *isa, size_t need, struct pool *pool, struct err *e)
{
    struct err why = ERR_INIT;
    int n = isa ? -1 : fitting_gpu(need);
    struct backend *b = n >= 0 ? open_gpu(n, pool, &why) : NULL;
    if (n >= 0 && !b)
        warn("%s; the model runs on the CPU", why.text);
    return b ? b : backend_cpu(isa, pool, e);
}

struct backend *backend_open(const char *device, const char *isa, size_t need, struct pool *pool,
                             struct err *e)
{
    int n = 0;
    if (!device || !strcmp(device, "auto"))
        return open_any(isa, need, pool, e);
    if (!strcmp(device, "cpu"))
        return backend_cpu(isa, pool, e);
    if (strcmp(device, "cuda") != 0 && (strncmp(device, "cuda:", 5) != 0 || number_of(device, &n)))
        return err_set(e, ERR_USAGE, "unknown device '%s': use auto, cpu, cuda or cuda:N", device), NULL;
    if (isa)
        return err_set(e, ERR_USAGE,
                       "$HOLORUN_ISA selects a CPU backend but --device names a GPU: leave out one of them"),
               NULL;
    return open_gpu(n, pool, e);
}
