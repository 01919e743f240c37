/* backend.cu - devices, memory, and the table of operations on a GPU. */
#include "cublas.cuh"
#include "host.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------------------------------------- */

static const char *what_to_do(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "; 'holorun plan' says what fits on this card";
#ifndef CUDA_EMULATED
    case cudaErrorInsufficientDriver:
        return "; the driver is older than this program wants, update it or use --device cpu";
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorStubLibrary:
        return "; use --device cpu, or see what 'nvidia-smi' says";
    case cudaErrorNoKernelImageForDevice:
        return "; this card is older than those this program was built for, use --device cpu";
    case cudaErrorECCUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalAddress:
        return "; the card has to be asked anew: start again, and see what 'nvidia-smi' says";
#endif
    default:
        return "";
    }
}

void cuda_die(cudaError_t error, const char *what, const char *file, int line)
{
    const char *name = strrchr(file, '/');
    die(ERR_ENV, "GPU: %s%s (%s in %s:%d)", cudaGetErrorString(error), what_to_do(error), what,
        name ? name + 1 : file, line);
}

void cuda_launched(struct backend *b, const char *file, int line)
{
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess && cuda_of(b)->managed && !cuda_recording(cuda_of(b)))
        error = cudaStreamSynchronize(cuda_of(b)->stream);
    if (error != cudaSuccess)
        cuda_die(error, "a kernel", file, line);
}

/* ---- devices ------------------------------------------------------------------------------------------- */

extern "C" int cuda_devices(struct gpu *out, int max, struct err *e)
{
    int n = 0, driver = 0, runtime = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return err_set(e, ERR_ENV, "there is no NVIDIA driver on this machine");
    if (error != cudaSuccess && driver < runtime)
        return err_set(e, ERR_ENV,
                       "the NVIDIA driver is for CUDA %d.%d, this program wants %d.%d: update the driver",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error != cudaSuccess)
        return err_set(e, ERR_ENV, "no usable NVIDIA GPU: %s", cudaGetErrorString(error));
    for (int i = 0; i < n && i < max; i++) {
        cudaDeviceProp p;
        CUDA(cudaSetDevice(i));
        CUDA(cudaGetDeviceProperties(&p, i));
        memset(&out[i], 0, sizeof out[i]);
        snprintf(out[i].name, sizeof out[i].name, "%.63s", p.name);
        out[i].major = p.major;
        out[i].minor = p.minor;
        CUDA(cudaMemGetInfo(&out[i].free, &out[i].memory));
    }
    return n;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static cudaError_t ask_memory(struct backend *b, void **p, size_t bytes)
{
    bytes = bytes ? bytes : 1;
    return cuda_of(b)->managed ? cudaMallocManaged(p, bytes) : cudaMalloc(p, bytes);
}

static void *device_memory(struct backend *b, size_t bytes)
{
    void *p = nullptr;
    cudaError_t error = ask_memory(b, &p, bytes);
    if (error != cudaSuccess)
        die(ERR_ENV, "GPU: %s: %zu bytes asked for%s", cudaGetErrorString(error), bytes, what_to_do(error));
    return p;
}

/* A step that is being put together may have launches that use the old memory: it goes when the next one is as
 * large, after waiting for who uses it. */
static void retire(struct cuda *c)
{
    if (cuda_recording(c) && c->old_scratches < 8) {
        c->old_scratch[c->old_scratches++] = c->scratch;
        c->scratch = nullptr;
        return;
    }
    if (cuda_recording(c))
        bug("working memory that grows and grows within a step");
    while (c->old_scratches > 0)
        CUDA(cudaFree(c->old_scratch[--c->old_scratches]));
    CUDA(cudaFree(c->scratch));
    c->scratch = nullptr;
}

void *cuda_scratch(struct backend *b, size_t bytes)
{
    struct cuda *c = cuda_of(b);
    if (c->scratch_room < bytes) {
        retire(c);
        bytes += bytes / 2;
        c->scratch = device_memory(b, bytes);
        c->scratch_room = bytes;
    }
    return c->scratch;
}

static struct tensor cuda_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    size_t bytes = static_cast<size_t>(rows) * static_cast<size_t>(cols) * dtype_size(t);
    struct tensor x = {device_memory(b, bytes), t, rows, cols, cols};
    CUDA(cudaMemsetAsync(x.data, 0, bytes, cuda_of(b)->stream));
    LAUNCHED(b);
    return x;
}

static struct tensor cuda_try_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    size_t bytes = static_cast<size_t>(rows) * static_cast<size_t>(cols) * dtype_size(t);
    struct tensor x = {nullptr, t, rows, cols, cols};
    cudaError_t error = ask_memory(b, &x.data, bytes);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* it is told by the answer */
        x.data = nullptr;
        return x;
    }
    CUDA(error);
    CUDA(cudaMemsetAsync(x.data, 0, bytes, cuda_of(b)->stream));
    LAUNCHED(b);
    return x;
}

static size_t cuda_memory_left(struct backend *b)
{
    size_t left = 0, all = 0;
    (void)b;
    CUDA(cudaMemGetInfo(&left, &all));
    return left;
}

/* Pinned, so that the card reads and writes it by itself. */
static void *cuda_host_alloc(struct backend *b, size_t bytes)
{
    void *p = nullptr;
    (void)b;
    if (cudaMallocHost(&p, bytes ? bytes : 1) == cudaSuccess)
        return p;
    cudaGetLastError();
    return nullptr;
}

static void cuda_host_free(struct backend *b, void *p)
{
    (void)b;
    CUDA(cudaFreeHost(p));
}

static void cuda_free(struct backend *b, struct tensor *t)
{
    (void)b;
    CUDA(cudaFree(t->data));
    memset(t, 0, sizeof *t);
}

static void move(struct backend *b, struct tensor dst, struct tensor src, cudaMemcpyKind kind)
{
    size_t size = dtype_size(dst.dtype), width = static_cast<size_t>(dst.cols) * size;
    if (dst.rows == 0 || dst.cols == 0)
        return;
    cudaStream_t stream = cuda_of(b)->stream;
    const int64_t what[] = {reinterpret_cast<intptr_t>(dst.data),
                            reinterpret_cast<intptr_t>(src.data),
                            dst.rows,
                            dst.cols,
                            dst.stride,
                            src.stride,
                            dst.dtype,
                            kind};
    cuda_also(cuda_of(b), what, sizeof what, [=] {
        if (dst.rows == 1 || (dst.stride == dst.cols && src.stride == src.cols))
            CUDA(cudaMemcpyAsync(dst.data, src.data, width * static_cast<size_t>(dst.rows), kind, stream));
        else
            CUDA(cudaMemcpy2DAsync(dst.data, static_cast<size_t>(dst.stride) * size, src.data,
                                   static_cast<size_t>(src.stride) * size, width,
                                   static_cast<size_t>(dst.rows), kind, stream));
    });
    LAUNCHED(b);
}

static void same_shape(struct tensor dst, struct tensor src)
{
    if (dst.rows != src.rows || dst.cols != src.cols)
        bug("copy of %lldx%lld to %lldx%lld", (long long)src.rows, (long long)src.cols, (long long)dst.rows,
            (long long)dst.cols);
}

static void finish(struct backend *b)
{
    if (cuda_recording(cuda_of(b)))
        bug("a step waits for the host");
    CUDA(cudaStreamSynchronize(cuda_of(b)->stream));
}

/* A tensor on the host, and the same values in another type. */
static struct tensor host_twin(struct tensor t, enum dtype type)
{
    struct tensor x = {xmalloc(static_cast<unsigned long>(t.rows * t.cols), dtype_size(type)), type, t.rows,
                       t.cols, t.cols};
    return x;
}

static void cuda_upload(struct backend *b, struct tensor dst, struct tensor src)
{
    same_shape(dst, src);
    if (dst.dtype == src.dtype) {
        move(b, dst, src, cudaMemcpyHostToDevice);
        finish(b); /* the caller may write to src again */
        return;
    }
    struct tensor x = host_twin(src, dst.dtype);
    tensor_convert(x, src);
    move(b, dst, x, cudaMemcpyHostToDevice);
    finish(b);
    free(x.data);
}

static void cuda_download(struct backend *b, struct tensor dst, struct tensor src)
{
    same_shape(dst, src);
    if (dst.dtype == src.dtype) {
        move(b, dst, src, cudaMemcpyDeviceToHost);
        finish(b);
        return;
    }
    struct tensor x = host_twin(src, src.dtype);
    move(b, x, src, cudaMemcpyDeviceToHost);
    finish(b);
    tensor_convert(dst, x);
    free(x.data);
}

template <class D, class S> __global__ void convert(view<D> dst, view<S> src)
{
    for (int64_t c = blockIdx.x * blockDim.x + threadIdx.x; c < dst.cols; c += gridDim.x * blockDim.x)
        store(dst.row(blockIdx.y) + c, number(src.row(blockIdx.y)[c]));
}

static void cuda_copy(struct backend *b, struct tensor dst, struct tensor src)
{
    same_shape(dst, src);
    if (dst.dtype == src.dtype) {
        move(b, dst, src, cudaMemcpyDeviceToDevice);
        return;
    }
    for (int64_t r = 0; r < dst.rows; r += 32768) {
        int64_t n = dst.rows - r < 32768 ? dst.rows - r : 32768;
        dim3 grid(blocks_for(dst.cols, 256), static_cast<unsigned>(n));
        struct tensor to = tensor_rows(dst, r, n), from = tensor_rows(src, r, n);
        WITH_TYPE(
            D, to.dtype,
            WITH_TYPE(S, from.dtype,
                      LAUNCH((convert<D, S>), grid, 256, 0, cuda_of(b), view_of<D>(to), view_of<S>(from))));
        LAUNCHED(b);
    }
}

/* ---- the backend --------------------------------------------------------------------------------------- */

static void cuda_close(struct backend *b)
{
    struct cuda *c = cuda_of(b);
    cudaStreamSynchronize(c->stream);
    products_close(c);
    masks_close(c);
    steps_close(c);
    cudaFree(c->scratch);
    for (int i = 0; i < c->old_scratches; i++)
        cudaFree(c->old_scratch[i]);
    cudaFree(c->counts);
    cudaStreamDestroy(c->stream);
    delete c;
}

extern "C" struct backend *backend_cuda(int device, struct pool *pool, struct err *e)
{
    struct gpu found[64];
    int n = cuda_devices(found, 64, e);
    if (n < 0)
        return nullptr;
    if (device < 0 || device >= n)
        return err_set(e, ERR_USAGE, "there is no GPU %d; this machine has %d, counted from 0", device, n),
               nullptr;
    if (found[device].major < 8)
        return err_set(e, ERR_ENV,
                       "GPU %d (%s) has compute capability %d.%d; 8.0 is wanted, so use --device cpu", device,
                       found[device].name, found[device].major, found[device].minor),
               nullptr;
    if (!cublas_here())
        return err_set(e, ERR_ENV, "%s", cublas_missing), nullptr;
    struct cuda *c = new cuda();
    cudaDeviceProp p;
    CUDA(cudaSetDevice(device));
    CUDA(cudaGetDeviceProperties(&p, device));
    CUDA(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    c->device = device;
    c->processors = p.multiProcessorCount;
    c->managed = getenv("HOLORUN_CUDA_MANAGED") != nullptr;
    c->ops.name = "cuda";
    c->ops.close = cuda_close;
    c->ops.alloc = cuda_alloc;
    c->ops.free = cuda_free;
    c->ops.try_alloc = cuda_try_alloc;
    c->ops.memory_left = cuda_memory_left;
    c->ops.host_alloc = cuda_host_alloc;
    c->ops.host_free = cuda_host_free;
    c->ops.upload = cuda_upload;
    c->ops.download = cuda_download;
    c->ops.copy = cuda_copy;
    steps_open(c);
    step_fill(&c->ops);
    rows_fill(&c->ops);
    attend_fill(&c->ops);
    linear_fill(&c->ops);
    moe_fill(&c->ops);
    ssm_fill(&c->ops);
    scan_fill(&c->ops);
    mamba_fill(&c->ops);
    choose_fill(&c->ops);
    cut_fill(&c->ops);
    made_fill(&c->ops);
    struct backend *b = static_cast<struct backend *>(xcalloc(1, sizeof *b));
    b->ops = &c->ops;
    b->pool = pool;
    b->priv = c;
    return b;
}
