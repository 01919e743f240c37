/* emu.h - settings and counters of the emulated GPU: its memory, libraries and simulated failures.
 *
 * In tests that run on a real GPU the address of emu_card is NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct emu_card {
    int driver, runtime; /* CUDA versions, 1000 * major + 10 * minor; driver 0: not installed */
    int cards;           /* number of identical devices */
    int major, minor;    /* compute capability */
    bool library;        /* cuBLASLt is installed */
    size_t memory;       /* bytes */
    size_t used, most;   /* bytes in use, and their maximum so far */
    int error;           /* cudaError_t that every call returns; permanent, as for a lost device */
    long launches;       /* number of launches until the device is lost with error `then`; 0: never */
    int then;
    bool nvml;         /* NVML is installed */
    unsigned contexts; /* bit i: the process has a context on device i */
    bool pools;        /* the driver supports memory pools */
    size_t kept;       /* unused bytes in pools */
    long waits;        /* allocations and frees so far that synchronize with the device */
    bool late;         /* work runs only when the host waits for it */
    long graphs, singles,
        syncs;       /* so far: graph launches, single kernel launches, times that the host waited */
    bool overlaps;   /* the driver supports programmatic dependent launch */
    long overlapped; /* kernels launched that way */
    long early;      /* reads of device memory by such kernels before they waited */
    long updated;    /* graph nodes whose arguments were updated */
    int fastest;     /* index of the fastest cuBLASLt algorithm */
    int refused;     /* index of an algorithm that fails; -1: none */
    /* cuBLASLt products: with a bias, out of place (timing runs), in e4m3, and by algorithm */
    long biased, timed, small, multiplied[8];
    long odd; /* graph capture reports two leaf nodes after this many nodes; 0: never */
};

#ifdef __cplusplus
extern "C" struct emu_card emu_card;
#else
extern struct emu_card emu_card __attribute__((weak));
#endif
