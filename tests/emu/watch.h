/* watch.h - checks every memory access of a kernel.
 *
 * The sources in cuda/ are compiled with the instrumentation of the thread sanitizer and of
 * -fsanitize=alignment; watch.cc implements the functions that the instrumented code calls.  A kernel is
 * stopped if it
 *
 *   - accesses shared memory that another thread of the block accesses, one of them writing, without a
 *     barrier in between (within a warp: without __syncwarp; a shuffle does not order memory accesses)
 *   - reads shared memory that was never written, or that an asynchronous copy has yet to fill
 *   - accesses memory outside a shared array, outside an allocation (to the byte), or on the host; its own
 *     stack is allowed
 *   - accesses device memory that another block of the launch accesses, one of them writing, unless both use
 *     atomics, or the other block has announced its writes (fence, then atomic) and this one has observed the
 *     announcement (atomic, then fence)
 *   - was launched to overlap with the previous kernel and, before waiting for it, writes, or reads memory
 *     that it wrote, unless the host has waited since
 *   - accesses an address that is not aligned for its type
 *
 * Races are found whatever the order of the threads, even if the result is correct in this run.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace emu
{

enum access { READ, WRITE, ATOMIC };

/* Reports accesses without compiler instrumentation, such as inline assembly. */
void watch(const void *at, size_t bytes, access how);
void watch_aligned(const void *at, size_t multiple);

/* ---- for the scheduler ----------------------------------------------------------------------- */

/* The running thread; updated at every switch. */
struct watched_thread {
    bool inside; /* in a kernel, not in the scheduler */
    bool early;  /* the previous kernel may still be running */
    int thread;
    uint32_t syncs; /* warp barriers passed */
    const char *stack;
    size_t stack_bytes;
};
extern watched_thread watched;

[[noreturn]] void fail(const char *what); /* in emu.cc; prints the kernel and the thread */

void watch_launch(uint64_t blocks, const void *args, size_t bytes);
void watch_block(uint64_t block, const char *shared, size_t bytes); /* shared: arena of shared arrays */
void watch_array(const void *at, size_t bytes);                     /* a new shared array */
void watch_synced();                                                /* the host has waited for all launches */
void watch_barrier();                                               /* all threads have passed a barrier */
void watch_fence();
void watch_copy(const void *to, size_t bytes, bool under_way);

/* ---- for card.cc ----------------------------------------------------------------------------- */

/* Finds the allocation that contains `at`; returns false if there is none.  pieces_generation changes with
 * every allocation and free. */
struct watched_chunk {
    const char *at;
    size_t bytes;
    void **shadow; /* owned by the allocation */
};
bool piece_at(const void *at, watched_chunk *p);
extern unsigned pieces_generation;

} // namespace emu
