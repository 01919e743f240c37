/* weights_read.c - one stored tensor at a time: found, checked, and brought to where it is used.
 *
 * Of two kinds of functions the first looks a tensor up by name, with the shape it must have; the second
 * turns it into a matrix, a vector or plain numbers.  What is stored in another form than it is multiplied
 * in is dealt with in binder_weight alone.
 */
#include "model/weights_impl.h"
#include "ops/quant.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- taking one tensor ---------------------------------------------------------------------------- */

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

/* Whoever wants to hear of every problem has the rest looked at too. */
bool binder_stopped(const struct binder *x)
{
    return x->failed && !x->o->problem;
}

/* The tensor of this name, which must be there and hold numbers we can read; NULL on failure. */
const struct st_tensor *binder_take(struct binder *x, const char *name)
{
    if (binder_stopped(x))
        return NULL;
    const struct st_tensor *t = safetensors_find(x->s, name);
    if (!t) {
        binder_fail(x, "tensor '%s' is missing", name);
        return NULL;
    }
    x->used[t - safetensors_at(x->s, 0)] = true;
    if (t->dtype != DT_BF16 && t->dtype != DT_F32 && t->dtype != DT_F16) {
        bool small = t->dtype == DT_F8E4M3 || t->dtype == DT_U8;
        binder_fail(x, "tensor '%s' is stored as %s%s; expected bf16, f16 or f32", name, dtype_name(t->dtype),
                    small ? " without a 'weight_scale' beside it" : "");
        return NULL;
    }
    return t;
}

/* The same with a shape; sizes that do not matter are 1 in front or behind, as published. */
const struct st_tensor *binder_take_shape(struct binder *x, const char *name, int dims, const int64_t *shape)
{
    const struct st_tensor *t = binder_take(x, name);
    if (!t || (t->dims == dims && !memcmp(t->shape, shape, (size_t)dims * sizeof *shape)))
        return t;
    struct st_tensor want = {.dims = dims};
    memcpy(want.shape, shape, (size_t)dims * sizeof *shape);
    char expected[128], found[128];
    safetensors_shape_text(&want, expected, sizeof expected);
    safetensors_shape_text(t, found, sizeof found);
    binder_fail(x, "tensor '%s' has shape %s; the config asks for %s", name, found, expected);
    return NULL;
}

static bool is_aligned(const struct st_tensor *t)
{
    return (uintptr_t)t->data % dtype_size(t->dtype) == 0;
}

/* The tensor as a matrix on the host.  A header may leave the data at an odd address: then *copy is set
 * to an aligned copy that the caller frees. */
struct tensor binder_host_view(const struct st_tensor *t, int64_t rows, int64_t cols, void **copy)
{
    const void *data = t->data;
    *copy = NULL;
    if (!is_aligned(t)) {
        *copy = xmalloc(t->bytes, 1);
        memcpy(*copy, data, t->bytes);
        data = *copy;
    }
    return (struct tensor){(void *)(uintptr_t)data, t->dtype, rows, cols, cols};
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

/* Whether a tensor can be used from the file as it is. */
bool binder_stays_mapped(const struct binder *x, const struct st_tensor *t, enum dtype wanted)
{
    return x->o->mapped && !x->o->random && x->b->ops->borrow && t->dtype == wanted && is_aligned(t);
}

/* A mapped tensor stays in memory as long as the ones before it have left room; they come in the order in
 * which a token needs them, so that those read for every token stay before the tower does.  Experts stay only
 * where there is room beside everything else. */
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

struct weight *binder_weight(struct binder *x, enum role role, const struct stored *m)
{
    const struct st_tensor *t = m->t;
    enum quant_format format = binder_format(x, role, m);
    enum dtype kept = x->o->f32 && t->dtype != DT_BF16 ? DT_F32 : DT_BF16;
    struct tensor host = m->source.stored;
    if (role != ROLE_OTHER) {
        double numbers = (double)m->source.rows * (double)m->source.cols;
        x->numbers += numbers;
        x->held +=
            format ? quant_size(format, m->source.rows, m->source.cols) : numbers * (double)dtype_size(kept);
    }
    if (binder_makes(x))
        return binder_synthetic_weight(x, t, format, kept, m->source.rows, m->source.cols);
    if (format)
        return binder_quantized(x, format, m);
    if (!m->format && binder_stays_mapped(x, t, kept))
        return x->b->ops->borrow(x->b, host, !keeps_resident(x, t));
    if (x->o->shapes_only)
        return x->b->ops->pack(x->b, (struct tensor){NULL, kept, host.rows, m->source.cols, 0}, kept);
    void *copy;
    if (m->format)
        copy = (host = binder_widened(m)).data;
    else
        host = binder_host_view(t, host.rows, host.cols, &copy);
    struct weight *w = x->b->ops->pack(x->b, host, kept);
    free(copy);
    return w;
}

struct weight *binder_matrix(struct binder *x, enum role role, const char *name, int64_t rows, int64_t cols)
{
    struct stored m;
    if (!binder_stored(x, name, rows, cols, &m))
        return NULL;
    struct weight *w = binder_weight(x, role, &m);
    free(m.scales);
    binder_done(x, m.t);
    return w;
}

struct tensor binder_upload(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t rows,
                            int64_t cols)
{
    if (!t)
        return (struct tensor){0};
    struct tensor out = x->b->ops->alloc(x->b, dtype, rows, cols);
    if (binder_makes(x)) {
        binder_make(x, t, out);
    } else if (!x->o->shapes_only) {
        void *copy;
        x->b->ops->upload(x->b, out, binder_host_view(t, rows, cols, &copy));
        free(copy);
    }
    binder_done(x, t);
    return out;
}

struct tensor binder_vector(struct binder *x, const char *name, int64_t n)
{
    return binder_upload(x, binder_take_shape(x, name, SHAPE(n)), DT_F32, 1, n);
}

/* The numbers of a tensor in f32 on the host; the caller frees them. NULL stays NULL. */
float *binder_numbers(struct binder *x, const struct st_tensor *t)
{
    if (!t)
        return NULL;
    size_t n = t->bytes / dtype_size(t->dtype);
    float *out = xcalloc(n + 1, sizeof *out);
    void *copy;
    if (binder_makes(x))
        binder_make_host(x, t, out, n);
    if (x->o->shapes_only || x->o->random)
        return out;
    const void *p = binder_host_view(t, 1, (int64_t)n, &copy).data;
    for (size_t i = 0; i < n; i++)
        out[i] = t->dtype == DT_F32    ? ((const float *)p)[i]
                 : t->dtype == DT_BF16 ? bf16_to_f32(((const uint16_t *)p)[i])
                                       : f16_to_f32(((const uint16_t *)p)[i]);
    free(copy);
    binder_done(x, t);
    return out;
}

/* Puts numbers from the host where the backend wants them and frees them. */
struct tensor binder_put_numbers(struct binder *x, float *values, enum dtype dtype, int64_t rows,
                                 int64_t cols)
{
    if (!values)
        return (struct tensor){0};
    struct tensor t = x->b->ops->alloc(x->b, dtype, rows, cols);
    if (!x->o->shapes_only)
        x->b->ops->upload(x->b, t, (struct tensor){values, DT_F32, rows, cols, cols});
    free(values);
    return t;
}
