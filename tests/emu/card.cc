/* card.cc - the emulated GPU: devices, streams, memory and memory pools.
 *
 * As in CUDA, each thread has a current device, the first one by default.  Streams and memory belong to a
 * device; a thread may use a stream only if its device is current.
 */
#include "card.h"
#include "emu.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sys/mman.h>

static struct emu_card whole_card()
{
    struct emu_card c = {};
    c.driver = c.runtime = 13000;
    c.cards = 1;
    c.major = 9;
    c.library = c.nvml = c.pools = c.overlaps = true;
    c.refused = -1;
    c.memory = static_cast<size_t>(8) << 30;
    return c;
}

struct emu_card emu_card = whole_card();

cudaError_t emu::broken()
{
    return static_cast<cudaError_t>(emu_card.error);
}

/* ---- devices and streams --------------------------------------------------------------------- */

static thread_local int own_card;
static int running_card;

void emu::give_work(cudaStream_t stream, const char *what)
{
    if (!stream || stream->card != own_card) {
        fprintf(stderr, "stream: %s: the stream is of GPU %d, the thread's own is %d\n", what,
                stream ? stream->card : -1, own_card);
        abort();
    }
    running_card = own_card;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= emu_card.cards)
        return cudaErrorInvalidDevice;
    own_card = device;
    return emu::broken();
}

cudaError_t cudaGetDevice(int *device)
{
    *device = own_card;
    return emu::broken();
}

/* Marks the current device as having a context. */
static void use_card()
{
    emu_card.contexts |= 1u << own_card;
}

cudaError_t cudaDeviceReset()
{
    emu_card.contexts &= ~(1u << own_card);
    return emu::broken();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    use_card();
    if (emu::broken() == cudaSuccess)
        *s = new emu_stream{own_card};
    return emu::broken();
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    emu::give_work(s, "it is destroyed");
    delete s;
    return cudaSuccess;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* An allocation.  It ends at a guard page, and its pages become inaccessible when it is freed.  Builds with
 * an address sanitizer use malloc instead, because the sanitizer finds the same errors and more. */
struct piece {
    void *at;                   /* start of the mapping */
    const char *begin;          /* address returned to the caller */
    size_t whole, bytes, asked; /* size of the mapping, size charged to the device, requested size */
    int card;                   /* or PINNED */
    void *shadow;               /* access records of watch.cc */
};
enum { PINNED = -1 };
static std::mutex pieces_lock;
static std::map<const void *, piece> pieces;

unsigned emu::pieces_generation;

static piece *find(const void *at)
{
    auto found = pieces.upper_bound(at);
    if (found == pieces.begin())
        return nullptr;
    --found;
    return static_cast<const char *>(at) < static_cast<const char *>(found->first) + found->second.asked
               ? &found->second
               : nullptr;
}

bool emu::is_pinned(const void *at)
{
    std::lock_guard<std::mutex> hold(pieces_lock);
    const piece *have = find(at);
    return have && have->card == PINNED;
}

bool emu::piece_at(const void *at, watched_chunk *p)
{
    std::lock_guard<std::mutex> hold(pieces_lock);
    piece *have = find(at);
    if (!have || (have->card != PINNED && have->card != running_card))
        return false;
    *p = {have->begin, have->asked, &have->shadow};
    return true;
}

void emu::check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    std::lock_guard<std::mutex> hold(pieces_lock);
    const void *ends[] = {kind == cudaMemcpyDeviceToHost ? nullptr : to,
                          kind == cudaMemcpyHostToDevice ? nullptr : from};
    for (const void *end : ends) {
        const piece *have = end ? find(end) : nullptr;
        if (!end || !bytes ||
            (have && have->card == running_card &&
             static_cast<const char *>(end) + bytes <= have->begin + have->asked))
            continue;
        fprintf(stderr, "stream: a copy %s %p, %zu bytes, which are not the card's\n",
                end == to ? "to" : "from", end, bytes);
        abort();
    }
}

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Returns the device memory that an allocation uses: whole pages of 2 MiB above 1 MiB. */
static size_t counted(size_t bytes)
{
    const size_t page = 2 << 20;
    return bytes > page / 2 ? (bytes + page - 1) / page * page : rounded(bytes);
}

#ifdef __SANITIZE_ADDRESS__
static void *take(size_t bytes, piece *p)
{
    p->whole = bytes ? bytes : 1; /* exact, so that the sanitizer detects any access beyond the end */
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

static void give(const piece &p) /* keeps the address range reserved, so that it is never reused */
{
    mmap(p.at, p.whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
#endif

static cudaError_t take_for(int card, void **p, size_t bytes)
{
    piece taken = {nullptr, nullptr, 0, counted(bytes), bytes, card, nullptr};
    if (emu::broken() != cudaSuccess)
        return emu::broken();
    *p = take(bytes, &taken);
    if (!*p)
        return cudaErrorMemoryAllocation;
    taken.begin = static_cast<char *>(*p);
    memset(*p, 0xff, bytes);
    std::lock_guard<std::mutex> hold(pieces_lock);
    pieces[*p] = taken;
    emu::pieces_generation++;
    return cudaSuccess;
}

static cudaError_t give_back(void *p, bool pinned, size_t *bytes)
{
    std::lock_guard<std::mutex> hold(pieces_lock);
    auto found = pieces.find(p);
    *bytes = 0;
    if (found == pieces.end() || (found->second.card == PINNED) != pinned)
        return p ? cudaErrorInvalidValue : emu::broken();
    *bytes = found->second.bytes;
    free(found->second.shadow);
    give(found->second);
    pieces.erase(found);
    emu::pieces_generation++;
    return emu::broken();
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    emu_card.waits++;
    return take_for(PINNED, p, bytes);
}

cudaError_t cudaFreeHost(void *p)
{
    size_t bytes;
    emu_card.waits += p != nullptr;
    emu::drain();
    return give_back(p, true, &bytes);
}

/* kept: unused bytes in memory pools, which are not available. */
static cudaError_t take_of_card(void **p, size_t bytes, size_t kept)
{
    if (emu_card.used + kept + counted(bytes) > emu_card.memory)
        return cudaErrorMemoryAllocation;
    cudaError_t error = take_for(own_card, p, bytes);
    if (error == cudaSuccess)
        emu_card.used += counted(bytes);
    emu_card.most = emu_card.most < emu_card.used ? emu_card.used : emu_card.most;
    return error;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    emu_card.waits++;
    return take_of_card(p, bytes, emu_card.kept);
}

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned)
{
    return cudaMalloc(p, bytes);
}

cudaError_t cudaFree(void *p)
{
    size_t bytes;
    emu_card.waits += p != nullptr;
    emu::drain();
    cudaError_t error = give_back(p, false, &bytes);
    emu_card.used -= bytes;
    return error;
}

/* ---- pools ----------------------------------------------------------------------------------- */

struct emu_pool {
    int card;
    uint64_t threshold;
};

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = emu_card.pools;
    return emu::broken();
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props)
{
    *pool = new emu_pool{props->location.id, 0};
    return emu::broken();
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    emu_card.kept = 0;
    delete pool;
    return emu::broken();
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void *value)
{
    pool->threshold = *static_cast<uint64_t *>(value);
    return emu::broken();
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr which, void *value)
{
    *static_cast<uint64_t *>(value) =
        emu_card.used + (which == cudaMemPoolAttrReservedMemCurrent ? emu_card.kept : 0);
    return emu::broken();
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t bytes)
{
    emu_card.kept = emu_card.kept < bytes ? emu_card.kept : bytes;
    return emu::broken();
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    emu::give_work(stream, "memory");
    emu::refuse_recording("memory of a pool is asked for while a graph is recorded");
    if (pool->card != own_card)
        return cudaErrorInvalidValue;
    cudaError_t error = take_of_card(p, bytes, 0);
    if (error == cudaSuccess)
        emu_card.kept -= emu_card.kept < counted(bytes) ? emu_card.kept : counted(bytes);
    return error;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    emu::give_work(stream, "memory");
    emu::refuse_recording("memory of a pool is freed while a graph is recorded");
    emu::enqueue([p] {
        size_t bytes;
        give_back(p, false, &bytes);
        emu_card.used -= bytes;
        emu_card.kept += bytes;
    });
    return emu::broken();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    use_card();
    *free_bytes = emu_card.memory - emu_card.used - emu_card.kept;
    *total = emu_card.memory;
    return emu::broken();
}

/* ---- errors and properties ------------------------------------------------------------------- */

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
    p->sharedMemPerBlockOptin = 99 << 10;
    p->major = emu_card.major;
    p->minor = emu_card.minor;
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
