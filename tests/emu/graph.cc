/* graph.cc - what is given to a stream: launches and copies, run at once or recorded in a graph. */
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace
{

struct node {
    const void *kernel; /* NULL: something else */
    dim3 grid, block;
    size_t shared;
    std::function<void()> call;
};

struct known_kernel {
    std::string name;
    emu::binder bind;
};

std::map<const void *, known_kernel> &kernels()
{
    static std::map<const void *, known_kernel> all;
    return all;
}

} // namespace

struct emu_graph {
    std::vector<node> nodes;
};

namespace
{

emu_graph *recording;
cudaGraphNode_t last_node;

[[noreturn]] void fail(const char *what)
{
    fprintf(stderr, "stream: %s\n", what);
    abort();
}

cudaGraphNode_t numbered(size_t n)
{
    return reinterpret_cast<cudaGraphNode_t>(n);
}

void run(const node &n)
{
    if (n.kernel)
        emu::run(kernels()[n.kernel].name.c_str(), n.grid, n.block, n.shared, n.call);
    else
        n.call();
}

void submit(const node &n)
{
    if (!recording)
        return run(n);
    recording->nodes.push_back(n);
    last_node = numbered(recording->nodes.size());
}

node make_node(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared)
{
    auto k = kernels().find(kernel);
    if (k == kernels().end())
        fail("a kernel that nobody knows");
    return node{kernel, grid, block, shared, k->second.bind(args)};
}

} // namespace

namespace emu
{

void remember(const void *kernel, const char *name, const binder &bind)
{
    if (!kernels().count(kernel))
        kernels()[kernel] = {name, bind};
}

void enqueue(const std::function<void()> &what)
{
    submit(node{nullptr, dim3(), dim3(), 0, what});
}

} // namespace emu

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t)
{
    submit(make_node(kernel, grid, block, args, shared));
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind, cudaStream_t)
{
    emu::enqueue([=] { memmove(to, from, n); });
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t rows, cudaMemcpyKind, cudaStream_t)
{
    emu::enqueue([=] {
        for (size_t i = 0; i < rows; i++)
            memmove(static_cast<char *>(to) + i * to_pitch, static_cast<const char *>(from) + i * from_pitch,
                    width);
    });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t)
{
    emu::enqueue([=] { memset(p, v, n); });
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    if (recording)
        fail("waiting for a stream that is being recorded");
    return cudaSuccess;
}

/* ---- graphs ------------------------------------------------------------------------------------------------ */

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    if (recording)
        fail("two recordings at once");
    recording = new emu_graph();
    last_node = nullptr;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    if (!recording)
        fail("no recording to end");
    *graph = recording;
    recording = nullptr;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus *status, unsigned long long *,
                                     cudaGraph_t *, const cudaGraphNode_t **last, const cudaGraphEdgeData **,
                                     size_t *n)
{
    *status = recording ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    *last = &last_node;
    *n = last_node != nullptr;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new emu_graph(*graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t which,
                                             const cudaKernelNodeParams *p)
{
    size_t i = reinterpret_cast<size_t>(which);
    if (i < 1 || i > exec->nodes.size() || exec->nodes[i - 1].kernel != p->func)
        fail("arguments for a node that is not this kernel");
    exec->nodes[i - 1] = make_node(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t)
{
    if (recording)
        fail("a graph within a recording");
    for (const node &n : exec->nodes)
        run(n);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
