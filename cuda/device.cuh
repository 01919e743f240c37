/* device.cuh - device functions shared by all kernels: number types, vector loads, sums over warps and
 * blocks.
 *
 * Kernels also compile as ordinary C++ and run on the host (tests/emu), so that two constructs need
 * macros: SHARED(type, name, n) declares an array in shared memory, and LAUNCH (host.cuh) starts a kernel.
 *
 * Kernels read and write values of type T (float or bf16) and compute in f32. Each result is rounded once. */
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef CUDA_EMULATED
#define SHARED(type, name, n)                                                                                \
    static char name##_here;                                                                                 \
    type *const name = static_cast<type *>(emu::shared(&name##_here, sizeof(type) * (n), alignof(type)))
#define DYNAMIC_SHARED(type, name) type *const name = static_cast<type *>(emu::dynamic_shared())
#else
#define SHARED(type, name, n) __shared__ type name[n]
#define DYNAMIC_SHARED(type, name)                                                                           \
    extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];                                   \
    type *const name = reinterpret_cast<type *>(dynamic_shared_memory)
#endif

enum { WARP = 32 };
static const unsigned ALL_LANES = 0xffffffffu;

/* ---- overlapping kernels (programmatic dependent launch) --------------------------------------------- */

/* A kernel started by LAUNCH_OVERLAPPED may run before the preceding one has ended (programmatic dependent
 * launch, sm_90 and later). overlap_wait returns when all earlier kernels have ended, and then lets the
 * next kernel begin. Norms are the exception: they let it begin before their own wait (rows.cu:
 * next_may_begin), so that both kernels before that one may still run. The rule is therefore: until
 * overlap_wait returns, a kernel writes nothing, and reads only data that neither of the two preceding
 * kernels writes. Weights always satisfy it. States do because they are read early only directly after a
 * product (host.cuh: after_product), and never after a norm. After several norms in a row, all of them and
 * the kernel before may still run; but a norm reads nothing early, and a product only weights. In a kernel
 * that was started otherwise, waiting and letting begin have no effect. Data that any kernel writes, such
 * as states, must be read by load_settled, which bypasses the multiprocessor's own cache. */
__device__ __forceinline__ void overlap_wait()
{
#ifdef CUDA_EMULATED
    emu::overlap_wait();
#elif defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <class V> __device__ __forceinline__ V load_settled(const V *at)
{
#ifdef CUDA_EMULATED
    return *at;
#else
    return __ldcg(at);
#endif
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

struct bf16 {
    uint16_t bits;
};

__device__ __forceinline__ float number(float v)
{
    return v;
}

__device__ __forceinline__ float number(bf16 v)
{
    return __uint_as_float((unsigned)v.bits << 16);
}

/* Rounds to the nearest bf16, ties to even. NaN is preserved. */
__device__ __forceinline__ bf16 bf16_of(float v)
{
    unsigned u = __float_as_uint(v);
    bf16 r;
    r.bits = (u & 0x7fffffffu) > 0x7f800000u ? (uint16_t)(u >> 16 | 0x40)
                                             : (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
    return r;
}

__device__ __forceinline__ void store(float *p, float v)
{
    *p = v;
}

__device__ __forceinline__ void store(bf16 *p, float v)
{
    *p = bf16_of(v);
}

/* Returns the value of v after it is stored as a T. */
template <class T> __device__ __forceinline__ float rounded(float v);
template <> __device__ __forceinline__ float rounded<float>(float v)
{
    return v;
}
template <> __device__ __forceinline__ float rounded<bf16>(float v)
{
    return number(bf16_of(v));
}

__device__ __forceinline__ float silu(float x)
{
    return x / (1.0f + expf(-x));
}

__device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Loads eight values from a 16-byte aligned address: one load of bf16, two of f32. */
__device__ __forceinline__ void load8(float out[8], const float *p)
{
    const float4 a = *reinterpret_cast<const float4 *>(p), b = *reinterpret_cast<const float4 *>(p + 4);
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
    out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
}

__device__ __forceinline__ void load8(float out[8], const bf16 *p)
{
    const uint4 v = *reinterpret_cast<const uint4 *>(p);
    const unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        out[2 * i] = __uint_as_float(w[i] << 16);
        out[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ void store8(float *p, const float v[8])
{
    *reinterpret_cast<float4 *>(p) = float4{v[0], v[1], v[2], v[3]};
    *reinterpret_cast<float4 *>(p + 4) = float4{v[4], v[5], v[6], v[7]};
}

__device__ __forceinline__ void store8(bf16 *p, const float v[8])
{
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = bf16_of(v[2 * i]).bits | (unsigned)bf16_of(v[2 * i + 1]).bits << 16;
    *reinterpret_cast<uint4 *>(p) = uint4{w[0], w[1], w[2], w[3]};
}

__device__ __forceinline__ unsigned word_of(const uint4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ bool aligned16(const void *p)
{
    return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

/* Loads eight values from any address. The assignment of values to threads does not depend on the
 * alignment. */
template <class T> __device__ __forceinline__ void load8_any(float out[8], const T *p)
{
    if (aligned16(p))
        return load8(out, p);
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = number(p[i]);
}

template <class T> __device__ __forceinline__ void store8_any(T *p, const float v[8])
{
    if (aligned16(p))
        return store8(p, v);
#pragma unroll
    for (int i = 0; i < 8; i++)
        store(p + i, v[i]);
}

/* The same for the first n of eight values; the others are zero, or are not stored. */
template <class T> __device__ __forceinline__ void load_some(float out[8], const T *p, int64_t n)
{
    if (n >= 8)
        return load8_any(out, p);
#pragma unroll
    for (int i = 0; i < 8; i++)
        out[i] = i < n ? number(p[i]) : 0.0f;
}

template <class T> __device__ __forceinline__ void store_some(T *p, const float v[8], int64_t n)
{
    if (n >= 8)
        return store8_any(p, v);
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < n)
            store(p + i, v[i]);
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* Return the sum or the maximum over a warp in all lanes; or over the lanes whose numbers differ in the bits
 * from FIRST up to END only. */
template <int FIRST = 1, int END = WARP, class V> __device__ __forceinline__ V warp_sum(V v)
{
#pragma unroll
    for (int lane = END / 2; lane >= FIRST; lane /= 2)
        v += __shfl_xor_sync(ALL_LANES, v, lane);
    return v;
}

template <int FIRST = 1, int END = WARP, class V> __device__ __forceinline__ V warp_max(V v)
{
#pragma unroll
    for (int lane = END / 2; lane >= FIRST; lane /= 2)
        v = max(v, __shfl_xor_sync(ALL_LANES, v, lane));
    return v;
}

/* Returns the sum of the lanes before this one, and in *all that of the warp. */
template <class V> __device__ __forceinline__ V sum_before(V own, V *all)
{
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int by = 1; by < WARP; by *= 2) {
        V other = __shfl_up_sync(ALL_LANES, own, by);
        own += lane >= by ? other : 0;
    }
    V before = __shfl_up_sync(ALL_LANES, own, 1);
    *all = __shfl_sync(ALL_LANES, own, WARP - 1);
    return lane ? before : 0;
}

/* Writes a value of each warp of a one-dimensional block to shared memory, and returns its address. */
template <class V> __device__ __forceinline__ const V *share_with_block(V of_warp)
{
    SHARED(V, each, 32);
    __syncthreads(); /* the previous ones have been read */
    if (threadIdx.x % WARP == 0)
        each[threadIdx.x / WARP] = of_warp;
    __syncthreads();
    return each;
}

/* Return the sum, added in a fixed order, or the maximum over a block in all threads. */
__device__ __forceinline__ float block_sum(float v)
{
    const float *each = share_with_block(warp_sum(v));
    float total = 0;
    for (int i = 0, warps = blockDim.x / WARP; i < warps; i++)
        total += each[i];
    return total;
}

template <class V> __device__ __forceinline__ V block_max(V v)
{
    const V *each = share_with_block(warp_max(v));
    v = each[0];
    for (int i = 1, warps = blockDim.x / WARP; i < warps; i++)
        v = max(v, each[i]);
    return v;
}

/* Computes 1 / sqrt(mean x^2 + eps) of n numbers, by a warp. */
template <class T> __device__ __forceinline__ float inverse_size(const T *x, int n, float eps)
{
    float sum = 0;
    for (int i = threadIdx.x % WARP; i < n; i += WARP)
        sum += number(x[i]) * number(x[i]);
    return 1.0f / sqrtf(warp_sum(sum) / (float)n + eps);
}

/* ---- positions in a matrix ----------------------------------------------------------------------------- */

struct position {
    int64_t row, column;
};

/* Returns the position of a thread that processes EACH adjacent of `cols` columns. The blocks are numbered
 * row by row (host.cuh: row_blocks). */
template <int EACH = 1> __device__ __forceinline__ position my_position(int64_t cols)
{
    unsigned per = ((unsigned)cols + blockDim.x * EACH - 1) / (blockDim.x * EACH);
    return position{blockIdx.x / per, (int64_t)(blockIdx.x % per * blockDim.x + threadIdx.x) * EACH};
}

/* ---- blocks that do not wait for each other ------------------------------------------------------------ */

/* Counts the calling block and returns whether it is the last of `blocks` blocks; the result is the same
 * in the whole block. All earlier writes of the other blocks are then visible to it. The counter is zero
 * before and after. */
__device__ __forceinline__ bool last_of(unsigned *arrived, unsigned blocks)
{
    SHARED(unsigned, before, 1);
    __threadfence(); /* makes the writes visible to a block that sees the count */
    __syncthreads();
    if (threadIdx.x == 0) {
        before[0] = atomicAdd(arrived, 1u);
        __threadfence();
        if (before[0] == blocks - 1)
            *arrived = 0;
    }
    __syncthreads();
    return before[0] == blocks - 1;
}

/* Computes the gated norm of one group of a row by one block; used alone (rows.cu) and fused with a
 * state-space step (mamba.cu). q = y silu(z); out = w q rsqrt(mean of q^2 + eps) over `size` elements. out
 * may be y. */
template <int THREADS, class T>
__device__ __forceinline__ void gated_norm_group(T *out, const T *y, const T *z, const float *w, int size,
                                                 float eps)
{
    float sum = 0;
    if (size <= 8 * THREADS &&
        size % 8 == 0) { /* each thread keeps its eight values, so that only one pass over memory is needed */
        float q[8] = {}, gate[8], gain[8];
        int c = 8 * threadIdx.x;
        if (c < size) {
            load8_any(q, y + c);
            load8_any(gate, z + c);
            load8_any(gain, w + c);
        }
#pragma unroll
        for (int i = 0; i < 8 && c < size; i++) {
            q[i] *= silu(gate[i]);
            sum = fmaf(q[i], q[i], sum);
        }
        float r = 1.0f / sqrtf(block_sum(sum) / (float)size + eps);
        if (c >= size)
            return;
#pragma unroll
        for (int i = 0; i < 8; i++)
            q[i] = gain[i] * (q[i] * r);
        store8_any(out + c, q);
        return;
    }
    for (int c = threadIdx.x; c < size; c += THREADS) {
        float q = number(y[c]) * silu(number(z[c]));
        sum = fmaf(q, q, sum);
    }
    float r = 1.0f / sqrtf(block_sum(sum) / (float)size + eps);
    for (int c = threadIdx.x; c < size; c += THREADS)
        store(out + c, w[c] * (number(y[c]) * silu(number(z[c])) * r));
}
