/* linear.cu - weights on the device, and selection of the kernel for a matrix product.
 *
 * Products of few rows are limited by reading the weights and use our own kernels (matvec.cu). Products of
 * many rows are limited by the tensor cores and use cuBLASLt (cublas.cu). Of the epilogues, the library
 * can do sums and biases. Squares of bf16 outputs are defined on rounded values and therefore take a
 * second pass over y, which costs 4 bytes per element of y, compared with its 2 K operations. GELU also
 * takes this pass, because ours uses erf and the library's uses tanh; its argument is therefore rounded
 * once more than for few rows. The library adds biases that bf16 represents exactly, such as those of a
 * bf16 checkpoint. Other biases and row scales apply between the sum and its rounding. Those sums go
 * through f32 at 8 bytes each, in parts that fit into the cache of a large GPU.
 *
 * For many rows, quantized matrices are dequantized part by part (quantized.cu) and multiplied by the
 * library. Writing and reading bf16 costs 4 bytes per weight, as much as four more passes over 8-bit codes.
 * Up to FEW_ON_CODES rows, our kernels therefore make one pass for each 16 rows (computed, not measured).
 *
 * Products that cuBLASLt does not support (f32, unaligned rows) use our kernels for any number of rows.
 * The bits of a row are the same for any number of rows up to FEW or FEW_ON_CODES. Beyond that they depend
 * on the library's kernel for the shape. */
#include "blocks.cuh"
#include "linear.cuh"

#include <map>
#include <stdlib.h>

enum {
    FEW = 16,                /* maximum rows for our own kernels */
    FEW_ON_CODES = 64,       /* the same for quantized weights with kernels for tensor cores */
    MOST_DECODED = 128,      /* maximum rows of a decode step, whose products are also rounded before they are
                              * added to y, and computed without quantizing activations */
    STAGED_BYTES = 16 << 20, /* bytes of a matrix converted on the host at once */
    ALIGNED = 16 / 2         /* in bf16 elements */
};

struct biases {
    std::map<const void *, bool> exact; /* whether bf16 represents the bias exactly */
};

/* ---- weights ------------------------------------------------------------------------------------------- */

/* Uploads a matrix in parts, so that the conversion needs little memory. */
static struct weight *cuda_pack(struct backend *b, struct tensor host, enum dtype dtype)
{
    struct ops *o = &cuda_of(b)->ops;
    struct weight *w = new weight();
    w->rows = host.rows;
    w->cols = host.cols;
    w->stride = (host.cols + ALIGNED - 1) / ALIGNED * ALIGNED;
    w->plain = o->alloc(b, dtype, host.rows, w->stride);
    struct tensor there = tensor_cols(w->plain, 0, host.cols);
    int64_t part = STAGED_BYTES / 4 / (host.cols + 1) + 1;
    for (int64_t r = 0; r < host.rows; r += part) {
        int64_t n = least(host.rows - r, part);
        o->upload(b, tensor_rows(there, r, n), tensor_rows(host, r, n));
    }
    return w;
}

static void cuda_weight_free(struct backend *b, struct weight *w)
{
    CUDA(cudaFree(w->format == QUANT_NONE ? w->plain.data : w->bytes));
    delete w;
}

struct products *products_of(struct backend *b)
{
    struct cuda *c = cuda_of(b);
    if (!c->products)
        c->products = new products();
    return c->products;
}

void products_open(struct backend *b)
{
    struct products *p = products_of(b);
    if (!p->cublas)
        p->cublas = cublas_open();
}

void products_close(struct cuda *c)
{
    if (!c->products)
        return;
    cublas_close(c->products->cublas);
    tables_close(c->products->tables);
    delete c->products->biases;
    delete c->products;
}

/* ---- epilogues ------------------------------------------------------------------------------------- */

enum { EPILOGUE_THREADS = 256, EPILOGUE_EACH = 8 };

/* Applies scales, bias and epilogue to the sums of a row, eight adjacent columns per thread. */
template <class S, class Y>
__global__ void epilogue_pass(view<Y> y, view<const S> sums, const float *scales, const float *factors,
                              const float *bias, int epi, accumulate mode)
{
    const position at = my_position<EPILOGUE_EACH>(y.cols);
    int64_t c = at.column, n = y.cols - c;
    float factor = factors ? factors[at.row] : 1.0f, v[8], scale[8], more[8] = {}, old[8] = {};
    if (n <= 0)
        return;
    load_some(v, sums.row(at.row) + c, n);
    if (scales)
        load_some(scale, scales + c, n);
    if (bias)
        load_some(more, bias + c, n);
    if (mode == ADD)
        load_some(old, y.row(at.row) + c, n);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        v[i] = after_epilogue<Y>(v[i] * (scales ? scale[i] : 1.0f) * factor + more[i], epi);
        v[i] = mode == ADD ? old[i] + rounded<Y>(v[i]) : v[i];
    }
    store_some(y.row(at.row) + c, v, n);
}

void epilogue(struct backend *b, const struct product &p, struct tensor sums, const float *scales,
              const float *factors)
{
    dim3 grid = row_blocks(p.y.rows, p.y.cols, EPILOGUE_THREADS * EPILOGUE_EACH);
    WITH_TYPE(S, sums.dtype,
              WITH_TYPE(Y, p.y.dtype,
                        LAUNCH((epilogue_pass<S, Y>), grid, EPILOGUE_THREADS, 0, b, view_of<Y>(p.y),
                               view_of<const S>(sums), scales, factors, p.bias, (int)p.epi, p.mode)));
}

/* ---- biases -------------------------------------------------------------------------------------------- */

void products_forget(struct cuda *c, const void *at)
{
    if (c->products && c->products->biases)
        c->products->biases->exact.erase(at);
}

static bool is_exact(struct backend *b, const float *bias, int64_t n)
{
    float *host = static_cast<float *>(xmalloc(static_cast<unsigned long>(n), sizeof *host));
    struct tensor from = {const_cast<float *>(bias), DT_F32, 1, n, n}, to = {host, DT_F32, 1, n, n};
    b->ops->download(b, to, from);
    bool exact = true;
    for (int64_t i = 0; i < n && exact; i++)
        exact = bf16_to_f32(bf16_from_f32(host[i])) == host[i];
    free(host);
    return exact;
}

/* Returns whether the library may add the bias. While a graph is recorded, a bias that was not examined
 * before cannot be examined. */
static bool library_adds(struct backend *b, const struct product &p)
{
    struct biases *&known = products_of(b)->biases;
    if (!known)
        known = new biases();
    if (p.y.dtype == DT_F32)
        return reinterpret_cast<uintptr_t>(p.bias) % 16 == 0;
    auto found = known->exact.find(p.bias);
    if (found != known->exact.end())
        return found->second;
    if (cuda_recording(cuda_of(b)))
        return false;
    return known->exact[p.bias] = is_exact(b, p.bias, p.y.cols);
}

/* Returns the bias in the type of y; a bf16 bias is in scratch memory. */
static const void *library_bias(struct backend *b, const struct product &p)
{
    if (!p.bias || p.y.dtype == DT_F32)
        return p.bias;
    int64_t n = p.y.cols;
    struct tensor from = {const_cast<float *>(p.bias), DT_F32, 1, n, n},
                  to = {cuda_scratch(b, static_cast<size_t>(n) * sizeof(bf16)), DT_BF16, 1, n, n};
    b->ops->copy(b, to, from);
    return to.data;
}

/* ---- many rows ----------------------------------------------------------------------------------------- */

/* Some columns of y, with the corresponding rows of w in bf16. */
struct part {
    struct product p; /* its w is not used */
    struct tensor w;
    const float *scales; /* row scales; NULL: use `scale` */
    float scale;         /* common to all rows */
    void *sums;          /* work_sums bytes */
};

/* Returns whether the product must be summed in f32 first. cuBLASLt adds to y before rounding. In decode
 * steps, the residual sum must not depend on the number of sessions. */
static bool needs_sums(struct backend *b, const struct product &p, bool scales)
{
    bool later = p.epi != EPI_NONE && p.mode == SET,
         rounded_first = p.mode == ADD && p.y.dtype == DT_BF16 && p.y.rows <= MOST_DECODED;
    return scales || rounded_first || !(p.epi == EPI_NONE || later) || (p.bias && !library_adds(b, p));
}

static void multiply_in_f32(struct backend *b, const struct part &m)
{
    int64_t width = (m.p.y.cols + 3) / 4 * 4,
            rows = static_cast<int64_t>(cuda_work_parts()->sums) / 4 / width;
    rows = rows < 1 ? 1 : rows;
    for (int64_t t = 0; t < m.p.y.rows; t += rows) {
        struct product p = m.p;
        int64_t n = least(p.y.rows - t, rows);
        struct tensor sums = {m.sums, DT_F32, n, p.y.cols, width};
        p.y = tensor_rows(p.y, t, n);
        p.x = tensor_rows(p.x, t, n);
        gemm(b, sums, p.x, m.w, m.scale, nullptr, SET);
        epilogue(b, p, sums, m.scales, nullptr);
    }
}

/* Multiplies by the library with its epilogue. bias: in the type of y, if the library adds it; otherwise
 * NULL. */
static void multiply_directly(struct backend *b, const struct part &m, const void *bias)
{
    struct product after = m.p;
    after.bias = nullptr;
    gemm(b, m.p.y, m.p.x, m.w, m.scale, bias, m.p.mode);
    if (m.p.epi != EPI_NONE)
        epilogue(b, after, m.p.y, nullptr, nullptr);
}

static void multiply_plain(struct backend *b, const struct product &p)
{
    struct part m = {};
    m.p = p;
    m.w = tensor_cols(p.w->plain, 0, p.w->cols);
    m.scale = 1;
    if (!needs_sums(b, p, false))
        return multiply_directly(b, m, library_bias(b, p));
    m.sums = cuda_scratch(b, work_sums(cuda_work_parts(), p.y.cols));
    multiply_in_f32(b, m);
}

static void multiply_quantized(struct backend *b, const struct product &p)
{
    const struct weight *w = p.w;
    bool scales = !(w->scale == w->scale);
    const struct work_parts *parts = cuda_work_parts();
    int64_t room = quantized_padded(w), rows = work_dequantized(parts, room).rows;
    size_t wide = work_dequantized(parts, room).bytes;
    char *scratch = static_cast<char *>(cuda_scratch(b, work_quantized(parts, room)));
    for (int64_t n = 0; n < w->rows; n += rows) {
        int64_t some = w->rows - n < rows ? w->rows - n : rows;
        struct tensor to = {scratch, DT_BF16, (some + TILE - 1) / TILE * TILE, room, room};
        quantized_dequantize(b, to, w, n);
        struct part m = {};
        m.p = p;
        m.p.y = tensor_cols(p.y, n, some);
        m.p.bias = p.bias ? p.bias + n : nullptr;
        m.w = tensor_cols(tensor_rows(to, 0, some), 0, w->cols);
        m.scales = scales ? w->scales + n : nullptr;
        m.scale = scales ? 1.0f : w->scale;
        m.sums = scratch + wide;
        if (p.bias || needs_sums(b, m.p, scales)) /* scratch memory then has no space for a bias in bf16 */
            multiply_in_f32(b, m);
        else
            multiply_directly(b, m, nullptr);
    }
}

/* ---- selection of the kernel ----------------------------------------------------------------------- */

static bool suits_library(const struct product &p)
{
    bool full = p.w->format == QUANT_NONE && p.w->plain.dtype == DT_F32;
    return p.x.dtype == DT_BF16 && !full && rows_aligned16(p.x) && rows_aligned16(p.y);
}

static void cuda_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                        struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    struct product p = {y, x, w, static_cast<const float *>(bias.data), epi, mode};
    if (y.rows != x.rows || y.cols != w->rows || x.cols != w->cols)
        bug("a product of %lldx%lld and %lldx%lld into %lldx%lld", (long long)x.rows, (long long)x.cols,
            (long long)w->rows, (long long)w->cols, (long long)y.rows, (long long)y.cols);
    if (y.rows == 0 || y.cols == 0)
        return;
    bool on_codes = w->format != QUANT_NONE && !has_records(w);
    if (y.rows <= (on_codes ? FEW_ON_CODES : FEW) || !suits_library(p))
        matvec(b, p);
    else if (w->format == QUANT_NONE)
        multiply_plain(b, p);
    else if (w->coarse && y.rows > MOST_DECODED)
        multiply_fp8(b, p);
    else
        multiply_quantized(b, p);
}

static void round_activations(struct backend *b, struct weight *w)
{
    w->coarse = w->format == QUANT_F8;
}

void linear_fill(struct ops *o)
{
    o->pack = cuda_pack;
    o->borrow = nullptr; /* kernels read host memory too slowly */
    o->weight_free = cuda_weight_free;
    o->quant_layout = "cuda 3";
    o->quant_bytes = quantized_bytes;
    o->quant_pack = quantized_pack;
    o->quant_weight = quantized_weight;
    o->round_activations = round_activations;
    o->rounds_to_f8 = true;
    o->linear = cuda_linear;
}
