/* emu.cc - blocks of coroutines: see cuda_runtime.h.
 *
 * A thread has a stack of its own and gives up the processor at barriers only.  The scheduler goes round the
 * threads of a block, each time in another order, and resumes those that wait for nothing, but for some warps that fall
 * behind: so a warp can be ahead of another by all that no barrier forbids.  A round in which none could be resumed
 * means that some wait for threads which will never come.
 */
#include "emu.h"
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace emu
{

place here;

namespace
{

enum { MAX_THREADS = 1024, STACK = 256 << 10, SHARED_LIMIT = 99 << 10, WARPS = MAX_THREADS / 32 };

struct late_copy {
    void *to;
    const void *from;
    size_t bytes, wanted;
};

struct coroutine {
    void *sp; /* where it stopped */
    char *stack;
    place at;
    bool done;
    long waits; /* barrier it waits for: it goes on when that many have been passed; -1: none */
    long warp_waits;
    int next;                                  /* which of the two exchange buffers */
    std::vector<late_copy> copies;             /* of the group that is open */
    std::deque<std::vector<late_copy>> groups; /* under way */
};

struct warp {
    unsigned char lanes[2][32][64];
    int arrived;
    long passed;
};

struct {
    const char *kernel;
    const std::function<void()> *body;
    coroutine threads[MAX_THREADS];
    warp warps[WARPS];
    int n, running, arrived, finished;
    long passed;
    const char *file; /* of the barrier that threads wait at */
    int line;
    void *host; /* the scheduler's own stack pointer */
    std::map<const void *, std::pair<void *, size_t>> shared;
    void *dynamic;
    size_t shared_bytes;
    uint64_t random = 88172645463325252ull;
    uint64_t behind; /* warps that stay where they are */
} now;

[[noreturn]] void fail(const char *what)
{
    fprintf(stderr, "kernel %s, block %u,%u,%u, thread %u: %s\n", now.kernel, here.block.x, here.block.y,
            here.block.z, here.thread.x, what);
    abort();
}

/* ---- coroutines ---------------------------------------------------------------------------------------- */

/* Saves what a call must keep, leaves the stack pointer in *from, and goes on at `to`. */
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
    emu_switch(&now.threads[now.running].sp, now.host);
}

void enter()
{
    (*now.body)();
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
    void **sp = reinterpret_cast<void **>(c->stack + STACK) -
                1; /* a call leaves the stack 8 beyond a multiple of 16 */
    *--sp = reinterpret_cast<void *>(enter);
    for (int i = 0; i < 6; i++)
        *--sp = nullptr;
    c->sp = sp;
    c->done = false;
    c->waits = c->warp_waits = -1;
    c->next = 0;
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

/* ---- blocks --------------------------------------------------------------------------------------------- */

void *poisoned(size_t bytes)
{
    void *p = nullptr;
    if (posix_memalign(&p, 128, bytes ? bytes : 1))
        fail("no memory");
    memset(p, 0xff, bytes);
    return p;
}

/* Some warps fall behind for a few rounds, or for as long as others can move. */
void fall_behind()
{
    now.behind = draw() % 4 ? draw() : 0;
}

void round_of_threads(std::vector<int> &order)
{
    bool could = false, moved = false;
    if (draw() % 8 == 0)
        fall_behind();
    for (size_t i = order.size(); i > 1; i--)
        std::swap(order[i - 1], order[draw() % i]);
    for (int i : order) {
        coroutine *c = &now.threads[i];
        if (!can_run(c, i))
            continue;
        could = true;
        if (now.behind >> i / 32 & 1)
            continue;
        moved = true;
        now.running = i;
        here = c->at;
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
    now.shared_bytes = dynamic;
    now.dynamic = poisoned(dynamic);
    std::vector<int> order(static_cast<size_t>(now.n));
    for (int i = 0; i < now.n; i++) {
        unsigned u = static_cast<unsigned>(i);
        dim3 thread(u % block.x, u / block.x % block.y, u / block.x / block.y);
        now.threads[i].at = {thread, at, block, grid, i % 32};
        prepare(&now.threads[i]);
        order[static_cast<size_t>(i)] = i;
    }
    for (int i = 0; i < now.n / 32; i++)
        now.warps[i].arrived = 0, now.warps[i].passed = 0;
    while (now.finished < now.n)
        round_of_threads(order);
    for (auto &piece : now.shared)
        free(piece.second.first);
    now.shared.clear();
    free(now.dynamic);
}

} // namespace

void run(const char *kernel, dim3 grid, dim3 block, size_t shared, const std::function<void()> &body)
{
    now.kernel = kernel;
    now.body = &body;
    unsigned n = block.x * block.y * block.z;
    if (n == 0 || n % 32 || n > MAX_THREADS)
        fail("a block has whole warps, at most 1024 threads");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        fail("such a grid cannot be launched");
    if (shared > SHARED_LIMIT)
        fail("more shared memory than every supported card has");
    /* blocks in another order each time, too: all of them once, by steps that have no divisor in common with n */
    uint64_t blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z, at = draw() % blocks, step;
    do
        step = 1 + draw() % blocks;
    while (std::gcd(step, blocks) != 1);
    for (uint64_t i = 0; i < blocks; i++, at = (at + step) % blocks)
        run_block(dim3(static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                       static_cast<unsigned>(at / grid.x / grid.y)),
                  grid, block, shared);
}

/* ---- what threads ask for --------------------------------------------------------------------------------- */

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
    }
    leave();
}

/* A lane that is ahead cannot come round to the buffer that others still read: before that it needs them. */
const unsigned char (*exchange(const void *mine, size_t bytes))[64]
{
    coroutine *c = &now.threads[now.running];
    warp *w = &now.warps[now.running / 32];
    int buffer = c->next;
    if (bytes > 64)
        fail("an exchange of more than 64 bytes");
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

void copy_later(void *to, const void *from, size_t bytes, size_t wanted)
{
    if (reinterpret_cast<uintptr_t>(to) % bytes || reinterpret_cast<uintptr_t>(from) % bytes)
        fail("a copy of 16 bytes from or to an address that is no multiple of it");
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
            memset(l.to, 0, l.bytes);
            memcpy(l.to, l.from, l.wanted);
        }
}

void *shared(const void *declaration, size_t bytes)
{
    auto &piece = now.shared[declaration];
    if (!piece.first) {
        now.shared_bytes += bytes;
        if (now.shared_bytes > SHARED_LIMIT)
            fail("more shared memory than every supported card has");
        piece = {poisoned(bytes), bytes};
    }
    return piece.first;
}

void *dynamic_shared()
{
    return now.dynamic;
}

} // namespace emu

/* ---- the card -------------------------------------------------------------------------------------------- */

struct emu_card emu_card = {13000, 13000, 1, 8, true, static_cast<size_t>(8) << 30, 0, 0, 0, 0, 0};

cudaError_t emu::broken()
{
    return static_cast<cudaError_t>(emu_card.error);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* Memory ends at a page that nobody may touch, and cannot be touched any more once it is free; where an address
 * sanitizer does that, and better, it is left to it. */
struct piece {
    void *at;
    size_t whole, bytes; /* that were taken, and that somebody asked for */
};
static std::mutex pieces_lock;
static std::map<void *, piece> pieces;

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

#ifdef __SANITIZE_ADDRESS__
static void *take(size_t bytes, piece *p)
{
    p->whole = bytes ? bytes : 1; /* not more: what is beyond is caught */
    return posix_memalign(&p->at, 256, p->whole) ? nullptr : p->at;
}

static void give(const piece &p)
{
    free(p.at);
}
#else
enum { PAGE = 4096 };

static void *take(size_t bytes, piece *p)
{
    bytes = rounded(bytes);
    p->whole = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
    p->at =
        mmap(nullptr, p->whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->at == MAP_FAILED)
        return nullptr;
    char *end = static_cast<char *>(p->at) + p->whole - PAGE;
    mprotect(end, PAGE, PROT_NONE);
    return end - bytes;
}

static void give(const piece &p) /* nothing else ever comes to lie there */
{
    mmap(p.at, p.whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
#endif

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    piece taken = {nullptr, 0, rounded(bytes)};
    if (emu::broken() != cudaSuccess)
        return emu::broken();
    *p = take(bytes, &taken);
    if (!*p)
        return cudaErrorMemoryAllocation;
    memset(*p, 0xff, bytes);
    std::lock_guard<std::mutex> hold(pieces_lock);
    pieces[*p] = taken;
    return cudaSuccess;
}

static cudaError_t give_back(void *p, size_t *bytes)
{
    std::lock_guard<std::mutex> hold(pieces_lock);
    auto found = pieces.find(p);
    *bytes = 0;
    if (found == pieces.end())
        return p ? cudaErrorInvalidValue : emu::broken();
    *bytes = found->second.bytes;
    give(found->second);
    pieces.erase(found);
    return emu::broken();
}

cudaError_t cudaFreeHost(void *p)
{
    size_t bytes;
    return give_back(p, &bytes);
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    if (emu_card.used + rounded(bytes) > emu_card.memory)
        return cudaErrorMemoryAllocation;
    cudaError_t error = cudaMallocHost(p, bytes);
    if (error == cudaSuccess)
        emu_card.used += rounded(bytes);
    emu_card.most = emu_card.most < emu_card.used ? emu_card.used : emu_card.most;
    return error;
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned)
{
    return cudaMalloc(p, bytes);
}

cudaError_t cudaFree(void *p)
{
    size_t bytes;
    cudaError_t error = give_back(p, &bytes);
    emu_card.used -= bytes;
    return error;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = emu_card.memory - emu_card.used;
    *total = emu_card.memory;
    return emu::broken();
}

/* ---- what there is ------------------------------------------------------------------------------------------ */

const char *cudaGetErrorString(cudaError_t e)
{
    static const std::map<int, const char *> names = {
        {cudaSuccess, "no error"},
        {cudaErrorMemoryAllocation, "out of memory"},
        {cudaErrorStubLibrary, "CUDA driver is a stub library"},
        {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
        {cudaErrorNoDevice, "no CUDA-capable device is detected"},
        {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
        {cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"},
        {cudaErrorLaunchFailure, "unspecified launch failure"}};
    auto found = names.find(e);
    return found == names.end() ? "an error" : found->second;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 0;
    if (emu_card.driver < emu_card.runtime)
        return cudaErrorInsufficientDriver;
    if (!emu_card.cards)
        return cudaErrorNoDevice;
    *n = emu_card.cards;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = cudaDeviceProp{};
    strcpy(p->name, "emulated");
    p->totalGlobalMem = emu_card.memory;
    p->sharedMemPerBlockOptin = emu::SHARED_LIMIT;
    p->major = emu_card.major;
    p->multiProcessorCount = 4;
    return emu::broken();
}

cudaError_t cudaDriverGetVersion(int *v)
{
    *v = emu_card.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = emu_card.runtime;
    return cudaSuccess;
}
