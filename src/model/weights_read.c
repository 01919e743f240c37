/* weights_read.c - looks up single tensors, checks them, and converts them to their form in memory.
 *
 * The first functions find a tensor by name and check its shape; the others convert it to a matrix, a
 * vector or plain values. Only binder_weight() converts between storage and multiplication formats. */
#include "model/weights_impl.h"
#include "ops/gguf_rows.h"
#include "ops/quant.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- taking one tensor --------------------------------------------------------------------------------- */

void binder_fail(struct binder *x, const char *fmt, ...)
{
    char text[ERR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (x->o->problem)
        x->o->problem(x->o->look_arg, text);
    if (!x->failed)
        err_set(x->e, ERR_MODEL, "%s", text);
    x->failed = true;
}

/* Returns whether binding ends; with a `problem` callback the remaining tensors are checked, too. */
bool binder_stopped(const struct binder *x)
{
    return x->failed && !x->o->problem;
}

/* Takes a tensor of any type. */
static const struct st_tensor *take_any(struct binder *x, const char *name)
{
    if (binder_stopped(x))
        return NULL;
    const struct st_tensor *t = safetensors_find(x->s, name);
    if (!t) {
        binder_fail(x, "tensor '%s' is missing", safetensors_spelling(x->s, name));
        return NULL;
    }
    x->used[t - safetensors_at(x->s, 0)] = true;
    return t;
}

const struct st_tensor *binder_take(struct binder *x, const char *name)
{
    const struct st_tensor *t = take_any(x, name);
    if (!t)
        return NULL;
    if (t->gguf)
        return t;
    if (t->dtype != DT_BF16 && t->dtype != DT_F32 && t->dtype != DT_F16) {
        bool quantized = t->dtype == DT_F8E4M3 || t->dtype == DT_U8;
        binder_fail(x, "tensor '%s' is stored as %s%s; expected bf16, f16 or f32", name, dtype_name(t->dtype),
                    quantized ? " without a matching 'weight_scale'" : "");
        return NULL;
    }
    return t;
}

static const struct st_tensor *with_shape(struct binder *x, const struct st_tensor *t, const char *name,
                                          int dims, const int64_t *shape)
{
    if (!t || (t->dims == dims && !memcmp(t->shape, shape, (size_t)dims * sizeof *shape)))
        return t;
    struct st_tensor want = {.dims = dims};
    memcpy(want.shape, shape, (size_t)dims * sizeof *shape);
    char expected[128], found[128];
    safetensors_shape_text(&want, expected, sizeof expected);
    safetensors_shape_text(t, found, sizeof found);
    binder_fail(x, "tensor '%s' has shape %s; the config requires %s", safetensors_spelling(x->s, name),
                found, expected);
    return NULL;
}

const struct st_tensor *binder_take_shape(struct binder *x, const char *name, int dims, const int64_t *shape)
{
    return with_shape(x, binder_take(x, name), name, dims, shape);
}

bool binder_check_blocks(struct binder *x, const struct st_tensor *t, size_t step)
{
    size_t each = (size_t)ggml_block_bytes(t->gguf), bad = 0;
    const uint8_t *p = t->data;
    for (size_t at = 0; !x->o->shapes_only && at < t->bytes; at += each * step)
        bad += !gguf_finite(t->gguf, p + at);
    if (bad)
        binder_fail(x, "tensor '%s' of %s has %zu blocks that are NaN or infinite",
                    safetensors_spelling(x->s, t->name), t->file, bad);
    return !bad;
}

static bool is_aligned(const struct st_tensor *t)
{
    return (uintptr_t)t->data % dtype_size(t->dtype) == 0;
}

/* ---- NaN and infinity ---------------------------------------------------------------------------------- */

struct finite_task {
    struct tensor t; /* one row */
    atomic_size_t bad;
};

/* Counts NaN and infinite values: all bits of the exponent are set. */
static void count_range(void *arg, int64_t begin, int64_t end, int thread)
{
    struct finite_task *k = arg;
    const uint16_t *half = k->t.data, bits = k->t.dtype == DT_BF16 ? 0x7f80 : 0x7c00;
    const uint32_t *word = k->t.data;
    size_t bad = 0;
    if (k->t.dtype == DT_F32)
        for (int64_t i = begin; i < end; i++)
            bad += (word[i] & 0x7f800000) == 0x7f800000;
    else
        for (int64_t i = begin; i < end; i++)
            bad += (half[i] & bits) == bits;
    if (bad)
        atomic_fetch_add(&k->bad, bad);
}

/* Rejects a tensor with NaN or infinite values. data: its n values, or the first of them, as dtype. */
static void check_finite(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t n,
                         const void *data)
{
    struct finite_task k = {.t = {(void *)(uintptr_t)data, dtype, 1, n, n}};
    pool_for(x->b->pool, n, 1 << 16, count_range, &k);
    if (k.bad)
        binder_fail(x, "tensor '%s' of %s has %zu values that are NaN or infinite", t->name, t->file,
                    (size_t)k.bad);
}

/* Checks a sample of a mapped tensor, which is not read at the start: 8 pages, or one of an expert. */
void binder_check_mapped(struct binder *x, const struct st_tensor *t)
{
    enum { PAGES = 8, PAGE = 4096 };
    size_t each = dtype_size(t->dtype), pages = binder_is_expert(t) ? 1 : PAGES;
    if (x->o->shapes_only)
        return;
    for (size_t i = 0; i < pages; i++) {
        size_t from = t->bytes > PAGE ? (t->bytes - PAGE) / each * i / pages * each : 0;
        size_t part = t->bytes - from < PAGE ? t->bytes - from : PAGE;
        const char *at = (const char *)t->data + from;
        void *page = (void *)((uintptr_t)at / PAGE * PAGE);
        madvise(page, 2 * PAGE, MADV_RANDOM); /* otherwise the kernel reads ahead megabytes per page */
        check_finite(x, t, t->dtype, (int64_t)(part / each), at);
        madvise(page, 2 * PAGE, MADV_NORMAL);
    }
}

struct tensor binder_host_view(struct binder *x, const struct st_tensor *t, int64_t rows, int64_t cols,
                               void **copy)
{
    const void *data = t->data;
    enum dtype dtype = t->gguf ? DT_F32 : t->dtype;
    *copy = NULL;
    if (t->gguf && !x->o->shapes_only) {
        data = *copy = xmalloc((unsigned long)rows * (unsigned long)cols, sizeof(float));
        gguf_row(t->gguf, t->data, rows * cols, *copy);
    } else if (!is_aligned(t)) { /* file headers need not align it */
        *copy = xmalloc(t->bytes, 1);
        memcpy(*copy, data, t->bytes);
        data = *copy;
    }
    if (!x->o->shapes_only)
        check_finite(x, t, dtype, rows * cols, data);
    return (struct tensor){(void *)(uintptr_t)data, dtype, rows, cols, cols};
}

void binder_done(struct binder *x, const struct st_tensor *t)
{
    if (!x->o->shapes_only)
        safetensors_release(x->s, t);
    x->done += t->bytes;
    if (x->o->progress)
        x->o->progress(x->o->progress_arg, (double)x->done / (double)x->all, t->name);
}

enum dtype binder_activation(const struct binder *x)
{
    return x->o->f32 ? DT_F32 : DT_BF16;
}

bool binder_stays_mapped(const struct binder *x, const struct st_tensor *t, enum dtype wanted)
{
    return x->o->mapped && !x->o->random && x->b->ops->borrow && t->dtype == wanted && is_aligned(t);
}

/* Returns whether a mapped tensor stays in memory. Tensors are kept while memory lasts, in the order a
 * token needs them, so that those read for every token take precedence over the vision encoder. Experts
 * stay only if all other tensors fit. */
static bool keeps_resident(struct binder *x, const struct st_tensor *t)
{
    size_t room = x->o->resident - x->resident;
    if (binder_is_expert(t))
        room = room > x->awaited ? room - x->awaited : 0;
    else
        x->awaited -= t->bytes < x->awaited ? t->bytes : x->awaited;
    if (t->bytes > room)
        return false;
    x->resident += t->bytes;
    return true;
}

bool binder_is_expert(const struct st_tensor *t)
{
    return strstr(t->name, ".experts.");
}

struct tensor binder_alloc(struct binder *x, enum dtype dtype, int64_t rows, int64_t cols)
{
    struct model_weights *w = x->w;
    w->tensors = xrealloc(w->tensors, (unsigned long)w->n_tensors + 1, sizeof *w->tensors);
    return w->tensors[w->n_tensors++] = x->b->ops->alloc(x->b, dtype, rows, cols);
}

struct weight *binder_own_weight(struct binder *x, struct weight *m)
{
    struct model_weights *w = x->w;
    w->matrices = xrealloc(w->matrices, (unsigned long)w->n_matrices + 1, sizeof(struct weight *));
    return w->matrices[w->n_matrices++] = m;
}

static struct weight *make_weight(struct binder *x, enum role role, const struct stored *m)
{
    const struct st_tensor *t = m->t;
    enum quant_format format = binder_format(x, role, m);
    enum dtype kept = x->o->f32 && t->dtype != DT_BF16 ? DT_F32 : DT_BF16;
    bool coded = m->format || t->gguf;
    struct tensor host = m->source.stored;
    binder_note_form(x, m, format ? quant_name(format) : dtype_name(kept));
    if (role != ROLE_OTHER && role != ROLE_TOWER) {
        double elements = (double)m->source.rows * (double)m->source.cols;
        x->elements += elements;
        x->w->records |= quant_has_records(format);
        x->stored_bytes +=
            format ? quant_size(format, m->source.rows, m->source.cols) : elements * (double)dtype_size(kept);
    }
    if (binder_makes(x))
        return binder_synthetic_weight(x, t, format, kept, m->source.rows, m->source.cols);
    if (format)
        return binder_quantized(x, format, m);
    if (!coded && binder_stays_mapped(x, t, kept)) {
        binder_check_mapped(x, t);
        return x->b->ops->borrow(x->b, host, !keeps_resident(x, t));
    }
    if (x->o->shapes_only)
        return x->b->ops->pack(x->b, (struct tensor){NULL, kept, host.rows, m->source.cols, 0}, kept);
    autofree void *copy = NULL;
    if (coded)
        copy = (host = binder_dequantized(m, x->o->storage == WEIGHTS_BF16 ? DT_BF16 : kept)).data;
    else
        host = binder_host_view(x, t, host.rows, host.cols, &copy);
    return x->b->ops->pack(x->b, host, kept);
}

/* Returns whether products with a matrix round their activations to 8 bits. By default those of the language
 * model do, the head's included; GPTQ's long groups and vision encoders were not measured. */
static bool rounds_activations(const struct binder *x, enum role role, const struct stored *m)
{
    if (x->o->coarse && (role == ROLE_LINEAR || role == ROLE_TOWER))
        return true;
    if (!x->o->coarse_blocks || !(role == ROLE_LINEAR || role == ROLE_HEAD))
        return false;
    enum quant_format format = binder_format(x, role, m);
    return quant_is_blocks(format) && format != QUANT_GPTQ;
}

struct weight *binder_weight(struct binder *x, enum role role, const struct stored *m)
{
    struct weight *w = binder_own_weight(x, make_weight(x, role, m));
    if (!x->o->shapes_only && rounds_activations(x, role, m)) {
        x->b->ops->round_activations(x->b, w);
        x->w->rounded++;
    }
    return w;
}

struct weight *binder_matrix(struct binder *x, enum role role, const char *name, int64_t rows, int64_t cols)
{
    struct stored m;
    if (!binder_stored(x, name, rows, cols, &m))
        return NULL;
    struct weight *w = binder_weight(x, role, &m);
    binder_stored_free(&m);
    binder_done(x, m.t);
    return w;
}

struct tensor binder_upload(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t rows,
                            int64_t cols)
{
    if (!t)
        return (struct tensor){0};
    struct tensor out = binder_alloc(x, dtype, rows, cols);
    if (binder_makes(x)) {
        binder_make(x, t, out);
    } else if (!x->o->shapes_only) {
        void *copy;
        x->b->ops->upload(x->b, out, binder_host_view(x, t, rows, cols, &copy));
        free(copy);
    }
    binder_done(x, t);
    return out;
}

struct tensor binder_vector(struct binder *x, const char *name, int64_t n)
{
    return binder_upload(x, binder_take_shape(x, name, SHAPE(n)), DT_F32, 1, n);
}

float *binder_numbers(struct binder *x, const struct st_tensor *t)
{
    if (!t)
        return NULL;
    size_t n = 1;
    for (int i = 0; i < t->dims; i++)
        n *= (size_t)t->shape[i];
    float *out = xcalloc(n + 1, sizeof *out);
    autofree void *copy = NULL;
    if (binder_makes(x))
        binder_make_host(x, t, out, n);
    if (x->o->shapes_only || x->o->random)
        return out;
    tensor_convert((struct tensor){out, DT_F32, 1, (int64_t)n, (int64_t)n},
                   binder_host_view(x, t, 1, (int64_t)n, &copy));
    binder_done(x, t);
    return out;
}

/* Uploads values from the host and frees them. */
struct tensor binder_put_numbers(struct binder *x, float *values, enum dtype dtype, int64_t rows,
                                 int64_t cols)
{
    if (!values)
        return (struct tensor){0};
    struct tensor t = binder_alloc(x, dtype, rows, cols);
    if (!x->o->shapes_only)
        x->b->ops->upload(x->b, t, (struct tensor){values, DT_F32, rows, cols, cols});
    free(values);
    return t;
}
