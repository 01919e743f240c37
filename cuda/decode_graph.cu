/* decode_graph.cu - decode steps as CUDA graphs: a single launch starts all kernels of a step.
 *
 * Decoding one token takes about 300 small kernels, which are the same in each step. Starting each of them
 * costs time on the host and leaves a gap on the GPU. The operations between graph_begin(key) and
 * graph_end are therefore processed as follows:
 *
 *     first time       run normally: libraries select kernels, working memory grows to its final size
 *     second time      recorded: nothing runs, and the launches become the nodes of a graph
 *     from then on     compared: nothing is launched. If arguments or grid differ from the record (sizes,
 *                      addresses of states), the node is updated. graph_end launches the graph.
 *
 * The operations therefore do not need to know about graphs, and results do not depend on how kernels are
 * started. If a kernel differs from the recorded one at its position, the launches compared so far are
 * issued from the record and the others normally, and the next time records again. If the driver records a
 * step as anything else than a linear sequence of nodes (a library may fork, or add edges of its own), the
 * step runs without a graph, now and in the future. */
#include "host.cuh"

#include <string.h>
#include <vector>

namespace
{

struct entry {
    const void *kernel; /* NULL: not a kernel; `values` identifies it */
    dim3 grid, block;
    size_t shared;
    bool overlap;
    std::vector<unsigned char> values;
    std::vector<size_t> offsets; /* offsets of the arguments in `values` */
    cudaGraphNode_t node;
    std::function<void()> other;
};

struct record {
    uint64_t key, used;
    bool warm;         /* has run once */
    bool plain;        /* cannot be recorded */
    cudaGraph_t graph; /* kept because the nodes of exec are referred to by its handles */
    cudaGraphExec_t exec;
    std::vector<entry> entries;
};

enum mode { OUTSIDE, WARMING, RECORDING, COMPARING };
enum { MOST_RECORDS = 64 };

} // namespace

struct graphs {
    enum mode mode;
    size_t at; /* index of the next entry */
    uint64_t clock;
    record *now;
    std::vector<record *> records;
};

/* ---- records ------------------------------------------------------------------------------------------- */

static void forget(record *r)
{
    if (r->exec) {
        CUDA(cudaGraphExecDestroy(r->exec));
        CUDA(cudaGraphDestroy(r->graph));
    }
    r->exec = nullptr;
    r->graph = nullptr;
    r->entries.clear();
}

static record *find(struct graphs *s, uint64_t key)
{
    size_t oldest = 0;
    for (size_t i = 0; i < s->records.size(); i++) {
        if (s->records[i]->key == key)
            return s->records[i];
        if (s->records[i]->used < s->records[oldest]->used)
            oldest = i;
    }
    if (s->records.size() == MOST_RECORDS) {
        forget(s->records[oldest]);
        delete s->records[oldest];
        s->records.erase(s->records.begin() + static_cast<ptrdiff_t>(oldest));
    }
    s->records.push_back(new record{key, 0, false, false, nullptr, nullptr, {}});
    return s->records.back();
}

static void **pointers(entry *e, std::vector<void *> *room)
{
    room->clear();
    for (size_t offset : e->offsets)
        room->push_back(e->values.data() + offset);
    return room->data();
}

/* Starts a kernel. If the driver rejects overlapping kernels, disables them for all later launches. */
static void start(struct cuda *c, const struct launch *l)
{
    if (l->overlap && c->overlap) {
        cudaLaunchAttribute early = {};
        early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        early.val.programmaticStreamSerializationAllowed = 1;
        cudaLaunchConfig_t how = {};
        how.gridDim = l->grid, how.blockDim = l->block;
        how.dynamicSmemBytes = l->shared;
        how.stream = c->stream;
        how.attrs = &early, how.numAttrs = 1;
        cudaError_t error = cudaLaunchKernelExC(&how, l->kernel, l->args);
        if (error != cudaErrorNotSupported && error != cudaErrorInvalidValue) {
            CUDA(error);
            return;
        }
        cudaGetLastError();
        c->overlap = false;
    }
    CUDA(cudaLaunchKernel(l->kernel, l->grid, l->block, l->args, l->shared, c->stream));
}

static void run(struct cuda *c, entry *e)
{
    std::vector<void *> room;
    if (e->kernel) {
        const struct launch l = {e->kernel, e->grid, e->block, e->shared, pointers(e, &room),
                                 nullptr,   0,       0,        e->overlap};
        start(c, &l);
    } else
        e->other();
}

/* ---- one launch ---------------------------------------------------------------------------------------- */

/* Handles a launch that differs from the record: issues the launches that were compared so far. The others
 * of this step run normally. */
static void leave(struct cuda *c)
{
    struct graphs *s = c->graphs;
    s->mode = WARMING;
    for (size_t i = 0; i < s->at; i++)
        run(c, &s->now->entries[i]);
    forget(s->now);
}

/* Ends and discards a recording. */
static void stop_recording(struct cuda *c)
{
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(c->stream, &graph) == cudaSuccess && graph)
        cudaGraphDestroy(graph);
    cudaGetLastError(); /* clears the error: a broken recording is expected here */
}

/* Runs the recorded launches and the others normally, now and for later steps of this key. Before giving
 * up for good, one more recording is made without overlapping kernels. */
static void run_plainly(struct cuda *c)
{
    struct graphs *s = c->graphs;
    s->mode = WARMING;
    s->now->plain = !c->overlap; /* overlapping kernels may be the cause, so try once without */
    c->overlap = false;
    for (entry &e : s->now->entries)
        run(c, &e);
    forget(s->now);
}

/* Returns whether the recording is a linear sequence, with the node recorded last in *node. */
static bool recorded_last(struct cuda *c, cudaGraphNode_t *node)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *last = nullptr;
    size_t n = 0;
#if defined CUDART_VERSION && CUDART_VERSION >= 12030 && CUDART_VERSION < 13000
    const cudaGraphEdgeData *edges = nullptr;
    cudaError_t error = cudaStreamGetCaptureInfo_v3(c->stream, &status, nullptr, nullptr, &last, &edges, &n);
#elif defined CUDART_VERSION && CUDART_VERSION < 13000
    cudaError_t error = cudaStreamGetCaptureInfo_v2(c->stream, &status, nullptr, nullptr, &last, &n);
#else
    const cudaGraphEdgeData *edges =
        nullptr; /* must be requested: without it, other than default edges are an error */
    cudaError_t error = cudaStreamGetCaptureInfo(c->stream, &status, nullptr, nullptr, &last, &edges, &n);
#endif
    if (error != cudaSuccess || status != cudaStreamCaptureStatusActive || n != 1)
        return false;
    *node = last[0];
    return true;
}

static void note(struct cuda *c, entry e)
{
    bool known = recorded_last(c, &e.node);
    c->graphs->now->entries.push_back(std::move(e));
    if (known)
        return;
    stop_recording(c);
    run_plainly(c);
}

/* Instantiates a graph from the recording. Returns false if that is not possible. */
static bool make_graph(struct cuda *c)
{
    record *r = c->graphs->now;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamEndCapture(c->stream, &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&r->exec, graph, 0);
    if (error == cudaSuccess) {
        r->graph = graph;
        return true;
    }
    cudaGetLastError();
    r->exec = nullptr;
    if (graph)
        cudaGraphDestroy(graph);
    return false;
}

static bool same(dim3 a, dim3 b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

static bool same_values(const entry &e, const void *values, size_t bytes)
{
    return e.values.size() == bytes && !memcmp(e.values.data(), values, bytes);
}

/* Updates the node if the launch changed. Most launches have the same arguments as in the previous step;
 * nothing is copied for them, since the GPU is idle during this time. */
static void compare(struct cuda *c, entry *e, const struct launch *now)
{
    bool equal = same(e->grid, now->grid) && same(e->block, now->block) && e->shared == now->shared &&
                 same_values(*e, now->values, now->bytes);
    if (equal)
        return;
    e->grid = now->grid, e->block = now->block, e->shared = now->shared;
    memcpy(e->values.data(), now->values, now->bytes); /* the kernel is the same, so the size is too */
    std::vector<void *> room;
    cudaKernelNodeParams p = {};
    p.func = const_cast<void *>(e->kernel);
    p.gridDim = e->grid, p.blockDim = e->block;
    p.sharedMemBytes = static_cast<unsigned>(e->shared);
    p.kernelParams = pointers(e, &room);
    CUDA(cudaGraphExecKernelNodeSetParams(c->graphs->now->exec, e->node, &p));
}

static entry entry_of(const struct launch *l)
{
    const unsigned char *base = static_cast<const unsigned char *>(l->values);
    entry e = {l->kernel, l->grid, l->block, l->shared, l->overlap, {base, base + l->bytes},
               {},        nullptr, nullptr};
    for (size_t i = 0; i < l->n; i++)
        e.offsets.push_back(static_cast<size_t>(static_cast<unsigned char *>(l->args[i]) - base));
    return e;
}

void cuda_start(struct cuda *c, const struct launch *l)
{
    struct graphs *s = c->graphs;
    c->after_product = false;
    if (s->mode == OUTSIDE || s->mode == WARMING) {
        start(c, l);
        return;
    }
    if (s->mode == COMPARING) {
        if (s->at < s->now->entries.size() && s->now->entries[s->at].kernel == l->kernel) {
            compare(c, &s->now->entries[s->at++], l);
            return;
        }
        leave(c);
    }
    start(c, l);
    if (s->mode == RECORDING)
        note(c, entry_of(l));
}

void cuda_also(struct cuda *c, const void *what, size_t bytes, const std::function<void()> &other)
{
    struct graphs *s = c->graphs;
    const unsigned char *base = static_cast<const unsigned char *>(what);
    c->after_product = false;
    if (s->mode == COMPARING) {
        if (s->at < s->now->entries.size() && !s->now->entries[s->at].kernel &&
            same_values(s->now->entries[s->at], what, bytes)) {
            s->now->entries[s->at++].other = other;
            return;
        }
        leave(c);
    }
    other();
    if (s->mode == RECORDING)
        note(c, entry{nullptr, dim3(), dim3(), 0, false, {base, base + bytes}, {}, nullptr, other});
}

bool cuda_recording(const struct cuda *c)
{
    return c->graphs->mode == RECORDING || c->graphs->mode == COMPARING;
}

/* ---- steps ----------------------------------------------------------------------------------------- */

static void graph_begin(struct backend *b, uint64_t key)
{
    struct cuda *c = cuda_of(b);
    struct graphs *s = c->graphs;
    if (s->mode != OUTSIDE)
        bug("a graph within a graph");
    s->now = find(s, key);
    s->now->used = ++s->clock;
    s->at = 0;
    s->mode = s->now->exec ? COMPARING : s->now->warm && !s->now->plain ? RECORDING : WARMING;
    if (s->mode == RECORDING)
        CUDA(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeRelaxed));
}

static void graph_end(struct backend *b)
{
    struct cuda *c = cuda_of(b);
    struct graphs *s = c->graphs;
    if (s->mode == OUTSIDE)
        bug("the end of a graph that did not begin");
    if (s->mode == COMPARING && s->at < s->now->entries.size())
        leave(c);
    if (s->mode == RECORDING && !make_graph(c))
        run_plainly(c);
    if (s->mode != WARMING)
        CUDA(cudaGraphLaunch(s->now->exec, c->stream));
    s->now->warm = true;
    s->mode = OUTSIDE;
    CHECK_STARTED(b);
}

__global__ void nothing()
{
}

/* Returns whether this program's kernels were compiled for an architecture with overlap; kernels for older
 * ones do not wait. */
static bool kernels_wait()
{
    cudaFuncAttributes a = {};
    enum { FIRST = 90 /* sm_90 */ };
#ifdef CUDA_EMULATED
    emu::known(nothing, "nothing");
#endif
    bool known = cudaFuncGetAttributes(&a, reinterpret_cast<const void *>(nothing)) == cudaSuccess;
    cudaGetLastError();
    return known && a.ptxVersion >= FIRST && a.binaryVersion >= FIRST;
}

void graphs_open(struct cuda *c)
{
    c->graphs = new graphs();
    c->overlap = !c->managed && kernels_wait();
}

void graphs_stop(struct cuda *c)
{
    if (c->graphs->mode == RECORDING)
        stop_recording(c);
    c->graphs->mode = OUTSIDE;
}

void graphs_close(struct cuda *c)
{
    for (record *r : c->graphs->records) {
        forget(r);
        delete r;
    }
    delete c->graphs;
}

void graph_fill(struct ops *o)
{
    o->graph_begin = graph_begin;
    o->graph_end = graph_end;
}
