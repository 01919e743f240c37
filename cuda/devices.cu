/* devices.cu - list of CUDA devices with their free memory, without opening a context on them.
 *
 * cudaMemGetInfo opens a context on the device, which takes 0.3 to 0.5 GB until the process ends. The free
 * memory is therefore read from NVML, the driver's monitoring library. If NVML does not answer, or reports
 * a whole GPU although this process has a partition of it, the context is opened and closed again, unless the
 * process uses the device already. */
#include "host.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- driver libraries ------------------------------------------------------------------------------ */

struct nvml_memory {
    unsigned long long total, free, used;
};

#ifdef CUDA_EMULATED

#include "emu.h"

static bool nvml_free(int device, size_t *total, size_t *free)
{
    *total = emu_card.memory;
    *free = emu_card.memory - emu_card.used;
    return emu_card.nvml;
}

static bool has_context(int device)
{
    return emu_card.contexts >> device & 1;
}

#else

template <class F> static bool find(void *library, const char *name, F *f)
{
    void *p = library ? dlsym(library, name) : nullptr;
    memcpy(f, &p, sizeof p);
    return p != nullptr;
}

/* Returns the handle of NVML, opened once per process; NULL if it is missing. */
static void *nvml_library()
{
    static void *const library = [] {
        void *p = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        int (*init)();
        return find(p, "nvmlInit_v2", &init) && init() == 0 ? p : nullptr;
    }();
    return library;
}

static bool nvml_free(int device, size_t *total, size_t *free)
{
    char bus[32];
    void *handle = nullptr;
    nvml_memory m = {};
    int (*by_bus)(const char *bus, void **handle), (*memory)(void *handle, nvml_memory *m);
    if (!find(nvml_library(), "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) ||
        !find(nvml_library(), "nvmlDeviceGetMemoryInfo", &memory) ||
        cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess || by_bus(bus, &handle) != 0 ||
        memory(handle, &m) != 0)
        return false;
    *total = m.total;
    *free = m.free;
    return true;
}

/* Returns whether this process has a context on the device; true if that cannot be determined. */
static bool has_context(int device)
{
    static void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*state)(int device, unsigned *flags, int *active);
    unsigned flags = 0;
    int active = 1;
    return !find(driver, "cuDevicePrimaryCtxGetState", &state) || state(device, &flags, &active) != 0 ||
           active;
}

#endif

/* ---- devices ------------------------------------------------------------------------------------------- */

/* Returns the free memory by opening a context. The current device of the calling thread does not change. */
static size_t free_by_context(int device)
{
    size_t free = 0, total = 0;
    int own = 0;
    bool had = has_context(device);
    cudaGetDevice(&own);
    if (cudaSetDevice(device) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess)
        free = 0;
    if (!had)
        cudaDeviceReset();
    cudaSetDevice(own);
    cudaGetLastError();
    return free;
}

/* Fills in the properties of a device. One that does not respond gets no memory, and is not chosen. */
static void describe(struct gpu *g, int device)
{
    cudaDeviceProp p;
    size_t whole = 0, free = 0;
    memset(g, 0, sizeof *g);
    if (cudaGetDeviceProperties(&p, device) != cudaSuccess)
        return (void)cudaGetLastError();
    snprintf(g->name, sizeof g->name, "%.63s", p.name);
    g->major = p.major;
    g->minor = p.minor;
    /* NVML reports the whole GPU; this process may have a partition */
    bool told = nvml_free(device, &whole, &free) && whole <= p.totalGlobalMem + p.totalGlobalMem / 8;
    cudaGetLastError();
    g->free = told ? free : free_by_context(device);
    g->memory = g->free ? p.totalGlobalMem : 0;
}

/* Returns the first driver version that supports a whole CUDA major version. Programs built with 12.x run
 * on any driver from 525 on. */
static const char *driver_for(int runtime)
{
    return runtime >= 13000 ? "580" : runtime >= 12000 ? "525" : "450";
}

extern "C" int cuda_devices(struct gpu *out, int max, struct err *e)
{
    int n = 0, driver = 0, runtime = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return err_set(e, ERR_ENV, "no NVIDIA driver found");
    if (error != cudaSuccess && driver < runtime)
        return err_set(
            e, ERR_ENV,
            "the NVIDIA driver supports CUDA %d.%d, but this program requires %d.%d; update the driver to %s "
            "or later",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, driver_for(runtime));
    if (error != cudaSuccess)
        return err_set(e, ERR_ENV, "no usable NVIDIA GPU: %s", cudaGetErrorString(error));
    if (n == 0)
        return err_set(e, ERR_ENV, "no NVIDIA GPU found");
    for (int i = 0; i < n && i < max; i++)
        describe(&out[i], i);
    return n;
}
