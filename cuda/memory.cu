/* memory.cu - device memory for tensors, working memory of operations, and pinned host memory.
 *
 * Tensors are allocated from a pool of the device in stream order. Freed memory is available to the next
 * tensor of any size without waiting for the work in between, whereas cudaFree waits for all of it. When a
 * session grows, each of its caches is allocated again in the new size and copied, and the old one is freed.
 * With cudaFree, all sessions would stop during that time. Freed memory remains in the pool until another use
 * needs it. If the driver has no such pools, cudaMalloc is used. */
#include "host.cuh"

#include <map>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    cudaMemPool_t pool;                 /* NULL: not supported by the driver */
    std::mutex lock;                    /* protects pinned memory, which other threads may free */
    std::map<void *, size_t> size;      /* sizes of all pinned blocks */
    std::multimap<size_t, void *> left; /* unused blocks by size */
    size_t bytes;                       /* total of `left` */
};

/* ---- device memory --------------------------------------------------------------------------------- */

/* Returns unused pool memory to the device, after waiting for its users. */
static void trim(struct cuda *c)
{
    if (!c->memory->pool)
        return;
    CUDA(cudaStreamSynchronize(c->stream));
    CUDA(cudaMemPoolTrimTo(c->memory->pool, 0));
}

static cudaError_t ask_memory(struct cuda *c, void **p, size_t bytes)
{
    return c->managed ? cudaMallocManaged(p, bytes) : cudaMalloc(p, bytes);
}

static cudaError_t ask_pool(struct cuda *c, void **p, size_t bytes)
{
    if (!c->memory->pool)
        return ask_memory(c, p, bytes);
    return cudaMallocFromPoolAsync(p, bytes, c->memory->pool, c->stream);
}

typedef cudaError_t ask(struct cuda *c, void **p, size_t bytes);

/* Allocates memory. NULL with e if there is not enough. Exits if the device is lost. */
static void *try_memory(struct cuda *c, ask *how, size_t bytes, struct err *e)
{
    void *p = nullptr;
    cudaError_t error = how(c, &p, bytes ? bytes : 1);
    if (error == cudaErrorMemoryAllocation && !cuda_recording(c)) {
        cudaGetLastError();
        trim(c);
        error = how(c, &p, bytes ? bytes : 1);
    }
    if (error == cudaSuccess)
        return p;
    if (error != cudaErrorMemoryAllocation)
        CUDA(error);
    cudaGetLastError(); /* clears the error, which the result reports */
    err_set(e, ERR_ENV, "GPU: %s: %.2f MiB requested%s", cudaGetErrorString(error),
            static_cast<double>(bytes) / (1 << 20), cuda_advice(error));
    return nullptr;
}

void *cuda_try_memory(struct backend *b, size_t bytes, struct err *e)
{
    return try_memory(cuda_of(b), ask_memory, bytes, e);
}

static void *device_memory(struct cuda *c, ask *how, size_t bytes)
{
    struct err e = ERR_INIT;
    void *p = try_memory(c, how, bytes, &e);
    if (!p)
        die(e.kind, "%s", e.text);
    return p;
}

/* ---- working memory ------------------------------------------------------------------------------------ */

/* Retires the current scratch memory. Launches of a graph under construction may use it, so it is freed at
 * the next growth outside a graph, after waiting for its users. */
static void retire(struct cuda *c)
{
    if (cuda_recording(c) && c->old_scratches < 8) {
        c->old_scratch[c->old_scratches++] = c->scratch;
        c->scratch = nullptr;
        return;
    }
    if (cuda_recording(c))
        bug("working memory that grows more than 8 times within a graph");
    while (c->old_scratches > 0)
        CUDA(cudaFree(c->old_scratch[--c->old_scratches]));
    CUDA(cudaFree(c->scratch));
    c->scratch = nullptr;
}

void *cuda_try_scratch(struct backend *b, size_t bytes, struct err *e)
{
    struct cuda *c = cuda_of(b);
    if (c->scratch_room < bytes) {
        size_t had = c->scratch_room;
        retire(c);
        c->scratch_room = 0;
        c->scratch = cuda_try_memory(b, bytes, e);
        if (c->scratch) {
            c->scratch_room = bytes;
        } else if (had && !cuda_recording(c)) { /* the freed memory is available */
            c->scratch = device_memory(c, ask_memory, had);
            c->scratch_room = had;
            return nullptr;
        }
    }
    return c->scratch;
}

void *cuda_scratch(struct backend *b, size_t bytes)
{
    struct err e = ERR_INIT;
    bool more = cuda_of(b)->scratch_room < bytes; /* nothing was reserved, so it may grow again */
    void *p = cuda_try_scratch(b, more ? bytes + bytes / 2 : bytes, &e);
    if (!p)
        die(e.kind, "%s", e.text);
    return p;
}

static int cuda_reserve(struct backend *b, const struct work_need *n, struct err *e)
{
    products_open(b);
    return cuda_try_scratch(b, n->bytes, e) && masks_open(b, n->ids, e) == 0 &&
                   counts_open(b, n->groups, e) == 0
               ? 0
               : -1;
}

#ifdef CUDA_EMULATED /* small, so that tests run several parts */
static const struct work_parts quantized_parts = {16 << 10, 8 << 10, 64 << 10, 64 << 10, 0};
const struct work_parts *cuda_work_parts()
{
    return &quantized_parts;
}
#else
const struct work_parts *cuda_work_parts()
{
    return &work_parts_usual;
}
#endif

/* ---- tensors ------------------------------------------------------------------------------------------- */

static struct tensor zeroed(struct backend *b, struct tensor x)
{
    if (x.data) {
        CUDA(cudaMemsetAsync(x.data, 0, tensor_bytes(x), cuda_of(b)->stream));
        CHECK_STARTED(b);
    }
    return x;
}

static struct tensor cuda_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor x = {nullptr, t, rows, cols, cols};
    x.data = device_memory(cuda_of(b), ask_pool, tensor_bytes(x));
    return zeroed(b, x);
}

static struct tensor cuda_try_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor x = {nullptr, t, rows, cols, cols};
    x.data = try_memory(cuda_of(b), ask_pool, tensor_bytes(x), nullptr);
    return zeroed(b, x);
}

static void cuda_free(struct backend *b, struct tensor *t)
{
    struct cuda *c = cuda_of(b);
    products_forget(c, t->data);
    if (t->data)
        CUDA(c->memory->pool ? cudaFreeAsync(t->data, c->stream) : cudaFree(t->data));
    memset(t, 0, sizeof *t);
}

/* Returns the free memory of the device including the unused part of the pool. */
static size_t cuda_memory_left(struct backend *b)
{
    size_t left = 0, all = 0;
    uint64_t reserved = 0, in_use = 0;
    cudaMemPool_t pool = cuda_of(b)->memory->pool;
    CUDA(cudaMemGetInfo(&left, &all));
    if (pool) {
        CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
        CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &in_use));
    }
    return left + reserved - in_use;
}

/* ---- host memory ----------------------------------------------------------------------------------- */

/* Pinned host memory, which the GPU accesses directly. Pinning the memory for a session's state takes ten
 * times as long as copying the state. Freed blocks are therefore kept for later requests of about the same
 * size. No copy uses a freed block, because every copy from or to the host is waited for. */
enum : size_t { PINNED_UNIT = 64 << 10, PINNED_LEFT = (size_t)4 << 30 /* maximum */ };

/* Returns a kept block of about this size; NULL if there is none. */
static void *pinned_again(struct memory *p, size_t bytes)
{
    std::lock_guard<std::mutex> hold(p->lock);
    auto have = p->left.lower_bound(bytes);
    if (have == p->left.end() || have->first > bytes + bytes / 4)
        return nullptr;
    void *at = have->second;
    p->bytes -= have->first;
    p->left.erase(have);
    return at;
}

/* Keeps a freed block. Returns false if enough are kept. */
static bool pinned_keep(struct memory *p, void *at)
{
    std::lock_guard<std::mutex> hold(p->lock);
    size_t bytes = p->size.at(at);
    bool keep = p->bytes + bytes <= PINNED_LEFT;
    if (keep) {
        p->left.insert({bytes, at});
        p->bytes += bytes;
    } else {
        p->size.erase(at);
    }
    return keep;
}

static void pinned_drop(struct memory *p)
{
    std::lock_guard<std::mutex> hold(p->lock);
    for (auto &each : p->left) {
        p->size.erase(each.second);
        cudaFreeHost(each.second);
    }
    p->left.clear();
    p->bytes = 0;
}

static void *pin(struct memory *p, size_t bytes)
{
    void *at = nullptr;
    cudaError_t error = cudaMallocHost(&at, bytes);
    cudaGetLastError(); /* clears the error, which the result reports */
    if (error != cudaSuccess)
        return nullptr;
    std::lock_guard<std::mutex> hold(p->lock);
    p->size[at] = bytes;
    return at;
}

static void *cuda_host_alloc(struct backend *b, size_t bytes)
{
    struct memory *p = cuda_of(b)->memory;
    bytes = bytes > 0 ? (bytes + PINNED_UNIT - 1) / PINNED_UNIT * PINNED_UNIT : PINNED_UNIT;
    void *at = pinned_again(p, bytes);
    if (!at)
        at = pin(p, bytes);
    if (!at) {
        pinned_drop(p);
        at = pin(p, bytes);
    }
    return at;
}

static void cuda_host_free(struct backend *b, void *at)
{
    if (at && !pinned_keep(cuda_of(b)->memory, at))
        CUDA(cudaFreeHost(at));
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

/* Creates a pool that does not return memory to the device by itself. NULL if the driver does not support
 * pools. */
static cudaMemPool_t open_pool(const struct cuda *c)
{
    int supported = 0;
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = c->device;
    uint64_t never = UINT64_MAX;
    cudaError_t error = cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, c->device);
    if (error == cudaSuccess && supported && !c->managed)
        error = cudaMemPoolCreate(&pool, &props);
    if (error == cudaSuccess && pool)
        error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &never);
    cudaGetLastError(); /* the driver has no pools, or not of this kind */
    return error == cudaSuccess ? pool : nullptr;
}

void memory_open(struct cuda *c)
{
    c->memory = new memory();
    c->memory->pool = open_pool(c);
}

void memory_close(struct cuda *c)
{
    cudaFree(c->scratch);
    for (int i = 0; i < c->old_scratches; i++)
        cudaFree(c->old_scratch[i]);
    pinned_drop(c->memory);
    if (c->memory->pool)
        cudaMemPoolDestroy(c->memory->pool);
    delete c->memory;
}

void memory_fill(struct ops *o)
{
    o->alloc = cuda_alloc;
    o->free = cuda_free;
    o->try_alloc = cuda_try_alloc;
    o->memory_left = cuda_memory_left;
    o->reserve = cuda_reserve;
    o->host_alloc = cuda_host_alloc;
    o->host_free = cuda_host_free;
}
