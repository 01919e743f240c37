/* cublas.cu - matrix products by cuBLASLt, which is loaded on first use so that the program starts without
 * it.
 *
 * The few types, values and functions used are declared here; they have not changed since version 11. The
 * library's matrices are column-major, so that a row-major matrix is its transpose there: W [N, K] is K x
 * N with its stride as leading dimension, x is K x T, and y is N x T = W^T x.
 *
 * The library's heuristic proposes kernels in order of expected speed, but its first choice is the fastest
 * one for most shapes only. The first product of a shape therefore times eight of them. The fastest is
 * used for all shapes with a similar number of rows until the process ends, so that equal products give
 * equal bits. Nothing can be timed while a graph is recorded; the first proposal is used then. */
#include "linear.cuh"

#ifdef CUDA_EMULATED
#include "emu.h"
#else
#include <dlfcn.h>
#endif
#include <map>
#include <stdio.h>
#include <string.h>

/* ---- interface of the library ---------------------------------------------------------------------- */

enum { CUDA_R_32F_ = 0, CUDA_R_16BF_ = 14, CUDA_R_8F_E4M3_ = 28, COMPUTE_32F = 68, OP_T = 1 };
enum { DESC_TRANSA = 3, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8, EPILOGUE_BIAS = 4 };
enum { PREF_MAX_WORKSPACE_BYTES = 1, PREF_MIN_ALIGNMENT_A_BYTES = 5, PREF_MIN_ALIGNMENT_D_BYTES = 8 };

typedef void *handle;

struct algorithm {
    uint64_t data[8];
};

struct heuristic {
    struct algorithm algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

struct functions {
    int (*Create)(handle *);
    int (*Destroy)(handle);
    int (*MatmulDescCreate)(handle *, int compute, int scale);
    int (*MatmulDescSetAttribute)(handle, int attribute, const void *value, size_t bytes);
    int (*MatrixLayoutCreate)(handle *, int type, uint64_t rows, uint64_t cols, int64_t leading);
    int (*MatrixLayoutDestroy)(handle);
    int (*MatmulPreferenceCreate)(handle *);
    int (*MatmulPreferenceSetAttribute)(handle, int attribute, const void *value, size_t bytes);
    int (*MatmulAlgoGetHeuristic)(handle, handle desc, handle a, handle b, handle c, handle d, handle pref,
                                  int wanted, struct heuristic *out, int *found);
    int (*MatmulAlgoCheck)(handle, handle desc, handle a, handle b, handle c, handle d,
                           const struct algorithm *algo, struct heuristic *out);
    int (*Matmul)(handle, handle desc, const void *alpha, const void *a, handle a_layout, const void *b,
                  handle b_layout, const void *beta, const void *c, handle c_layout, void *d, handle d_layout,
                  const struct algorithm *algo, void *workspace, size_t bytes, cudaStream_t stream);
};

/* ---- opening ------------------------------------------------------------------------------------------- */

enum { MOST_PLANS = 4096, PROPOSED = 8, RUNS = 3 /* RUNS: timed runs, after one untimed run */ };

/* T, N, K; strides of y, x, w; types of y and w; whether y is added to; whether there is a bias */
typedef std::array<int64_t, 10> shape;

struct plan {
    handle y, x, w;
    struct algorithm algo;
    size_t workspace;
};

struct cublas {
    struct functions f;
    handle library, desc, desc_bias, preference;
    void *workspace;
    std::map<shape, plan> plans;
    std::map<shape, algorithm> fastest; /* indexed by shapes with rounded T, see neighbours() */
    cudaEvent_t begin, end;
};

static void check(int status, const char *what)
{
    if (status != 0)
        die(ERR_ENV,
            "GPU: cuBLASLt failed with status %d (%s): check the GPU with nvidia-smi, or use --device cpu",
            status, what);
}

static void *symbol(void *library, const char *name)
{
#ifdef CUDA_EMULATED
    return emu::cublaslt(name);
#else
    return dlsym(library, name);
#endif
}

template <class F> static void find(void *library, const char *name, F *f)
{
    char whole[64];
    snprintf(whole, sizeof whole, "cublasLt%s", name);
    void *p = symbol(library, whole);
    if (!p)
        die(ERR_ENV, "GPU: libcublasLt lacks %s: install the library of CUDA 12 or 13", whole);
    memcpy(f, &p, sizeof p);
}

#ifdef CUDA_EMULATED
static void *open_library()
{
    return emu_card.library ? &emu_card : nullptr;
}
#else
/* Returns the handle of the library, NULL if there is none. A library for a newer CUDA version than the
 * driver's can be loaded but does not work, so it is not used. */
static void *open_library()
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    int driver = 0;
    cudaDriverGetVersion(&driver);
    for (const char *name : names) {
        if (name == names[0] && driver < 13000)
            continue;
        void *p = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (p)
            return p;
    }
    return nullptr;
}
#endif

bool cublas_here()
{
    return open_library() != nullptr;
}

struct cublas *cublas_open()
{
    void *l = open_library();
    if (!l)
        die(ERR_ENV, "GPU: %s", cublas_missing);
    struct cublas *c = new cublas();
    struct functions *f = &c->f;
    find(l, "Create", &f->Create);
    find(l, "Destroy", &f->Destroy);
    find(l, "MatmulDescCreate", &f->MatmulDescCreate);
    find(l, "MatmulDescSetAttribute", &f->MatmulDescSetAttribute);
    find(l, "MatrixLayoutCreate", &f->MatrixLayoutCreate);
    find(l, "MatrixLayoutDestroy", &f->MatrixLayoutDestroy);
    find(l, "MatmulPreferenceCreate", &f->MatmulPreferenceCreate);
    find(l, "MatmulPreferenceSetAttribute", &f->MatmulPreferenceSetAttribute);
    find(l, "MatmulAlgoGetHeuristic", &f->MatmulAlgoGetHeuristic);
    find(l, "MatmulAlgoCheck", &f->MatmulAlgoCheck);
    find(l, "Matmul", &f->Matmul);
    check(f->Create(&c->library), "opening");
    const int transposed = OP_T, epilogue = EPILOGUE_BIAS;
    for (handle *desc : {&c->desc, &c->desc_bias}) {
        check(f->MatmulDescCreate(desc, COMPUTE_32F, CUDA_R_32F_), "a product");
        check(f->MatmulDescSetAttribute(*desc, DESC_TRANSA, &transposed, sizeof transposed), "a product");
    }
    check(f->MatmulDescSetAttribute(c->desc_bias, DESC_EPILOGUE, &epilogue, sizeof epilogue), "a bias");
    CUDA(cudaEventCreate(&c->begin));
    CUDA(cudaEventCreate(&c->end));
    const size_t room = cuda_work_parts()->library;
    CUDA(cudaMalloc(&c->workspace, room));
    const uint32_t alignment = 16;
    check(f->MatmulPreferenceCreate(&c->preference), "a preference");
    check(f->MatmulPreferenceSetAttribute(c->preference, PREF_MAX_WORKSPACE_BYTES, &room, sizeof room),
          "room");
    for (int a = PREF_MIN_ALIGNMENT_A_BYTES; a <= PREF_MIN_ALIGNMENT_D_BYTES; a++)
        check(f->MatmulPreferenceSetAttribute(c->preference, a, &alignment, sizeof alignment), "alignment");
    return c;
}

static void drop_plans(struct cublas *c)
{
    for (auto &p : c->plans) {
        c->f.MatrixLayoutDestroy(p.second.y);
        c->f.MatrixLayoutDestroy(p.second.x);
        c->f.MatrixLayoutDestroy(p.second.w);
    }
    c->plans.clear();
}

void cublas_close(struct cublas *c)
{
    if (!c)
        return;
    drop_plans(c);
    c->f.Destroy(c->library); /* the handle of dlopen stays open until the process ends */
    cudaEventDestroy(c->begin);
    cudaEventDestroy(c->end);
    cudaFree(c->workspace);
    delete c;
}

/* ---- descriptions of products ---------------------------------------------------------------------- */

static handle layout(struct cublas *c, struct tensor t)
{
    handle h;
    int type = t.dtype == DT_F32 ? CUDA_R_32F_ : t.dtype == DT_F8E4M3 ? CUDA_R_8F_E4M3_ : CUDA_R_16BF_;
    check(c->f.MatrixLayoutCreate(&h, type, static_cast<uint64_t>(t.cols), static_cast<uint64_t>(t.rows),
                                  t.stride),
          "a matrix");
    return h;
}

/* A product in the terms of the library. */
struct call {
    struct cublas *c;
    struct tensor y, x, w;
    float factor;
    const void *bias;
    enum accumulate mode;
};

static handle desc_of(const struct call *p)
{
    const struct cublas *c = p->c;
    if (!p->bias)
        return c->desc;
    check(c->f.MatmulDescSetAttribute(c->desc_bias, DESC_BIAS_POINTER, &p->bias, sizeof p->bias), "a bias");
    return c->desc_bias;
}

/* Runs a product. The result is written to `to`, which is y except while timing. */
static int multiply(const struct call *p, const struct plan *plan, const struct algorithm *a,
                    size_t workspace, void *to, cudaStream_t stream)
{
    const struct cublas *c = p->c;
    const float beta = p->mode == ADD ? 1.0f : 0.0f;
    return c->f.Matmul(c->library, desc_of(p), &p->factor, p->w.data, plan->w, p->x.data, plan->x, &beta,
                       p->y.data, plan->y, to, plan->y, a, c->workspace, workspace, stream);
}

/* ---- the fastest kernel of a shape --------------------------------------------------------------------- */

/* Returns the key of all shapes that share one kernel: the row count is rounded up to a multiple of 16, or
 * of 256 for many rows. */
static shape neighbours(shape s)
{
    int64_t unit = s[0] <= 128 ? 16 : 256;
    s[0] = (s[0] + unit - 1) / unit * unit;
    return s;
}

/* Returns the milliseconds of RUNS runs; negative if the kernel rejects the shape. */
static float take_time(struct backend *b, const struct call *p, const struct plan *plan,
                       const struct heuristic *h, void *to)
{
    const struct cublas *c = p->c;
    cudaStream_t stream = cuda_of(b)->stream;
    float ms = 0;
    if (multiply(p, plan, &h->algo, h->workspace, to, stream))
        return -1;
    CUDA(cudaEventRecord(c->begin, stream));
    for (int i = 0; i < RUNS; i++)
        check(multiply(p, plan, &h->algo, h->workspace, to, stream), "a product");
    CUDA(cudaEventRecord(c->end, stream));
    CUDA(cudaEventSynchronize(c->end));
    CUDA(cudaEventElapsedTime(&ms, c->begin, c->end));
    return ms;
}

/* Returns the index of the fastest of n proposals. Returns the first one if timing is not possible, or if
 * memory for the discarded results cannot be allocated. */
static int choose(struct backend *b, const struct call *p, const struct plan *plan, const struct heuristic *h,
                  int n)
{
    void *to = p->y.data;
    int best = 0;
    float least_ms = -1;
    size_t bytes = static_cast<size_t>(p->y.rows * p->y.stride) * dtype_size(p->y.dtype);
    if (n == 1 || cuda_recording(cuda_of(b)))
        return 0;
    if (p->mode == ADD && !(to = cuda_try_memory(b, bytes, nullptr))) /* timing must not add to y
                                                                       * repeatedly */
        return 0;
    for (int i = 0; i < n; i++) {
        float ms = h[i].state ? -1 : take_time(b, p, plan, &h[i], to);
        if (ms >= 0 && (least_ms < 0 || ms < least_ms)) {
            best = i;
            least_ms = ms;
        }
    }
    if (to != p->y.data)
        CUDA(cudaFree(to));
    return best;
}

static struct heuristic propose(struct backend *b, const struct call *p, const struct plan *plan)
{
    struct cublas *c = p->c;
    struct heuristic h[PROPOSED] = {};
    int found = 0, status = c->f.MatmulAlgoGetHeuristic(c->library, desc_of(p), plan->w, plan->x, plan->y,
                                                        plan->y, c->preference, PROPOSED, h, &found);
    if (status != 0 || found == 0 || h[0].state != 0)
        die(ERR_ENV,
            "GPU: cuBLASLt has no product of %lldx%lldx%lld for this GPU (status %d): install a newer "
            "cuBLAS, or use --device cpu",
            (long long)p->y.rows, (long long)p->y.cols, (long long)p->x.cols, status ? status : h[0].state);
    return h[choose(b, p, plan, h, found)];
}

/* ---- products ------------------------------------------------------------------------------------------ */

/* Selects the fastest kernel of the neighbouring row counts. If it rejects this shape, uses the library's
 * proposal. */
static void set_algorithm(struct backend *b, const struct call *p, const shape &s, struct plan *plan)
{
    struct cublas *c = p->c;
    struct heuristic h = {};
    auto known = c->fastest.find(neighbours(s));
    bool serves = known != c->fastest.end() &&
                  c->f.MatmulAlgoCheck(c->library, desc_of(p), plan->w, plan->x, plan->y, plan->y,
                                       &known->second, &h) == 0 &&
                  h.state == 0 && h.workspace <= cuda_work_parts()->library;
    if (serves)
        h.algo = known->second;
    else
        h = propose(b, p, plan);
    if (known == c->fastest.end())
        c->fastest[neighbours(s)] = h.algo;
    plan->algo = h.algo;
    plan->workspace = h.workspace;
}

/* Returns the plan of a product, cached. A graph under construction may still use earlier plans, so none
 * are evicted during that time. */
static const struct plan *plan_for(struct backend *b, const struct call *p)
{
    struct cublas *c = p->c;
    const shape s = {p->y.rows,   p->y.cols,  p->x.cols,  p->y.stride, p->x.stride,
                     p->w.stride, p->y.dtype, p->w.dtype, p->mode,     p->bias != nullptr};
    auto known = c->plans.find(s);
    if (known != c->plans.end())
        return &known->second;
    if (c->plans.size() >= MOST_PLANS && !cuda_recording(cuda_of(b)))
        drop_plans(c);
    struct plan plan = {};
    plan.y = layout(c, p->y);
    plan.x = layout(c, p->x);
    plan.w = layout(c, p->w);
    set_algorithm(b, p, s, &plan);
    return &(c->plans[s] = plan);
}

void gemm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float factor,
          const void *bias, enum accumulate mode)
{
    struct cublas *&at = products_of(b)->cublas, *c = at ? at : (at = cublas_open());
    const struct call p = {c, y, x, w, factor, bias, mode};
    const struct plan *plan = plan_for(b, &p);
    const struct {
        std::array<int64_t, 5> y, x, w;
        const void *bias;
        double factor;
        int64_t mode;
    } what = {key_of(y), key_of(x), key_of(w), bias, factor, mode};
    cudaStream_t stream = cuda_of(b)->stream;
    cuda_also(cuda_of(b), &what, sizeof what,
              [=] { check(multiply(&p, plan, &plan->algo, plan->workspace, y.data, stream), "a product"); });
    CHECK_STARTED(b);
}
