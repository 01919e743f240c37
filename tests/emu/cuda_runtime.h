/* cuda_runtime.h - emulates CUDA on the CPU, to test kernels without a GPU.
 *
 * With this directory first in the include path, the sources in cuda/ compile as ordinary C++: a kernel is a
 * function, and a launch calls it for each thread of each block.  Threads are coroutines.  Blocks run one at
 * a time, in a new random order at each launch; the threads of a block run in a new random order at each
 * barrier.  So a missing barrier, or a block that depends on another block, gives a wrong result.
 *
 * Errors that a real GPU may not report abort the program with the name of the kernel: a barrier that some
 * threads never reach, a warp function without all lanes, more shared memory than every supported GPU has or
 * than was requested, a block size that is not a multiple of the warp size, work for a device that is not
 * current.  Shared and device memory is initialized to NaN; freed memory cannot be accessed.  watch.h checks
 * every memory access of a kernel for races, bounds and alignment.
 *
 * Arithmetic has the largest errors that CUDA documents: tensor cores truncate sums, and math functions are
 * off by the maximum number of units in the last place.  Equal arguments give equal results.
 *
 * Timing is not emulated.
 */
#pragma once

#include "watch.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#define CUDA_EMULATED 1

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __align__(n) alignas(n)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};

/* ---- inside a kernel ------------------------------------------------------------------------------- */

namespace emu
{

struct place {
    dim3 thread, block, block_size, grid;
    int lane;
};
extern place here; /* of the running thread */

void barrier(const char *file, int line);
void warp_barrier();

/* Shares `bytes` (at most 64) of each lane with all 32 lanes of the warp; valid until the next exchange. */
const unsigned char (*exchange(const void *mine, size_t bytes))[64];

/* Returns shared memory for one declaration, the same for all threads of the block.  It has exactly the
 * alignment of the type, so that code that needs more fails. */
void *shared(const void *declaration, size_t bytes, size_t alignment);
void *dynamic_shared();

/* Asynchronous copies.  They are done at the wait, not before, so that a missing wait gives a wrong result. */
void copy_later(void *to, const void *from, size_t bytes, size_t wanted); /* pads with zeros */
void copies_end();
void copies_wait(size_t groups);

/* Waits for the previous kernel, in a kernel that may start before it has ended. */
void overlap_wait();

template <class T> T from_lane(T v, int lane)
{
    T out;
    memcpy(&out, exchange(&v, sizeof v)[lane & 31], sizeof out);
    return out;
}

} // namespace emu

inline dim3 &threadIdx = emu::here.thread, &blockIdx = emu::here.block, &blockDim = emu::here.block_size,
            &gridDim = emu::here.grid;

#define __syncthreads() emu::barrier(__FILE__, __LINE__)

inline void __threadfence()
{
    emu::watch_fence();
}

inline void __syncwarp(unsigned = ~0u)
{
    emu::warp_barrier();
}

template <class T> T __shfl_sync(unsigned, T v, int lane)
{
    return emu::from_lane(v, lane);
}

template <class T> T __shfl_xor_sync(unsigned, T v, int mask)
{
    return emu::from_lane(v, emu::here.lane ^ mask);
}

template <class T> T __shfl_up_sync(unsigned, T v, int by)
{
    int lane = emu::here.lane - by;
    return emu::from_lane(v, lane >= 0 ? lane : emu::here.lane);
}

inline unsigned __ballot_sync(unsigned, int yes)
{
    unsigned all = 0;
    unsigned char mine = yes != 0;
    const unsigned char(*lanes)[64] = emu::exchange(&mine, 1);
    for (int i = 0; i < 32; i++)
        all |= (unsigned)lanes[i][0] << i;
    return all;
}

namespace emu
{
/* Replaces *p by next(*p) atomically and returns the old value. */
template <class T, class F> __attribute__((noinline, no_sanitize("thread"))) T at_once(T *p, const F &next)
{
    T old, now;
    watch(p, sizeof *p, ATOMIC);
    memcpy(&old, p, sizeof old);
    now = next(old);
    memcpy(p, &now, sizeof now);
    return old;
}
} // namespace emu

template <class T> T atomicAdd(T *p, T v)
{
    return emu::at_once(p, [v](T old) { return (T)(old + v); });
}

template <class T> T atomicMax(T *p, T v)
{
    return emu::at_once(p, [v](T old) { return v > old ? v : old; });
}

namespace emu
{
/* Moves `exact` by up to `steps` units in the last place, depending on the argument `of`. */
float off_by(float exact, float of, int steps);

/* Returns sum + eight terms, rounded like a tensor core. */
float tensor_sum(float sum, const float term[8]);
} // namespace emu

inline float exp_of_card(float x)
{
    return emu::off_by(expf(x), x, 2);
}
inline float log1p_of_card(float x)
{
    return emu::off_by(log1pf(x), x, 1);
}
inline float erf_of_card(float x)
{
    return emu::off_by(erff(x), x, 2);
}
inline float exp2_of_card(float x)
{
    return emu::off_by(exp2f(x), x, 2);
}
inline float __expf(float x)
{
    return emu::off_by(expf(x), x, 2 + (int)fminf(fabsf(1.173f * x), 200));
}
#define expf   exp_of_card
#define log1pf log1p_of_card
#define erff   erf_of_card
#define exp2f  exp2_of_card

inline float __fadd_rn(float a, float b)
{
    return a + b;
}
inline float __fmul_rn(float a, float b)
{
    return a * b;
}
/* Byte i of the result is the byte of b:a selected by nibble i of `which`. */
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    uint64_t all = (uint64_t)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++)
        r |= (unsigned)(all >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
    return r;
}
inline unsigned __float_as_uint(float f)
{
    unsigned u;
    memcpy(&u, &f, 4);
    return u;
}
inline float __uint_as_float(unsigned u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
template <class T> T min(T a, T b)
{
    return b < a ? b : a;
}
template <class T> T max(T a, T b)
{
    return a < b ? b : a;
}
inline float max(float a, float b) /* NaN counts as missing */
{
    return fmaxf(a, b);
}

/* ---- host API ------------------------------------------------------------------------------------------ */

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorStubLibrary = 34,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorSystemDriverMismatch = 803
} cudaError_t;
typedef enum {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
} cudaMemcpyKind;
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize } cudaFuncAttribute;
typedef struct emu_stream *cudaStream_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount, l2CacheSize;
};

enum { cudaStreamNonBlocking = 1, cudaMemAttachGlobal = 1 };

cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaMallocHost(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

/* Stream-ordered memory pools. */
typedef struct emu_pool *cudaMemPool_t;
typedef enum { cudaMemAllocationTypePinned = 1 } cudaMemAllocationType;
typedef enum { cudaMemLocationTypeDevice = 1 } cudaMemLocationType;
typedef enum {
    cudaMemPoolAttrReleaseThreshold,
    cudaMemPoolAttrReservedMemCurrent,
    cudaMemPoolAttrUsedMemCurrent
} cudaMemPoolAttr;
typedef enum { cudaDevAttrMemoryPoolsSupported } cudaDeviceAttr;
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    struct {
        cudaMemLocationType type;
        int id;
    } location;
};
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes);
cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream);
cudaError_t cudaDeviceReset();
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaDriverGetVersion(int *v);
cudaError_t cudaRuntimeGetVersion(int *v);

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind,
                            cudaStream_t = nullptr);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t = nullptr);
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t = nullptr);
namespace emu
{
cudaError_t broken();             /* the error of a lost device, which every call returns; else cudaSuccess */
void *cublaslt(const char *name); /* a function of the emulated cuBLASLt */
double library_time();            /* time of its products so far, in ms */
cudaError_t launch();             /* counts a kernel launch, at which the device may be lost; see broken() */
} // namespace emu
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t);

/* Events measure the time of the emulated cuBLASLt only. */
typedef struct emu_event *cudaEvent_t;
enum { cudaEventDisableTiming = 2 };
cudaError_t cudaEventCreate(cudaEvent_t *e);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);
inline cudaError_t cudaDeviceSynchronize()
{
    return emu::broken();
}
inline cudaError_t cudaGetLastError()
{
    return emu::broken();
}
namespace emu
{
void allow(const void *kernel, size_t shared);
}
template <class K> cudaError_t cudaFuncSetAttribute(K kernel, cudaFuncAttribute, int bytes)
{
    emu::allow(reinterpret_cast<const void *>(kernel), static_cast<size_t>(bytes));
    return cudaSuccess;
}

/* ---- launches and graphs --------------------------------------------------------------------- */

typedef struct emu_graph *cudaGraph_t;
typedef struct emu_graph *cudaGraphExec_t;
typedef struct emu_node *cudaGraphNode_t; /* a number from 1, not a pointer */
typedef struct emu_edge cudaGraphEdgeData;
typedef enum { cudaStreamCaptureModeRelaxed } cudaStreamCaptureMode;
typedef enum { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive } cudaStreamCaptureStatus;

struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t = nullptr);
struct cudaFuncAttributes {
    int ptxVersion, binaryVersion;
};
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *kernel);
typedef enum { cudaLaunchAttributeProgrammaticStreamSerialization = 6 } cudaLaunchAttributeID;
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *kernel, void **args);
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **last,
                                     const cudaGraphEdgeData **edges, size_t *n);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *params);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

namespace emu
{

/* A kernel with bound arguments. */
struct call {
    std::shared_ptr<void> what;
    size_t bytes; /* size of *what */
    void (*run)(void *what);
};

/* allowed: dynamic shared memory granted by cudaFuncSetAttribute; 0: not set.
 * overlap: the kernel may start before the previous one has ended. */
void run(const char *kernel, dim3 grid, dim3 block, size_t shared, size_t allowed, bool overlap,
         const call &body);

/* Runs `what` now, or adds it to the graph that is being captured. */
void enqueue(const std::function<void()> &what);

/* Binds a kernel to arguments, given their addresses. */
typedef std::function<call(void **args)> binder;
void remember(const void *kernel, const char *name, const binder &bind);

template <class... P> struct bound_kernel {
    void (*kernel)(P...);
    std::tuple<P...> args;
};

template <class... P, size_t... I> call bound(void (*kernel)(P...), void **args, std::index_sequence<I...>)
{
    using all = bound_kernel<P...>;
    return {std::make_shared<all>(all{kernel, {*static_cast<P *>(args[I])...}}), sizeof(all),
            [](void *what) { std::apply(static_cast<all *>(what)->kernel, static_cast<all *>(what)->args); }};
}

/* Registers a kernel, which is required before it is launched by its address. */
template <class... P> void known(void (*kernel)(P...), const char *name)
{
    remember(reinterpret_cast<const void *>(kernel), name,
             [kernel](void **args) { return bound(kernel, args, std::index_sequence_for<P...>()); });
}

} // namespace emu
