/* cublas.cu - cuBLASLt, opened on first use, so that the program starts where it is not installed.
 *
 * The few types, values and functions used are declared here; they have not changed since version 11.
 * Row-major matrices are its column-major ones transposed: W [N, K] is K x N with its stride as leading
 * dimension, x is K x T, and y N x T = W^T x.  The library's heuristic picks a kernel once for each shape.
 */
#include "linear.cuh"

#include <array>
#include <string.h>

/* Identifies a product in a graph. */
static std::array<int64_t, 11> product_key(struct tensor y, struct tensor x, struct tensor w, float factor,
                                           enum accumulate mode)
{
    int64_t scale = 0;
    memcpy(&scale, &factor, sizeof factor);
    return {reinterpret_cast<intptr_t>(y.data),
            reinterpret_cast<intptr_t>(x.data),
            reinterpret_cast<intptr_t>(w.data),
            y.rows,
            y.cols,
            x.cols,
            y.stride,
            x.stride,
            w.stride,
            scale,
            y.dtype * 2 + mode};
}

#ifdef CUDA_EMULATED

#include "emu.h"

/* Checks what the library was promised. */
static void check_aligned(struct tensor t)
{
    size_t row = static_cast<size_t>(t.stride) * dtype_size(t.dtype);
    if (reinterpret_cast<uintptr_t>(t.data) % 16 || (t.rows > 1 && row % 16))
        bug("a matrix for the library whose rows do not begin at multiples of 16 bytes");
}

/* A matrix product on the host instead of the library's. */
static void multiply(struct tensor y, struct tensor x, struct tensor w, float factor, enum accumulate mode)
{
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t n = 0; n < y.cols; n++) {
            const bf16 *a = static_cast<bf16 *>(x.data) + t * x.stride,
                       *c = static_cast<bf16 *>(w.data) + n * w.stride;
            float sum = 0;
            for (int64_t k = 0; k < x.cols; k++)
                sum += number(a[k]) * number(c[k]);
            WITH_TYPE(Y, y.dtype, Y *at = static_cast<Y *>(y.data) + t * y.stride + n;
                      store(at, factor * sum + (mode == ADD ? number(*at) : 0.0f)));
        }
}

void gemm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float factor,
          enum accumulate mode)
{
    const std::array<int64_t, 11> what = product_key(y, x, w, factor, mode);
    check_aligned(y);
    check_aligned(x);
    check_aligned(w);
    cuda_also(cuda_of(b), what.data(), sizeof what,
              [=] { emu::enqueue([=] { multiply(y, x, w, factor, mode); }); });
}

struct cublas *cublas_open()
{
    return nullptr;
}

void cublas_close(struct cublas *c)
{
}

bool cublas_here()
{
    return emu_card.library;
}

#else

#include <dlfcn.h>
#include <map>
#include <stdio.h>

/* ---- its interface ------------------------------------------------------------------------------------- */

enum { CUDA_R_32F_ = 0, CUDA_R_16BF_ = 14, COMPUTE_32F = 68, OP_T = 1 };
enum { DESC_TRANSA = 3 };
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
    int (*Matmul)(handle, handle desc, const void *alpha, const void *a, handle a_layout, const void *b,
                  handle b_layout, const void *beta, const void *c, handle c_layout, void *d, handle d_layout,
                  const struct algorithm *algo, void *workspace, size_t bytes, cudaStream_t stream);
};

/* ---- opening ------------------------------------------------------------------------------------------- */

enum { MOST_PLANS = 4096 };

/* T, N, K, strides of y, x, w, type of y, whether it is added to */
typedef std::array<int64_t, 8> shape;

struct plan {
    handle y, x, w;
    struct algorithm algo;
    size_t workspace;
};

struct cublas {
    struct functions f;
    handle library, desc, preference;
    void *workspace;
    std::map<shape, plan> plans;
};

static void check(int status, const char *what)
{
    if (status != 0)
        die(ERR_ENV, "GPU: cuBLASLt answers %d (%s); see what 'nvidia-smi' says, or use --device cpu", status,
            what);
}

template <class F> static void find(void *library, const char *name, F *f)
{
    char whole[64];
    snprintf(whole, sizeof whole, "cublasLt%s", name);
    void *p = dlsym(library, whole);
    if (!p)
        die(ERR_ENV, "GPU: libcublasLt has no %s: install the one of CUDA 12 or 13", whole);
    memcpy(f, &p, sizeof p);
}

/* NULL where there is none.  A library for a newer CUDA than the driver's would open but not work. */
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
    find(l, "Matmul", &f->Matmul);
    check(f->Create(&c->library), "opening");
    const int transposed = OP_T;
    check(f->MatmulDescCreate(&c->desc, COMPUTE_32F, CUDA_R_32F_), "a product");
    check(f->MatmulDescSetAttribute(c->desc, DESC_TRANSA, &transposed, sizeof transposed), "a product");
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
    c->f.Destroy(c->library); /* the dlopen handle stays with the process */
    cudaFree(c->workspace);
    delete c;
}

/* ---- products ------------------------------------------------------------------------------------------ */

static handle layout(struct cublas *c, struct tensor t)
{
    handle h;
    int type = t.dtype == DT_F32 ? CUDA_R_32F_ : CUDA_R_16BF_;
    check(c->f.MatrixLayoutCreate(&h, type, static_cast<uint64_t>(t.cols), static_cast<uint64_t>(t.rows),
                                  t.stride),
          "a matrix");
    return h;
}

/* A graph under construction may still use earlier plans, so none are dropped then. */
static const struct plan *plan_for(struct backend *b, struct cublas *c, struct tensor y, struct tensor x,
                                   struct tensor w, enum accumulate mode)
{
    const shape s = {y.rows, y.cols, x.cols, y.stride, x.stride, w.stride, y.dtype, mode};
    auto known = c->plans.find(s);
    if (known != c->plans.end())
        return &known->second;
    if (c->plans.size() >= MOST_PLANS && !cuda_recording(cuda_of(b)))
        drop_plans(c);
    struct plan p = {};
    struct heuristic best = {};
    int found = 0;
    p.y = layout(c, y);
    p.x = layout(c, x);
    p.w = layout(c, w);
    int status =
        c->f.MatmulAlgoGetHeuristic(c->library, c->desc, p.w, p.x, p.y, p.y, c->preference, 1, &best, &found);
    if (status != 0 || found == 0 || best.state != 0)
        die(ERR_ENV,
            "GPU: cuBLASLt has no product of %lldx%lldx%lld for this card (it answers %d): install a newer "
            "one, or use --device cpu",
            (long long)s[0], (long long)s[1], (long long)s[2], status ? status : best.state);
    p.algo = best.algo;
    p.workspace = best.workspace;
    return &(c->plans[s] = p);
}

void gemm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float factor,
          enum accumulate mode)
{
    struct cublas *&at = products_of(b)->cublas, *c = at ? at : (at = cublas_open());
    const struct plan *p = plan_for(b, c, y, x, w, mode);
    const std::array<int64_t, 11> what = product_key(y, x, w, factor, mode);
    cudaStream_t stream = cuda_of(b)->stream;
    cuda_also(cuda_of(b), what.data(), sizeof what, [=] {
        const float beta = mode == ADD ? 1.0f : 0.0f;
        check(c->f.Matmul(c->library, c->desc, &factor, w.data, p->w, x.data, p->x, &beta, y.data, p->y,
                          y.data, p->y, &p->algo, c->workspace, p->workspace, stream),
              "a product");
    });
    CHECK_STARTED(b);
}

#endif
