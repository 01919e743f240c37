/* emu.cc - runs the threads of a block as coroutines (see cuda_runtime.h).
 *
 * A thread has its own stack and yields at barriers only.  The scheduler visits the threads of a block in
 * rounds, in a new random order each time, and resumes those that are not waiting, except for a few delayed
 * warps.  So a warp can run ahead of another as far as the barriers allow.  If no thread can be resumed in a
 * round, the kernel is deadlocked.
 */
#include "emu.h"
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <numeric>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace emu
{

place here;

namespace
{

enum { MAX_THREADS = 1024, STACK = 256 << 10, WARPS = MAX_THREADS / 32 };
enum { SHARED_LIMIT = 99 << 10, SHARED_FOR_ALL = 48 << 10, SHARED_ROOM = 224 << 10, SHARED_GAP = 128 };

struct late_copy {
    void *to;
    const void *from;
    size_t bytes, wanted;
};

struct coroutine {
    void *sp; /* stack pointer when it yielded */
    char *stack;
    place at;
    bool done;
    bool waited; /* for the previous kernel */
    long waits;  /* resumes when this number of barriers has been passed; -1: not waiting */
    long warp_waits;
    uint32_t syncs;                            /* warp barriers passed */
    int next;                                  /* index of the next exchange buffer */
    std::vector<late_copy> copies;             /* of the open group */
    std::deque<std::vector<late_copy>> groups; /* not yet done */
};

struct warp {
    unsigned char lanes[2][32][64];
    int arrived;
    long passed;
};

struct {
    const char *kernel;
    const call *body;
    coroutine threads[MAX_THREADS];
    warp warps[WARPS];
    int n, running, arrived, finished;
    long passed;
    bool overlap, waited; /* the kernel may start early; a thread has waited for the previous kernel */
    const char *file;     /* of the barrier at which threads wait */
    int line;
    void *host; /* stack pointer of the scheduler */
    char *room; /* shared memory, aligned to 4096 bytes */
    std::map<const void *, void *> shared;
    void *dynamic;
    size_t shared_bytes, room_used, dynamic_bytes, allowed;
    uint64_t random = 88172645463325252ull;
    uint64_t behind; /* bit mask of delayed warps */
} now;

} // namespace

void fail(const char *what)
{
    if (watched.inside)
        fprintf(stderr, "kernel %s, block %u,%u,%u, thread %u: %s\n", now.kernel, here.block.x, here.block.y,
                here.block.z, here.thread.x, what);
    else
        fprintf(stderr, "kernel %s: %s\n", now.kernel ? now.kernel : "(none)", what);
    abort();
}

namespace
{

/* ---- coroutines ---------------------------------------------------------------------------------------- */

/* Saves the callee-saved registers, stores the stack pointer in *from and continues at `to`. */
extern "C" void emu_switch(void **from, void *to);
__asm__(R"(
    .text
    .globl emu_switch
    .type emu_switch, @function
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emu_switch, . - emu_switch
    .section .note.GNU-stack,"",@progbits
    .text
)");

void leave()
{
    watched.inside = false;
    emu_switch(&now.threads[now.running].sp, now.host);
}

void enter()
{
    now.body->run(now.body->what.get());
    now.threads[now.running].done = true;
    now.finished++;
    leave();
    abort();
}

void prepare(coroutine *c)
{
    if (!c->stack) {
        void *p =
            mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            fail("no memory for its stack");
        c->stack = static_cast<char *>(p);
    }
    /* Stacks that all end at the same offset in a page share a few lines of the cache. */
    size_t top = STACK - static_cast<size_t>(c - now.threads) % 64 * 64;
    void **sp = reinterpret_cast<void **>(c->stack + top) -
                1; /* after a call the stack pointer is 8 bytes off a multiple of 16 */
    *--sp = reinterpret_cast<void *>(enter);
    for (int i = 0; i < 6; i++)
        *--sp = nullptr;
    c->sp = sp;
    c->done = c->waited = false;
    c->waits = c->warp_waits = -1;
    c->next = 0;
    c->syncs = 0;
    c->copies.clear();
    c->groups.clear();
}

bool can_run(const coroutine *c, int i)
{
    return !c->done && c->waits < now.passed && c->warp_waits < now.warps[i / 32].passed;
}

uint64_t draw()
{
    now.random ^= now.random << 13;
    now.random ^= now.random >> 7;
    now.random ^= now.random << 17;
    return now.random;
}

/* A random order of n things: each comes once, because the step has no common divisor with n. */
struct order {
    uint64_t n, at, step;
    explicit order(uint64_t number) : n(number), at(draw() % n)
    {
        do
            step = 1 + draw() % n;
        while (std::gcd(step, n) != 1);
    }
    uint64_t next()
    {
        uint64_t i = at;
        at = at + step < n ? at + step : at + step - n;
        return i;
    }
};

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Allocates shared memory for the current block. */
void *piece_of_room(size_t bytes, size_t alignment)
{
    size_t at = (now.room_used + SHARED_GAP) / 128 * 128;
    if (alignment < 128) /* exactly this alignment, not a larger one */
        at += alignment;
    now.room_used = at + bytes;
    memset(now.room + at, 0xff, bytes);
    watch_array(now.room + at, bytes);
    return now.room + at;
}

/* Delays some warps for a few rounds, or for as long as other warps can run. */
void fall_behind()
{
    now.behind = draw() % 4 ? draw() : 0;
}

void round_of_threads()
{
    bool could = false, moved = false;
    if (draw() % 8 == 0)
        fall_behind();
    order threads(static_cast<uint64_t>(now.n));
    for (int visited = 0; visited < now.n; visited++) {
        int i = static_cast<int>(threads.next());
        coroutine *c = &now.threads[i];
        if (!can_run(c, i))
            continue;
        could = true;
        if (now.behind >> i / 32 & 1)
            continue;
        moved = true;
        now.running = i;
        here = c->at;
        watched = {true, now.overlap && !c->waited, i, c->syncs, c->stack, STACK};
        emu_switch(&now.host, c->sp);
    }
    if (!moved)
        fall_behind();
    if (!could) {
        char text[256];
        snprintf(
            text, sizeof text,
            "%d of %d threads wait at the barrier of %s:%d, or a warp lacks lanes; the others never come",
            now.arrived, now.n, now.file ? now.file : "-", now.line);
        fail(text);
    }
}

void run_block(dim3 at, dim3 grid, dim3 block, size_t dynamic)
{
    now.n = static_cast<int>(block.x * block.y * block.z);
    now.arrived = now.finished = 0;
    now.passed = 0;
    now.shared_bytes = now.dynamic_bytes = dynamic;
    now.room_used = 0;
    now.shared.clear();
    watch_block((at.z * grid.y + at.y) * static_cast<uint64_t>(grid.x) + at.x, now.room, SHARED_ROOM);
    now.dynamic = piece_of_room(dynamic, 16);
    for (int i = 0; i < now.n; i++) {
        unsigned u = static_cast<unsigned>(i);
        dim3 thread(u % block.x, u / block.x % block.y, u / block.x / block.y);
        now.threads[i].at = {thread, at, block, grid, i % 32};
        prepare(&now.threads[i]);
    }
    for (int i = 0; i < now.n / 32; i++)
        now.warps[i].arrived = 0, now.warps[i].passed = 0;
    while (now.finished < now.n)
        round_of_threads();
}

} // namespace

void run(const char *kernel, dim3 grid, dim3 block, size_t shared, size_t allowed, bool overlap,
         const call &body)
{
    now.kernel = kernel;
    now.overlap = overlap;
    now.waited = false;
    now.body = &body;
    now.allowed = allowed;
    if (!now.room && posix_memalign(reinterpret_cast<void **>(&now.room), 4096, SHARED_ROOM))
        fail("no memory");
    unsigned n = block.x * block.y * block.z;
    if (n == 0 || n % 32 || n > MAX_THREADS)
        fail("a block has whole warps, at most 1024 threads");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        fail("such a grid cannot be launched");
    if (shared > SHARED_LIMIT)
        fail("more shared memory than every supported card has");
    uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    order visits(blocks);
    watch_launch(blocks, body.what.get(), body.bytes);
    for (uint64_t i = 0, at; i < blocks; i++) {
        at = visits.next();
        run_block(dim3(static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                       static_cast<unsigned>(at / grid.x / grid.y)),
                  grid, block, shared);
    }
    if (overlap && !now.waited)
        fail("may start before the kernel before it has ended, and does not wait for it");
}

/* ---- functions that kernels call ------------------------------------------------------------- */

void barrier(const char *file, int line)
{
    if (now.arrived && (now.line != line || strcmp(now.file, file) != 0))
        fail("threads of a block wait at two different barriers");
    now.file = file;
    now.line = line;
    now.threads[now.running].waits = now.passed;
    if (++now.arrived == now.n) {
        now.arrived = 0;
        now.passed++;
        watch_barrier();
    }
    leave();
}

/* Two buffers suffice: a lane cannot reach the first buffer again before all lanes have left it. */
const unsigned char (*exchange(const void *mine, size_t bytes))[64]
{
    coroutine *c = &now.threads[now.running];
    warp *w = &now.warps[now.running / 32];
    int buffer = c->next;
    if (bytes > 64)
        fail("an exchange of more than 64 bytes");
    watch(mine, bytes, READ);
    memcpy(w->lanes[buffer][here.lane], mine, bytes);
    c->next = !buffer;
    c->warp_waits = w->passed;
    if (++w->arrived == 32) {
        w->arrived = 0;
        w->passed++;
    }
    leave();
    return w->lanes[buffer];
}

void warp_barrier()
{
    char nothing = 0;
    exchange(&nothing, 1);
    watched.syncs = ++now.threads[now.running].syncs;
}

void overlap_wait()
{
    now.threads[now.running].waited = now.waited = true;
    watched.early = false;
}

void copy_later(void *to, const void *from, size_t bytes, size_t wanted)
{
    if (reinterpret_cast<uintptr_t>(to) % bytes || reinterpret_cast<uintptr_t>(from) % bytes)
        fail("a copy of 16 bytes from or to an address that is no multiple of it");
    watch_copy(to, bytes, true);
    watch(from, wanted, READ);
    memset(to, 0xff, bytes);
    now.threads[now.running].copies.push_back({to, from, bytes, wanted});
}

void copies_end()
{
    coroutine *c = &now.threads[now.running];
    c->groups.push_back(std::move(c->copies));
    c->copies.clear();
}

void copies_wait(size_t groups)
{
    coroutine *c = &now.threads[now.running];
    for (; c->groups.size() > groups; c->groups.pop_front())
        for (const late_copy &l : c->groups.front()) {
            watch_copy(l.to, l.bytes, false);
            memset(l.to, 0, l.bytes);
            memcpy(l.to, l.from, l.wanted);
        }
}

void *shared(const void *declaration, size_t bytes, size_t alignment)
{
    void *&piece = now.shared[declaration];
    if (!piece) {
        now.shared_bytes += bytes;
        if (now.shared_bytes > SHARED_LIMIT)
            fail("more shared memory than every supported card has");
        if (now.shared_bytes > SHARED_FOR_ALL && now.allowed < now.dynamic_bytes)
            fail("more shared memory in all than it was allowed");
        piece = piece_of_room(bytes, alignment);
    }
    return piece;
}

void *dynamic_shared()
{
    return now.dynamic;
}

} // namespace emu
