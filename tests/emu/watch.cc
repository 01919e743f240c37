/* watch.cc - race detector (see watch.h).
 *
 * Each two bytes of shared memory and each byte of device memory have a cell that records the last accesses.
 *
 * Time is counted in eras: one between two barriers, counted across all blocks and launches, so that cells
 * never have to be cleared.  For readers a cell records the last warp, its lanes, and whether another warp
 * has read as well.
 */
#include "watch.h"
#include "cuda_runtime.h"
#include "emu.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace emu
{

watched_thread watched;

namespace
{

enum { GRAIN = 2, SHARED_MOST = 256 << 10 };

struct cell {
    uint32_t written, write_syncs; /* era, and warp barriers that the writer had passed */
    uint32_t read, read_syncs, lanes;
    uint32_t array; /* first era of the block that owns the array */
    uint16_t writer, warp;
    bool atomic, more; /* more: another warp has read too */
    bool coming;       /* an asynchronous copy will write it */
};

struct global_cell {
    uint32_t writer, reader; /* block numbers, counted from 1 across all launches */
};
enum : uint32_t { BY_ATOMIC = 0x80000000u };

struct {
    uint32_t era, first_era; /* first_era: of the current block */
    const char *at;
    size_t bytes;
    cell cells[SHARED_MOST / GRAIN];
} room;

/* State of a block: times of its last write, fence and announcement (an atomic after a fence). */
struct said {
    uint64_t wrote, fenced, announced;
    uint32_t announcements;
    bool heard; /* it has passed an atomic and then a fence */
    bool asked;
};

struct {
    uint64_t clock;
    uint32_t first, blocks,
        block; /* first: number of the first block of this launch; block: the current one */
    const char *args;
    size_t arg_bytes;
    std::vector<struct said> blocks_said;
    uint32_t synced; /* first block for which the host has not waited */
    uint32_t before; /* first block of the previous launch */
    watched_chunk recent[4];
    unsigned generation, next;
} grid;

void tell(const char *what, const void *at, unsigned other, const char *unit)
{
    char text[200];
    snprintf(text, sizeof text, "%s (address %p, %s %u)", what, at, unit, other);
    fail(text);
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* Returns whether an access of `thread` in this era is ordered before the current thread. */
bool behind(int thread, uint32_t syncs)
{
    return thread == watched.thread || (thread / 32 == watched.thread / 32 && syncs < watched.syncs);
}

void shared_read(cell *c, const void *at)
{
    const uint32_t lane = 1u << watched.thread % 32;
    const int warp = watched.thread / 32;
    if (c->written < room.first_era)
        fail("reads shared memory that nobody has written");
    if (c->written == room.era && !behind(c->writer, c->write_syncs))
        tell("reads shared memory that another thread writes, and no barrier is between", at, c->writer,
             "thread");
    if (c->read != room.era)
        c->read = room.era, c->read_syncs = watched.syncs, c->lanes = lane, c->warp = (uint16_t)warp,
        c->more = false;
    else if (c->warp != warp)
        c->more = true;
    else if (c->read_syncs != watched.syncs)
        c->read_syncs = watched.syncs, c->lanes = lane;
    else
        c->lanes |= lane;
}

void shared_write(cell *c, const void *at, bool atomic)
{
    const uint32_t lane = 1u << watched.thread % 32;
    const int warp = watched.thread / 32;
    if (c->written == room.era && !(atomic && c->atomic) && !behind(c->writer, c->write_syncs))
        tell("writes shared memory that another thread writes, too, and no barrier is between", at, c->writer,
             "thread");
    if (c->read == room.era &&
        (c->more || c->warp != warp || (c->read_syncs == watched.syncs && c->lanes & ~lane)))
        tell("writes shared memory that another thread reads, and no barrier is between", at,
             c->more && c->warp == warp ? ~0u : c->warp, "warp");
    c->written = room.era;
    c->write_syncs = watched.syncs;
    c->writer = (uint16_t)watched.thread;
    c->atomic = atomic;
}

void shared_access(const char *at, size_t bytes, access how)
{
    size_t first = (size_t)(at - room.at) / GRAIN, last = (size_t)(at - room.at + bytes - 1) / GRAIN;
    for (size_t i = first; i <= last; i++) {
        cell *c = &room.cells[i];
        if (c->array != room.first_era)
            fail("is beyond an array of shared memory");
        if (c->coming)
            fail("uses shared memory that a copy is still to bring");
        if (how == READ)
            shared_read(c, at);
        else
            shared_write(c, at, how == ATOMIC);
    }
}

/* ---- device memory --------------------------------------------------------------------------- */

const watched_chunk *find_piece(const char *at)
{
    if (grid.generation != pieces_generation) {
        for (watched_chunk &p : grid.recent)
            p = {};
        grid.generation = pieces_generation;
    }
    for (const watched_chunk &p : grid.recent)
        if (at >= p.at && at < p.at + p.bytes)
            return &p;
    watched_chunk *p = &grid.recent[grid.next++ % 4];
    if (!piece_at(at, p))
        return nullptr;
    if (!*p->shadow)
        *p->shadow = calloc(p->bytes + 1, sizeof(global_cell) + sizeof(uint32_t));
    return p;
}

/* Announcements of the writer of each byte before it wrote: behind the cells, since few accesses need them. */
uint32_t *told_of(const watched_chunk *p)
{
    return reinterpret_cast<uint32_t *>(static_cast<global_cell *>(*p->shadow) + p->bytes + 1);
}

/* Returns whether all writes of block `other` are visible to the current block. */
bool announced(uint32_t other)
{
    const said &a = grid.blocks_said[other - grid.first], &mine = grid.blocks_said[grid.block - grid.first];
    return a.wrote < a.announced && mine.heard;
}

/* Returns whether a write that `other` made after `told` announcements is visible to the current block. */
bool announced(uint32_t other, uint32_t told)
{
    return grid.blocks_said[other - grid.first].announcements > told &&
           grid.blocks_said[grid.block - grid.first].heard;
}

/* Returns whether `who` is another block of this launch. */
bool other_block(uint32_t who)
{
    return who >= grid.first && who != grid.block && who < grid.first + grid.blocks;
}

/* Fails for accesses that conflict with those of another block, and notes this one. */
void global_byte(global_cell *c, const watched_chunk *p, const char *at, access how, const said *mine)
{
    uint32_t writer = c->writer & ~BY_ATOMIC;
    if (watched.early && (how != READ || (writer >= grid.synced && writer >= grid.before && writer != 0)))
        tell(how == READ ? "reads what the kernel before may still write" : "writes before it has waited", at,
             writer, "block");
    bool both = how == ATOMIC && c->writer & BY_ATOMIC;
    if (!both && other_block(writer) && !announced(writer, told_of(p)[at - p->at]))
        tell(how == READ ? "reads memory that another block of the launch writes"
                         : "writes memory that another block of the launch writes, too",
             at, writer - grid.first, "block");
    if (how != READ && c->reader >= grid.first && c->reader != grid.block &&
        (c->reader == grid.first + grid.blocks ? !mine->heard
                                               : other_block(c->reader) && !announced(c->reader)))
        tell("writes memory that another block of the launch reads", at, c->reader - grid.first, "block");
    if (how != READ)
        c->writer = grid.block | (how == ATOMIC ? (uint32_t)BY_ATOMIC : 0);
    else if (c->reader < grid.first || c->reader == grid.block)
        c->reader = grid.block;
    else
        c->reader = grid.first + grid.blocks; /* several */
}

void global_access(const char *at, size_t bytes, access how)
{
    const watched_chunk *p = find_piece(at);
    if (!p)
        fail("is at an address that is not of the card's memory, nor of its own stack");
    if (at + bytes > p->at + p->bytes)
        fail("is beyond the end of the memory it was given");
    said *mine = &grid.blocks_said[grid.block - grid.first];
    grid.clock++;
    emu_card.early += watched.early;
    mine->asked |= how == ATOMIC;
    uint32_t told = mine->announcements;
    if (how == ATOMIC && mine->fenced > mine->wrote) /* it may announce the writes before the fence */
        mine->announced = grid.clock, mine->announcements++;
    else if (how != READ)
        mine->wrote = grid.clock;
    global_cell *cells = static_cast<global_cell *>(*p->shadow) + (at - p->at);
    const uint32_t first = grid.first, block = grid.block, several = first + grid.blocks;
    for (size_t i = 0; i < bytes; i++) {
        global_cell *c = &cells[i];
        if (how == READ && !watched.early &&
            c->writer < first) /* most accesses: no block of this launch wrote */
            c->reader = c->reader < first || c->reader == block ? block : several;
        else
            global_byte(c, p, at + i, how, mine);
    }
    if (how != READ)
        std::fill_n(told_of(p) + (at - p->at), bytes, told);
}

/* Bounds of the shared library with the kernels, which contains their constants. */
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start, _end;

} // namespace

__attribute__((noinline)) static void watch_memory(const char *at, size_t bytes, access how)
{
    if (at >= room.at && at < room.at + room.bytes)
        shared_access(at, bytes, how);
    else if ((size_t)(at - grid.args) >= grid.arg_bytes && !(at >= &__ehdr_start && at < &_end))
        global_access(at, bytes, how);
}

/* Most accesses are to the thread's own stack: these return before anything is saved. */
static inline __attribute__((always_inline)) void watch_access(const void *where, size_t bytes, access how)
{
    const char *at = static_cast<const char *>(where);
    if (watched.inside && (size_t)(at - watched.stack) >= watched.stack_bytes)
        watch_memory(at, bytes, how);
}

void watch(const void *where, size_t bytes, access how)
{
    watch_access(where, bytes, how);
}

void watch_aligned(const void *at, size_t multiple)
{
    if (watched.inside && reinterpret_cast<uintptr_t>(at) % multiple)
        fail("is at an address that is no multiple of what it reads or writes");
}

/* ---- calls from the scheduler ---------------------------------------------------------------- */

void watch_launch(uint64_t blocks, const void *args, size_t bytes)
{
    grid.before = grid.first;
    grid.first = (grid.first + grid.blocks + 1) & 0x3fffffffu; /* on overflow old accesses are forgotten */
    if (!grid.first)
        grid.first = grid.synced = grid.before = 1;
    grid.blocks = (uint32_t)blocks;
    grid.args = static_cast<const char *>(args);
    grid.arg_bytes = bytes;
    grid.blocks_said.assign(blocks, {});
}

void watch_block(uint64_t block, const char *shared, size_t bytes)
{
    grid.block = grid.first + (uint32_t)block;
    room.at = shared;
    room.bytes = bytes;
    room.first_era = ++room.era;
}

void watch_array(const void *at, size_t bytes)
{
    size_t first = (size_t)(static_cast<const char *>(at) - room.at) / GRAIN;
    for (size_t i = first; i < first + (bytes + GRAIN - 1) / GRAIN; i++)
        room.cells[i].array = room.first_era, room.cells[i].coming = false;
}

void watch_synced()
{
    grid.synced = grid.first + grid.blocks + 1;
}

void watch_barrier()
{
    room.era++;
}

void watch_fence()
{
    said *mine = &grid.blocks_said[grid.block - grid.first];
    mine->fenced = ++grid.clock;
    mine->heard |= mine->asked;
}

void watch_copy(const void *to, size_t bytes, bool under_way)
{
    const char *at = static_cast<const char *>(to);
    if (at < room.at || at + bytes > room.at + room.bytes)
        fail("copies to what is no shared memory");
    for (size_t i = (size_t)(at - room.at) / GRAIN; i < (size_t)(at - room.at + bytes) / GRAIN; i++) {
        room.cells[i].coming = false;
        shared_access(room.at + i * GRAIN, GRAIN, WRITE);
        room.cells[i].coming = under_way;
    }
}

} // namespace emu

/* ---- calls from instrumented code ------------------------------------------------------------ */

#ifndef __SANITIZE_ADDRESS__ /* its runtime defines the same symbols */
extern "C" {

#define TELL(n)                                                                                              \
    void __tsan_read##n(void *p)                                                                             \
    {                                                                                                        \
        emu::watch_access(p, n, emu::READ);                                                                  \
    }                                                                                                        \
    void __tsan_write##n(void *p)                                                                            \
    {                                                                                                        \
        emu::watch_access(p, n, emu::WRITE);                                                                 \
    }                                                                                                        \
    void __tsan_unaligned_read##n(void *p)                                                                   \
    {                                                                                                        \
        emu::watch_access(p, n, emu::READ);                                                                  \
    }                                                                                                        \
    void __tsan_unaligned_write##n(void *p)                                                                  \
    {                                                                                                        \
        emu::watch_access(p, n, emu::WRITE);                                                                 \
    }
TELL(1)
TELL(2)
TELL(4)
TELL(8)
TELL(16)

void __tsan_read_range(void *p, unsigned long n)
{
    emu::watch_access(p, n, emu::READ);
}

void __tsan_write_range(void *p, unsigned long n)
{
    emu::watch_access(p, n, emu::WRITE);
}

void __tsan_vptr_update(void **, void *)
{
}

void __tsan_init()
{
}

/* The compiler's record of a misaligned access, which begins with its source location. */
struct misaligned {
    const char *file;
    uint32_t line, column;
    const void *type;
    unsigned char log_alignment, kind;
};

void __ubsan_handle_type_mismatch_v1(misaligned *m, uintptr_t at)
{
    char text[256];
    snprintf(text, sizeof text, "%s:%u: address %#zx is no multiple of %u", m->file, m->line, (size_t)at,
             1u << m->log_alignment);
    emu::fail(text);
}

void __ubsan_handle_type_mismatch_v1_abort(misaligned *m, uintptr_t at)
{
    __ubsan_handle_type_mismatch_v1(m, at);
}
}
#endif
