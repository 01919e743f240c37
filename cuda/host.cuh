/* host.cuh - what the host side shares: the backend, error checks, launches, and views for kernels. */
#ifndef HOLORUN_CUDA_HOST_CUH
#define HOLORUN_CUDA_HOST_CUH

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
    int64_t stride;      /* elements from row to row; quantized: blocks of a tile (quant_formats.cuh) */
    struct tensor plain; /* on the device, bf16 or f32; or empty */
    enum quant_format format;
    void *bytes;         /* quantized, on the device */
    const float *scales; /* row scales, on the device */
    float scale;         /* the scale of all rows, or NaN where they differ */
    bool coarse;         /* rows of x are rounded to e4m3 where there are many (fp8.cu) */
};

struct cuda {
    struct ops ops;
    int device;
    cudaStream_t stream;
    int processors;     /* streaming multiprocessors */
    bool overlap;       /* kernels may: see LAUNCH_OVERLAPPED */
    bool after_product; /* what was started last is a product of few rows, which writes no state */
    bool managed;       /* for tests: managed memory, synchronous operations, few processors */
    void *scratch;      /* of cuda_scratch */
    size_t scratch_room;
    unsigned *counts; /* of finished blocks, zero between launches: [WORK_BANDS], then of mamba.cu */
    size_t counts_room;
    struct graphs *graphs; /* decode_graph.cu */
    void *old_scratch[8];  /* that a graph still uses */
    int old_scratches;
    struct products *products; /* what linear.cu keeps between calls */
    struct masks *masks;       /* of sample.cu */
    struct memory *memory;     /* of memory.cu */
};

const char *cuda_advice(cudaError_t error); /* what a user can do: "; ...", or empty */

/* Exits with what failed and what a user can do. */
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

/* LAUNCH(kernel, grid, block, shared, b, arguments...) starts a kernel (in parentheses when it has template
 * arguments) and exits when it cannot start.  An empty grid starts nothing.  Within a recorded graph the
 * launch is compared instead: see decode_graph.cu. */
struct launch {
    const void *kernel;
    dim3 grid, block;
    size_t shared;
    void **args;        /* n addresses within `values` */
    const void *values; /* of `bytes` bytes */
    size_t n, bytes;
    bool overlap; /* it may start before the one before it has ended */
};

void cuda_start(struct cuda *c, const struct launch *l);

/* Exits when what was started last failed. */
void cuda_check_started(struct cuda *c, const char *file, int line);
#define CHECK_STARTED(b) cuda_check_started(cuda_of(b), __FILE__, __LINE__)

/* The same as a launch for work other than our kernels; `what` identifies it. */
void cuda_also(struct cuda *c, const void *what, size_t bytes, const std::function<void()> &other);

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

/* The same for a kernel that calls overlap_wait (device.cuh). */
#define LAUNCH_OVERLAPPED(kernel, grid, block, shared, b, ...)                                               \
    (launch_kernel(cuda_of(b), true, #kernel, kernel, grid, block, shared, __VA_ARGS__), CHECK_STARTED(b))

/* Whether operations are being recorded or compared: then none may wait or use host memory. */
bool cuda_recording(const struct cuda *c);

void memory_open(struct cuda *c);
void memory_close(struct cuda *c); /* tensors that are left are freed with it */

void graphs_open(struct cuda *c);
void graphs_stop(struct cuda *c); /* a step that an error broke off is recorded no further */
void graphs_close(struct cuda *c);

/* Working memory on the device for one operation, 256-byte aligned, undefined contents: valid until the
 * next operation asks.  A model's operations find it reserved; when memory runs out the first exits, the
 * second answers NULL with the reason. */
void *cuda_scratch(struct backend *b, size_t bytes);
void *cuda_try_scratch(struct backend *b, size_t bytes, struct err *e);

/* Memory that the caller keeps; NULL with the reason. */
void *cuda_try_memory(struct backend *b, size_t bytes, struct err *e);

/* Allows a kernel that much shared memory, at most 99 KiB. */
template <class K> static inline void allow_shared(K kernel, size_t bytes)
{
    if (bytes > 48 << 10)
        CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)));
}

/* A matrix as a kernel argument. */
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

void products_open(struct backend *b); /* linear.cu: cuBLASLt and its memory */
void products_close(struct cuda *c);
void products_forget(struct cuda *c, const void *at);          /* other numbers stand there now */
int masks_open(struct backend *b, int64_t ids, struct err *e); /* sample.cu: memory for sets of so many ids */
void masks_close(struct backend *b);
int counts_open(struct backend *b, int64_t groups, struct err *e); /* mamba.cu: counters for so many groups */
unsigned *groups_arrived(struct backend *b, int64_t groups);       /* those, [WORK_SESSIONS][groups] */
unsigned *bands_arrived(struct backend *b);                        /* those of bands, [WORK_BANDS] */

/* Each file enters its operations into the table. */
void memory_fill(struct ops *o);       /* memory.cu: tensors, pinned memory */
void graph_fill(struct ops *o);        /* decode_graph.cu: CUDA graphs */
void rows_fill(struct ops *o);         /* rows.cu: embed, norms, sums, shuffles */
void linear_fill(struct ops *o);       /* linear.cu: weights and products */
void ssm_fill(struct ops *o);          /* ssm.cu: convolution, state space of one token */
void scan_fill(struct ops *o);         /* scan.cu: state space of many tokens */
void mamba_fill(struct ops *o);        /* mamba.cu: both and the norm, of a batch */
void replay_fill(struct ops *o);       /* replay.cu: the same with states that are written seldom */
void attend_fill(struct ops *o);       /* attend.cu: attention */
void kv8_fill(struct ops *o);          /* kv8.cu: 8-bit KV cache */
void moe_fill(struct ops *o);          /* moe.cu: mixture of experts */
void delta_fill(struct ops *o);        /* delta.cu: the gated delta rule */
void delta_decode_fill(struct ops *o); /* delta_decode.cu: a whole layer, of a batch */
void gates_fill(struct ops *o);        /* gates.cu: gates, norms of heads, rotary positions */
void sample_fill(struct ops *o);       /* sample.cu: the next token */
void preprocess_fill(struct ops *o);   /* preprocess.cu: patches from pixels */
void synthetic_fill(struct ops *o);    /* synthetic.cu: synthetic values, limits */

#endif
