/* watch.h - every access of a kernel to memory, as the compiler tells of it, looked at where it happens.
 *
 * The sources of cuda/ are compiled with what the compiler has for a thread sanitizer and for misaligned
 * pointers; whom that code calls is in watch.cc, not in the compiler's libraries.  So a kernel is
 * stopped that
 *
 *   shares memory     with another thread of its block, one of the two writing, and no barrier between them
 *                     (within a warp: no __syncwarp; that a shuffle was between them orders nothing)
 *   reads             shared memory that nobody has written, or what a copy is still to bring
 *   is beyond         an array it shares, the memory it was given to the byte, its own stack; or on the host
 *   meets a block     of the same launch in memory, one of the two writing, unless both add by atomics,
 *   or the other
 *                     has announced its work (fence, then an atomic) and this one has heard (an atomic,
 *                     then a fence)
 *   is early          and writes, or reads what the kernel before has written, unless the host has waited since:
 *                     it was launched to overlap with that one, for which it has not waited yet
 *   is not aligned    as the type it reads or writes
 *
 * Whatever order the threads were run in: two that merely did not meet this time are found, too.
 */
#ifndef HOLORUN_TESTS_EMU_WATCH_H
#define HOLORUN_TESTS_EMU_WATCH_H

#include <cstddef>
#include <cstdint>

namespace emu
{

enum access { READ, WRITE, ATOMIC };

/* What a kernel does by ways that the compiler does not tell of. */
void watch(const void *at, size_t bytes, access how);
void watch_aligned(const void *at, size_t multiple);

/* ---- for the scheduler ----------------------------------------------------------------------- */

/* Of the thread that runs; changed at every switch. */
struct watched_thread {
    bool inside; /* a kernel, and not the scheduler */
    bool early;  /* the kernel before may still run */
    int thread;
    uint32_t syncs; /* __syncwarp that it has passed */
    const char *stack;
    size_t stack_bytes;
};
extern watched_thread watched;

[[noreturn]] void fail(const char *what); /* of emu.cc: names the kernel and the thread */

void watch_launch(uint64_t blocks, const void *args, size_t bytes);
void watch_block(uint64_t block, const char *shared, size_t bytes); /* where shared arrays will lie */
void watch_array(const void *at, size_t bytes);                     /* one of them */
void watch_synced();                                                /* the host has waited for all launches */
void watch_barrier();                                               /* all threads have passed it */
void watch_fence();
void watch_copy(const void *to, size_t bytes, bool under_way);

/* ---- for the card ---------------------------------------------------------------------------- */

/* The piece of memory that a kernel may use at this address; false: none.  generation: changes with
 * every piece. */
struct watched_chunk {
    const char *at;
    size_t bytes;
    void **shadow; /* of watch.cc, freed with the piece */
};
bool piece_at(const void *at, watched_chunk *p);
extern unsigned pieces_generation;

} // namespace emu

#endif
