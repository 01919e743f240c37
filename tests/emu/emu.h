/* emu.h - the emulated card as tests want it: how much memory it has, what is installed beside it, and
 * when it breaks.
 *
 * Where the tests of the kernels run on a GPU there is none: then the address of emu_card is NULL.
 */
#ifndef HOLORUN_TESTS_EMU_EMU_H
#define HOLORUN_TESTS_EMU_EMU_H

#include <stdbool.h>
#include <stddef.h>

struct emu_card {
    int driver, runtime; /* versions of CUDA, 1000 * major + 10 * minor; no driver: 0 */
    int cards;           /* equal ones */
    int major, minor;    /* compute capability */
    bool library;        /* cuBLASLt is there */
    size_t memory;       /* bytes */
    size_t used, most;   /* of these: now, and at most */
    int error;           /* a cudaError_t that every call answers: a card that is lost stays lost */
    long launches;       /* how many are left until it is lost with error `then`; 0: for ever */
    int then;
    bool nvml;         /* the driver's library for monitoring is there */
    unsigned contexts; /* bit i: the process has a context on card i */
    bool pools;        /* the driver has pools of memory in stream order */
    size_t kept;       /* bytes that they hold and nobody uses */
    long waits;        /* calls so far that take or give memory and wait for all of the card's work */
    bool late;         /* work runs when somebody waits for it, and not before */
    long graphs, singles,
        syncs;       /* so far: graphs launched, kernels on their own, times that the host waited */
    bool overlaps;   /* kernels may be launched to overlap */
    long overlapped; /* so many were */
    long early;      /* words that such kernels read of a card's memory before they waited */
    long updated;    /* nodes of graphs that were given other arguments */
    int fastest;     /* of the library's proposals */
    int refused;     /* one that cannot run; -1: all can */
    /* products of the library: of them with a bias, to memory of their own, of e4m3, and by proposal */
    long biased, timed, small, multiplied[8];
    long odd; /* the recording of a graph says something odd after so many nodes; 0: never */
};

#ifdef __cplusplus
extern "C" struct emu_card emu_card;
#else
extern struct emu_card emu_card __attribute__((weak));
#endif

#endif
