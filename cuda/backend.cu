/* backend.cu - CUDA backend: device selection, copies between host and device, and the table of
 * operations. */
#include "host.cuh"
#include "linear.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors -------------------------------------------------------------------------------------------- */

const char *cuda_advice(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "; 'holorun plan' prints what fits on this GPU";
    case cudaErrorInsufficientDriver:
        return "; the driver is too old for this program: update it, or use --device cpu";
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorStubLibrary:
        return "; use --device cpu, or check the GPU with nvidia-smi";
    case cudaErrorNoKernelImageForDevice:
        return "; this program was not built for a GPU this old: use --device cpu";
    case cudaErrorDevicesUnavailable:
        return "; another program may have exclusive use of the GPU: check it with nvidia-smi, or use "
               "--device cpu";
    case cudaErrorECCUncorrectable:
    case cudaErrorLaunchFailure:
    case cudaErrorIllegalAddress:
        return "; this process can no longer use the GPU: restart it, and check the GPU with nvidia-smi";
    default:
        return "";
    }
}

void cuda_die(cudaError_t error, const char *what, const char *file, int line)
{
    const char *name = strrchr(file, '/');
    die(ERR_ENV, "GPU: %s%s (%s in %s:%d)", cudaGetErrorString(error), cuda_advice(error), what,
        name ? name + 1 : file, line);
}

void cuda_check_started(struct cuda *c, const char *file, int line)
{
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess && c->managed && !cuda_recording(c))
        error = cudaStreamSynchronize(c->stream);
    if (error != cudaSuccess)
        cuda_die(error, "a kernel", file, line);
}

/* ---- copies ------------------------------------------------------------------------------------------- */

static void move(struct backend *b, struct tensor dst, struct tensor src, cudaMemcpyKind kind)
{
    size_t size = dtype_size(dst.dtype), width = static_cast<size_t>(dst.cols) * size;
    if (dst.rows == 0 || dst.cols == 0)
        return;
    cudaStream_t stream = cuda_of(b)->stream;
    const struct {
        std::array<int64_t, 5> dst, src;
        int64_t kind;
    } what = {key_of(dst), key_of(src), kind};
    cuda_also(cuda_of(b), &what, sizeof what, [=] {
        if (dst.rows == 1 || (dst.stride == dst.cols && src.stride == src.cols))
            CUDA(cudaMemcpyAsync(dst.data, src.data, width * static_cast<size_t>(dst.rows), kind, stream));
        else
            CUDA(cudaMemcpy2DAsync(dst.data, static_cast<size_t>(dst.stride) * size, src.data,
                                   static_cast<size_t>(src.stride) * size, width,
                                   static_cast<size_t>(dst.rows), kind, stream));
    });
    CHECK_STARTED(b);
}

static void wait_for_stream(struct backend *b)
{
    if (cuda_recording(cuda_of(b)))
        bug("a graph waits for the host");
    CUDA(cudaStreamSynchronize(cuda_of(b)->stream));
}

/* Allocates a host tensor with the shape of t in another type. */
static struct tensor host_like(struct tensor t, enum dtype type)
{
    struct tensor x = {xmalloc(static_cast<unsigned long>(t.rows * t.cols), dtype_size(type)), type, t.rows,
                       t.cols, t.cols};
    return x;
}

static void cuda_upload(struct backend *b, struct tensor dst, struct tensor src)
{
    tensor_check_copy(dst, src);
    products_forget(cuda_of(b), dst.data);
    if (dst.dtype == src.dtype) {
        move(b, dst, src, cudaMemcpyHostToDevice);
        wait_for_stream(b); /* the caller may overwrite src afterwards */
        return;
    }
    struct tensor x = host_like(src, dst.dtype);
    tensor_convert(x, src);
    move(b, dst, x, cudaMemcpyHostToDevice);
    wait_for_stream(b);
    free(x.data);
}

static void cuda_download(struct backend *b, struct tensor dst, struct tensor src)
{
    tensor_check_copy(dst, src);
    if (dst.dtype == src.dtype) {
        move(b, dst, src, cudaMemcpyDeviceToHost);
        wait_for_stream(b);
        return;
    }
    struct tensor x = host_like(src, src.dtype);
    move(b, x, src, cudaMemcpyDeviceToHost);
    wait_for_stream(b);
    tensor_convert(dst, x);
    free(x.data);
}

template <class D, class S> __global__ void convert(view<D> dst, view<S> src)
{
    position at = my_position(dst.cols);
    if (at.column < dst.cols)
        store(dst.row(at.row) + at.column, number(src.row(at.row)[at.column]));
}

static void cuda_copy(struct backend *b, struct tensor dst, struct tensor src)
{
    tensor_check_copy(dst, src);
    if (dst.dtype == src.dtype) {
        move(b, dst, src, cudaMemcpyDeviceToDevice);
        return;
    }
    WITH_TYPE(D, dst.dtype,
              WITH_TYPE(S, src.dtype,
                        LAUNCH((convert<D, S>), row_blocks(dst.rows, dst.cols, 256), 256, 0, b,
                               view_of<D>(dst), view_of<S>(src))));
}

/* ---- backend ------------------------------------------------------------------------------------- */

static void cuda_close(struct backend *b)
{
    struct cuda *c = cuda_of(b);
    cudaSetDevice(c->device); /* another thread may close the backend */
    graphs_stop(c);
    cudaStreamSynchronize(c->stream);
    products_close(c);
    masks_close(b);
    graphs_close(c);
    cudaFree(c->counts);
    memory_close(c);
    cudaStreamDestroy(c->stream);
    delete c;
}

/* Number of multiprocessors that tests see. It is small, so that small sizes take all code paths of a real
 * model. */
enum { FEW_PROCESSORS = 4 };

/* With 512 rows, the products of a model with 5,120 columns have 80 to 160 tiles for 132 processors; with
 * PROMPT_ROWS they have several hundred. Images have at most 13 tiles. */
enum { PROMPT_ROWS = 2048, PICTURE_TILES = 16 };

/* Selects the device and creates a stream. */
static cudaError_t open_device(struct cuda *c, cudaDeviceProp *p)
{
    cudaError_t error = cudaSetDevice(c->device);
    error = error == cudaSuccess ? cudaGetDeviceProperties(p, c->device) : error;
    error = error == cudaSuccess ? cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking) : error;
    cudaGetLastError(); /* clears the error, which the result reports */
    c->processors = p->multiProcessorCount;
    return error;
}

static void cuda_attach(struct backend *b)
{
    CUDA(cudaSetDevice(cuda_of(b)->device));
}

static void fill(struct ops *o)
{
    o->name = "cuda";
    o->close = cuda_close;
    o->attach = cuda_attach;
    memory_fill(o);
    o->upload = cuda_upload;
    o->download = cuda_download;
    o->copy = cuda_copy;
    graph_fill(o);
    rows_fill(o);
    attend_fill(o);
    kv8_fill(o);
    linear_fill(o);
    moe_fill(o);
    ssm_fill(o);
    scan_fill(o);
    mamba_fill(o);
    delta_fill(o);
    delta_decode_fill(o);
    gates_fill(o);
    sample_fill(o);
    preprocess_fill(o);
    synthetic_fill(o);
}

static int check_device(const struct cuda *c, cudaError_t error, const cudaDeviceProp *p, struct err *e)
{
    if (error != cudaSuccess)
        return err_set(e, ERR_ENV, "GPU %d: %s%s", c->device, cudaGetErrorString(error), cuda_advice(error));
    if (p->major < 8)
        return err_set(e, ERR_ENV,
                       "GPU %d (%s) has compute capability %d.%d; 8.0 is required; use --device cpu",
                       c->device, p->name, p->major, p->minor);
    return cublas_here() ? 0 : err_set(e, ERR_ENV, "%s", cublas_missing);
}

extern "C" struct backend *backend_cuda(int device, struct pool *pool, struct err *e)
{
    int n = cuda_devices(nullptr, 0, e);
    if (n < 0)
        return nullptr;
    if (device < 0 || device >= n)
        return err_set(e, ERR_USAGE, "GPU %d not found; this machine has %d, counted from 0", device, n),
               nullptr;
    struct cuda *c = new cuda();
    cudaDeviceProp p = {};
    c->device = device;
    if (check_device(c, open_device(c, &p), &p, e)) {
        if (c->stream)
            cudaStreamDestroy(c->stream);
        delete c;
        return nullptr;
    }
    const bool f8_cores = p.major > 8 || (p.major == 8 && p.minor >= 9);
    c->managed = getenv("HOLORUN_CUDA_MANAGED") != nullptr;
    if (c->managed && c->processors > FEW_PROCESSORS)
        c->processors = FEW_PROCESSORS;
    memory_open(c);
    graphs_open(c);
    fill(&c->ops);
    if (!f8_cores)
        c->ops.round_activations = nullptr;
    struct backend *b = static_cast<struct backend *>(xcalloc(1, sizeof *b));
    b->ops = &c->ops;
    b->pool = pool;
    b->prompt_rows = PROMPT_ROWS;
    b->picture_tiles = PICTURE_TILES;
    b->priv = c;
    return b;
}
