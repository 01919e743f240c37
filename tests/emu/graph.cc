/* graph.cc - launches and copies in a stream, run immediately or captured in a graph. */
#include "card.h"
#include "emu.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace
{

struct node {
    const void *kernel; /* NULL: not a kernel */
    dim3 grid, block;
    size_t shared;
    bool overlap;
    std::function<void()> other;
    emu::call call;
    size_t number; /* its handle */
};

struct known_kernel {
    std::string name;
    emu::binder bind;
};

/* Dynamic shared memory granted by cudaFuncSetAttribute, by kernel. */
std::map<const void *, size_t> &allowed()
{
    static std::map<const void *, size_t> all;
    return all;
}

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

enum { SHARED_FOR_ALL = 48 << 10 };

emu_graph *recording;
cudaGraphNode_t last_node;
std::set<size_t> nodes_alive; /* nodes of graphs that still exist */
size_t nodes_made;

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
        emu::run(kernels()[n.kernel].name.c_str(), n.grid, n.block, n.shared, allowed()[n.kernel], n.overlap,
                 n.call);
    else
        n.other();
}

/* Queued work (emu_card.late), and the number of work items that have run. */
std::deque<node> waiting;
size_t finished;

void drain_to(size_t n)
{
    for (; finished < n && !waiting.empty(); finished++) {
        node next = std::move(waiting.front());
        waiting.pop_front();
        run(next);
    }
}

void run_or_wait(const node &n)
{
    if (emu_card.late) {
        waiting.push_back(n);
        return;
    }
    emu::drain();
    run(n);
    finished++;
}

void submit(const node &n)
{
    if (!recording) {
        emu_card.singles += n.kernel != nullptr;
        return run_or_wait(n);
    }
    recording->nodes.push_back(n);
    recording->nodes.back().number = ++nodes_made;
    nodes_alive.insert(nodes_made);
    last_node = numbered(nodes_made);
}

node make_node(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, bool overlap)
{
    auto k = kernels().find(kernel);
    if (k == kernels().end())
        fail("a kernel that nobody knows");
    if (shared > SHARED_FOR_ALL && allowed()[kernel] < shared) {
        fprintf(stderr, "kernel %s: more shared memory than it was allowed\n", k->second.name.c_str());
        abort();
    }
    return node{kernel, grid, block, shared, overlap, nullptr, k->second.bind(args), 0};
}

} // namespace

namespace emu
{

void remember(const void *kernel, const char *name, const binder &bind)
{
    if (!kernels().count(kernel))
        kernels()[kernel] = {name, bind};
}

void allow(const void *kernel, size_t shared)
{
    allowed()[kernel] = shared;
}

void drain()
{
    drain_to(SIZE_MAX);
}

void refuse_recording(const char *what)
{
    if (recording)
        fail(what);
}

cudaError_t launch()
{
    if (emu_card.launches && --emu_card.launches == 0)
        emu_card.error = emu_card.then;
    return broken();
}

void enqueue(const std::function<void()> &what)
{
    submit(node{nullptr, dim3(), dim3(), 0, false, what, {}, 0});
}

} // namespace emu

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream)
{
    emu::give_work(stream, "a launch");
    if (emu::launch() == cudaSuccess)
        submit(make_node(kernel, grid, block, args, shared, false));
    return emu::broken();
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
    a->ptxVersion = a->binaryVersion = 10 * emu_card.major;
    return emu::broken();
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *kernel, void **args)
{
    emu::give_work(how->stream, "a launch");
    bool overlap = how->numAttrs && how->attrs->val.programmaticStreamSerializationAllowed;
    if (overlap && !emu_card.overlaps)
        return cudaErrorNotSupported;
    emu_card.overlapped += overlap;
    if (emu::launch() == cudaSuccess)
        submit(make_node(kernel, how->gridDim, how->blockDim, args, how->dynamicSmemBytes, overlap));
    return emu::broken();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
    emu::give_work(stream, "a copy");
    emu::check_copy(to, from, n, kind);
    if (kind == cudaMemcpyHostToDevice && !emu::is_pinned(from) && !recording) { /* pageable: read now */
        auto read = std::make_shared<std::vector<char>>(static_cast<const char *>(from),
                                                        static_cast<const char *>(from) + n);
        emu::enqueue([=] { memcpy(to, read->data(), n); });
        return emu::broken();
    }
    emu::enqueue([=] { memmove(to, from, n); });
    if (kind == cudaMemcpyDeviceToHost && !emu::is_pinned(to) && !recording)
        emu::drain();
    return emu::broken();
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t stream)
{
    emu::give_work(stream, "a copy");
    emu::check_copy(to, from, width, kind);
    if (kind != cudaMemcpyDeviceToDevice)
        emu::drain(); /* as CUDA does with pageable host memory */
    emu::enqueue([=] {
        for (size_t i = 0; i < rows; i++)
            memmove(static_cast<char *>(to) + i * to_pitch, static_cast<const char *>(from) + i * from_pitch,
                    width);
    });
    if (kind != cudaMemcpyDeviceToDevice && !recording)
        emu::drain();
    return emu::broken();
}

cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t stream)
{
    emu::give_work(stream, "a fill");
    emu::check_copy(p, p, n, cudaMemcpyDeviceToDevice);
    emu::enqueue([=] { memset(p, v, n); });
    return emu::broken();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    emu::give_work(stream, "waiting");
    if (recording)
        fail("waiting for a stream that is being recorded");
    emu_card.syncs++;
    emu::drain();
    emu::watch_synced();
    return emu::broken();
}

/* ---- events ---------------------------------------------------------------------------------- */

struct emu_event {
    size_t at;   /* number of work items before it */
    bool timed;  /* the event is a work item that records the time */
    double time; /* library_time() at that point */
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    *e = new emu_event{0, !(flags & cudaEventDisableTiming), 0};
    return emu::broken();
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    return cudaEventCreateWithFlags(e, 0);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = static_cast<float>(end->time - begin->time);
    return emu::broken();
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return emu::broken();
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    emu::give_work(stream, "an event");
    emu::refuse_recording("an event is recorded while a graph is");
    if (e->timed)
        emu::enqueue([=] { e->time = emu::library_time(); });
    e->at = finished + waiting.size();
    return emu::broken();
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    emu::refuse_recording("waiting for an event while a graph is recorded");
    emu_card.syncs++;
    drain_to(e->at);
    if (waiting.empty() && finished == e->at)
        emu::watch_synced();
    return emu::broken();
}

/* ---- graphs ---------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    emu::give_work(stream, "a recording");
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
    if (emu_card.odd && --emu_card.odd == 0)
        *n = 2; /* two leaf nodes, as after a fork */
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
    size_t number = reinterpret_cast<size_t>(which);
    emu_card.updated++;
    if (!nodes_alive.count(number))
        fail("arguments for a node of a graph that was destroyed");
    for (node &n : exec->nodes)
        if (n.number == number && n.kernel == p->func) {
            n = make_node(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, n.overlap);
            n.number = number;
            return cudaSuccess;
        }
    fail("arguments for a node that is not this kernel");
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    emu::give_work(stream, "a graph");
    if (recording)
        fail("a graph within a recording");
    emu_card.graphs++;
    for (const node &n : exec->nodes)
        if (emu::launch() == cudaSuccess)
            run_or_wait(n);
    return emu::broken();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    for (const node &n : graph->nodes)
        nodes_alive.erase(n.number);
    delete graph;
    return cudaSuccess;
}
