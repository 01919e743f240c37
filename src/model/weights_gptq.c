/* weights_gptq.c - 4-bit matrices quantized with GPTQ. A matrix [out, in] is stored as
 *
 *     X.qweight  i32 [in / 8, out]          eight codes per word
 *     X.qzeros   i32 [in / 128, out / 8]    zero points of the groups, minus one in the first format
 *     X.scales   f16 [in / 128, out]
 *     X.g_idx    i32 [in]                   group of each column; if missing, columns are in order
 *
 * If columns were quantized in order of importance ("desc_act"), the 128 columns of a group are scattered
 * over the matrix. */
#include "model/weights_impl.h"
#include "ops/quant.h"

#include <stdlib.h>
#include <string.h>

static const struct st_tensor *part(struct binder *x, const char *name, const char *suffix, enum dtype dtype,
                                    int64_t rows, int64_t cols)
{
    const struct st_tensor *t = binder_beside(x, name, suffix);
    if (!t) {
        binder_fail(x, "tensor '%s' has no matching '%s'", binder_beside(x, name, "qweight")->name, suffix);
        return NULL;
    }
    const int64_t want[2] = {rows, cols};
    struct st_tensor asked = {.dims = cols ? 2 : 1, .shape = {rows, cols}};
    if (t->dtype == dtype && t->dims == asked.dims && !memcmp(t->shape, want, (size_t)t->dims * sizeof *want))
        return t;
    char found[128], expected[128];
    safetensors_shape_text(t, found, sizeof found);
    safetensors_shape_text(&asked, expected, sizeof expected);
    binder_fail(x, "tensor '%s' is %s %s; expected %s %s", t->name, dtype_name(t->dtype), found,
                dtype_name(dtype), expected);
    return NULL;
}

static bool finite_scales(struct binder *x, const struct st_tensor *t)
{
    size_t bad = 0;
    for (size_t i = 0; !x->o->shapes_only && i < t->bytes; i += 2) {
        uint16_t h;
        memcpy(&h, (const char *)t->data + i, sizeof h);
        bad += (h & 0x7c00) == 0x7c00;
    }
    if (bad)
        binder_fail(x, "tensor '%s' has %zu scales that are NaN or infinite", t->name, bad);
    return !bad;
}

/* Returns the columns ordered by group, within a group in file order; NULL after reporting a failure. The
 * caller frees it. */
static int32_t *read_order(struct binder *x, const struct st_tensor *t, int64_t cols)
{
    int64_t groups = cols / QUANT_GPTQ_GROUP, bad = -1;
    int32_t *order = xmalloc((unsigned long)cols, sizeof *order),
            *have = xcalloc((unsigned long)groups, sizeof *have);
    for (int64_t k = 0; k < cols && bad < 0; k++) {
        int32_t g;
        memcpy(&g, (const char *)t->data + k * (int64_t)sizeof g, sizeof g);
        if (g < 0 || g >= groups || have[g] == QUANT_GPTQ_GROUP)
            bad = k;
        else
            order[g * QUANT_GPTQ_GROUP + have[g]++] = (int32_t)k;
    }
    free(have);
    if (bad < 0)
        return order;
    binder_fail(x, "tensor '%s' assigns column %lld to a full or invalid group; expected %lld groups of %d",
                t->name, (long long)bad, (long long)groups, QUANT_GPTQ_GROUP);
    free(order);
    return NULL;
}

static bool take_order(struct binder *x, struct stored *m, const char *name)
{
    if (!binder_beside(x, name, "g_idx"))
        return true;
    const struct st_tensor *t = part(x, name, "g_idx", DT_I32, m->source.cols, 0);
    if (!t || x->o->shapes_only || x->o->random)
        return t;
    m->gptq.order = m->order = read_order(x, t, m->source.cols);
    return m->order;
}

bool binder_gptq(struct binder *x, struct stored *m, const char *name)
{
    int64_t rows = m->source.rows, cols = m->source.cols, groups = cols / QUANT_GPTQ_GROUP;
    if (strcmp(x->c->quant, "GPTQ") != 0) {
        binder_fail(x, "tensor '%s' is a GPTQ matrix, but 'quant_method' in the config is not 'gptq'",
                    m->t->name);
        return false;
    }
    if (rows % 8 || cols % QUANT_GPTQ_GROUP) {
        binder_fail(x, "tensor '%s': a matrix of %lld x %lld cannot be split into groups of %d columns",
                    m->t->name, (long long)rows, (long long)cols, QUANT_GPTQ_GROUP);
        return false;
    }
    const struct st_tensor *codes = part(x, name, "qweight", DT_I32, cols / 8, rows),
                           *zeros = codes ? part(x, name, "qzeros", DT_I32, groups, rows / 8) : NULL,
                           *scales = zeros ? part(x, name, "scales", DT_F16, groups, rows) : NULL;
    if (!scales || !finite_scales(x, scales))
        return false;
    m->format = QUANT_GPTQ;
    m->gptq = (struct quant_gptq){codes->data, zeros->data, scales->data, x->c->gptq_least, NULL};
    m->source.gptq = &m->gptq;
    return take_order(x, m, name);
}
