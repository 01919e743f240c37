/* host.cuh - declarations shared by the host code: backend, error checks, kernel launches, working memory,
 * and views as kernel arguments. */
#pragma once

#include "device.cuh"

#include <array>
#include <functional>
#include <tuple>

extern "C" {
#define _Noreturn [[noreturn]]
#include "ops/work.h"
#include "src/ops/cuda.h"
#undef _Noreturn
}

struct weight {
    int64_t rows, cols;  /* N, K */
    int64_t stride;      /* elements between rows; quantized: blocks per tile (quant_formats.cuh) */
    struct tensor plain; /* on the device in bf16 or f32; empty if quantized */
    enum quant_format format;
    void *bytes;         /* quantized weights on the device */
    const float *scales; /* row scales on the device */
    float scale;         /* the scale common to all rows, or NaN if they differ */
    bool coarse;         /* activations of many rows are quantized to e4m3 (fp8.cu) */
};

struct cuda {
    struct ops ops;
    int device;
    cudaStream_t stream;
    int processors;     /* streaming multiprocessors */
    bool overlap;       /* kernels may overlap: see LAUNCH_OVERLAPPED */
    bool after_product; /* the last started kernel is a product of few rows, which writes no state */
    bool managed;       /* for tests: managed memory, synchronous operations, few processors */
    void *scratch;      /* memory of cuda_scratch */
    size_t scratch_room;
    unsigned *counts; /* counters of finished blocks, zero between launches (mamba.cu) */
    size_t counts_room;
    struct graphs *graphs; /* decode_graph.cu */
    void *old_scratch[8];  /* retired blocks that a graph still uses */
    int old_scratches;
    struct products *products; /* state that linear.cu keeps between calls */
    struct masks *masks;       /* state of sample.cu */
    struct memory *memory;     /* state of memory.cu */
};

const char *cuda_advice(cudaError_t error); /* remedy for the user: "; ...", or empty */

/* Prints the failed operation with a remedy and exits. */
[[noreturn]] void cuda_die(cudaError_t error, const char *what, const char *file, int line);

#define CUDA(call)                                                                                           \
    do {                                                                                                     \
        cudaError_t error_ = (call);                                                                         \
        if (error_ != cudaSuccess)                                                                           \
            cuda_die(error_, #call, __FILE__, __LINE__);                                                     \
    } while (0)

static inline struct cuda *cuda_of(struct backend *b)
{
    return static_cast<struct cuda *>(b->priv);
}

/* ---- launches ------------------------------------------------------------------------------------------ */

/* LAUNCH(kernel, grid, block, shared, b, arguments...) starts a kernel, whose name is in parentheses if it
 * has template arguments. Exits if it cannot start. An empty grid starts nothing. While a graph is
 * replayed, the launch is compared with the record instead: see decode_graph.cu. */
struct launch {
    const void *kernel;
    dim3 grid, block;
    size_t shared;
    void **args;        /* n addresses within `values` */
    const void *values; /* of `bytes` bytes */
    size_t n, bytes;
    bool overlap; /* may start before the preceding kernel has ended */
};

void cuda_start(struct cuda *c, const struct launch *l);

/* Exits if the last launch failed. */
void cuda_check_started(struct cuda *c, const char *file, int line);
#define CHECK_STARTED(b) cuda_check_started(cuda_of(b), __FILE__, __LINE__)

/* Runs, records or compares work other than our kernels, like a launch. `what` identifies it, without padding
 * between its members. */
void cuda_also(struct cuda *c, const void *what, size_t bytes, const std::function<void()> &other);

/* Returns a tensor as a part of `what`. */
static inline std::array<int64_t, 5> key_of(struct tensor t)
{
    return {reinterpret_cast<intptr_t>(t.data), t.dtype, t.rows, t.cols, t.stride};
}

template <class... P, class... A>
static void launch_kernel(struct cuda *c, bool overlap, const char *name, void (*kernel)(P...), dim3 grid,
                          dim3 block, size_t shared, const A &...args)
{
    static_assert((0 + ... + sizeof(P)) <= 4096 - 64, "what every driver takes as arguments of a kernel");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return;
    std::tuple<P...> values(args...);
    std::array<void *, sizeof...(P)> each = std::apply(
        [](auto &...v) { return std::array<void *, sizeof...(P)>{static_cast<void *>(&v)...}; }, values);
    const struct launch l = {reinterpret_cast<const void *>(kernel),
                             grid,
                             block,
                             shared,
                             each.data(),
                             &values,
                             sizeof...(P),
                             sizeof values,
                             overlap};
#ifdef CUDA_EMULATED
    emu::known(kernel, name);
#endif
    cuda_start(c, &l);
}

#define LAUNCH(kernel, grid, block, shared, b, ...)                                                          \
    (launch_kernel(cuda_of(b), false, #kernel, kernel, grid, block, shared, __VA_ARGS__), CHECK_STARTED(b))

/* Same as LAUNCH for a kernel that calls overlap_wait (device.cuh). */
#define LAUNCH_OVERLAPPED(kernel, grid, block, shared, b, ...)                                               \
    (launch_kernel(cuda_of(b), true, #kernel, kernel, grid, block, shared, __VA_ARGS__), CHECK_STARTED(b))

/* Returns whether operations are being recorded or compared. They must not wait or use host memory then. */
bool cuda_recording(const struct cuda *c);

void memory_open(struct cuda *c);
void memory_close(struct cuda *c); /* also frees the remaining tensors */

void graphs_open(struct cuda *c);
void graphs_stop(struct cuda *c); /* ends the recording of a step that an error interrupted */
void graphs_close(struct cuda *c);

/* Return working memory on the device for one operation, 256-byte aligned, uninitialized, valid until the
 * next call. The operations of a model find it reserved. If there is not enough memory, the first function
 * exits, the second returns NULL with e. */
void *cuda_scratch(struct backend *b, size_t bytes);
void *cuda_try_scratch(struct backend *b, size_t bytes, struct err *e);

/* Allocates memory that the caller keeps and frees. NULL with e on failure. */
void *cuda_try_memory(struct backend *b, size_t bytes, struct err *e);

/* Allows a kernel this many bytes of shared memory, at most 99 KiB. */
template <class K> static inline void allow_shared(K kernel, size_t bytes)
{
    if (bytes > 48 << 10)
        CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)));
}

/* Matrix as a kernel argument. */
template <class T> struct view {
    T *at;
    int64_t rows, cols, stride;
    __device__ __forceinline__ T *row(int64_t r) const
    {
        return at + r * stride;
    }
};

template <class T> static inline view<T> view_of(struct tensor t)
{
    return view<T>{static_cast<T *>(t.data), t.rows, t.cols, t.stride};
}

static inline const float *vector(struct tensor t)
{
    return static_cast<const float *>(t.data);
}

/* Returns whether all rows are 16-byte aligned. */
static inline bool rows_aligned(const void *at, int64_t stride, size_t size)
{
    return reinterpret_cast<uintptr_t>(at) % 16 == 0 && static_cast<size_t>(stride) * size % 16 == 0;
}

static inline bool aligned(struct tensor t)
{
    return rows_aligned(t.data, t.stride, dtype_size(t.dtype));
}

/* Runs a statement with T as the type of a tensor's elements: f32 or bf16. */
#define WITH_TYPE(T, dtype_, ...)                                                                            \
    do {                                                                                                     \
        if ((dtype_) == DT_BF16) {                                                                           \
            using T = bf16;                                                                                  \
            __VA_ARGS__;                                                                                     \
        } else if ((dtype_) == DT_F32) {                                                                     \
            using T = float;                                                                                 \
            __VA_ARGS__;                                                                                     \
        } else {                                                                                             \
            bug("no operation on the device for %s", dtype_name(dtype_));                                    \
        }                                                                                                    \
    } while (0)

static inline dim3 grid_of(int64_t x, int64_t y = 1, int64_t z = 1)
{
    return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z));
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline unsigned blocks_for(int64_t n, int64_t each)
{
    return static_cast<unsigned>((n + each - 1) / each);
}

/* Returns the grid of my_position, for blocks that have `each` columns. It has one dimension, since the
 * others end at 65535. */
static inline dim3 row_blocks(int64_t rows, int64_t cols, int64_t each)
{
    return grid_of(rows * blocks_for(cols, each));
}

void products_open(struct backend *b); /* linear.cu: opens cuBLASLt and its memory */
void products_close(struct cuda *c);
void products_forget(struct cuda *c, const void *at);          /* forgets a cached result because the
                                                                * numbers at this address change */
int masks_open(struct backend *b, int64_t ids, struct err *e); /* sample.cu: allocates memory for masks of
                                                                * this many ids */
void masks_close(struct backend *b);
int counts_open(struct backend *b, int64_t groups, struct err *e); /* mamba.cu: allocates counters for this
                                                                    * many groups */
unsigned *groups_arrived(struct backend *b, int64_t groups);       /* the counters of groups,
                                                                    * [WORK_SESSIONS][groups] */

/* Each file adds its operations to the table. */
void memory_fill(struct ops *o);       /* memory.cu: tensors, pinned memory */
void graph_fill(struct ops *o);        /* decode_graph.cu: CUDA graphs */
void rows_fill(struct ops *o);         /* rows.cu: embed, norms, sums, shuffles */
void linear_fill(struct ops *o);       /* linear.cu: weights and matrix products */
void ssm_fill(struct ops *o);          /* ssm.cu: convolution, state-space step of one token */
void scan_fill(struct ops *o);         /* scan.cu: state-space scan of many tokens */
void mamba_fill(struct ops *o);        /* mamba.cu: fused decode step of a layer for a batch */
void attend_fill(struct ops *o);       /* attend.cu: attention */
void kv8_fill(struct ops *o);          /* kv8.cu: 8-bit KV cache */
void moe_fill(struct ops *o);          /* moe.cu: mixture of experts */
void delta_fill(struct ops *o);        /* delta.cu: the gated delta rule */
void delta_decode_fill(struct ops *o); /* delta_decode.cu: fused decode step of a layer for a batch */
void gates_fill(struct ops *o);        /* gates.cu: gates, head norms, rotary embeddings */
void sample_fill(struct ops *o);       /* sample.cu: sampling */
void preprocess_fill(struct ops *o);   /* preprocess.cu: patches of an image */
void synthetic_fill(struct ops *o);    /* synthetic.cu: synthetic weights, performance limits */
