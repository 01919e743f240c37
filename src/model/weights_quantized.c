/* weights_quantized.c - looks up quantized matrices with their scales and converts them to the format in
 * memory.
 *
 * A quantized matrix X.weight of a published checkpoint comes with further tensors:
 *
 *     FP8     X.weight f8e4m3 [out, in]   X.weight_scale of a float type: [], [1], [out] or [out, 1]
 *     NVFP4   X.weight u8 [out, in / 2]   X.weight_scale f8e4m3 [out, in / 16]  X.weight_scale_2, one
 *
 * and X.input_scale, which is ignored. Other tools write
 *
 *     FP8 in blocks   X.weight f8e4m3 [out, in]  X.weight_scale_inv of a float type [out / 128, in / 128]
 *     NVFP4           X.weight_packed, X.weight_scale as above, X.weight_global_scale, which divides
 *
 * with fractions rounded up. Despite its name weight_scale_inv is a factor. GPTQ: weights_gptq.c. */
#include "checkpoint/weights_cache.h"
#include "model/weights_impl.h"
#include "ops/gguf_rows.h"
#include "ops/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding ------------------------------------------------------------------------------------------- */

static void mark_used(struct binder *x, const struct st_tensor *t)
{
    if (t)
        x->used[t - safetensors_at(x->s, 0)] = true;
}

const struct st_tensor *binder_beside(struct binder *x, const char *name, const char *suffix)
{
    static const char *const ends[] = {".weight", ".weight_packed", ".qweight"};
    char text[256];
    size_t n = strlen(name), front = n;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        front = n > k && !strcmp(name + n - k, ends[i]) ? n - k : front;
    }
    snprintf(text, sizeof text, "%.*s.%s", (int)front, name, suffix);
    const struct st_tensor *t = safetensors_find(x->s, text);
    mark_used(x, t);
    return t;
}

static void wrong_shape(struct binder *x, const struct st_tensor *t, enum dtype dtype, int64_t rows,
                        int64_t cols)
{
    char found[128];
    safetensors_shape_text(t, found, sizeof found);
    binder_fail(x, "tensor '%s' is %s %s; expected %s [%lld, %lld]", t->name, dtype_name(t->dtype), found,
                dtype_name(dtype), (long long)rows, (long long)cols);
}

static bool has_shape(const struct st_tensor *t, enum dtype dtype, int64_t rows, int64_t cols)
{
    return t->dtype == dtype && t->dims == 2 && t->shape[0] == rows && t->shape[1] == cols;
}

static bool is_column(const struct st_tensor *t, int64_t rows)
{
    bool column = t->dims == 2 && t->shape[0] == rows && t->shape[1] == 1;
    return column || (t->dims == 1 && t->shape[0] == rows);
}

/* Reads positive scales, one per row or a single one ([], [1] or [1, 1]). Returns them, to be freed by the
 * caller, or NULL after reporting a failure. */
static float *read_scales(struct binder *x, const struct st_tensor *t, int64_t rows)
{
    bool floats = t->dtype == DT_F32 || t->dtype == DT_BF16 || t->dtype == DT_F16;
    if (!floats || !(is_column(t, rows) || (rows == 1 && t->dims == 0))) {
        char found[128];
        safetensors_shape_text(t, found, sizeof found);
        binder_fail(x, "tensor '%s' is %s %s; expected one f32, f16 or bf16, or one for each row", t->name,
                    dtype_name(t->dtype), found);
        return NULL;
    }
    autofree void *copy = NULL;
    float *out = xcalloc((unsigned long)rows, sizeof *out);
    if (!x->o->shapes_only)
        tensor_convert((struct tensor){out, DT_F32, 1, rows, rows}, binder_host_view(x, t, 1, rows, &copy));
    for (int64_t n = 0; n < rows && !x->o->shapes_only; n++) {
        if (isfinite(out[n]) && out[n] > 0)
            continue;
        if (rows == 1)
            binder_fail(x, "tensor '%s' is %g; expected a scale above 0", t->name, (double)out[n]);
        else
            binder_fail(x, "tensor '%s' has %g for row %lld; expected scales above 0", t->name,
                        (double)out[n], (long long)n);
        free(out);
        return NULL;
    }
    return out;
}

static bool read_scale(struct binder *x, const struct st_tensor *t, float *out)
{
    autofree float *one = read_scales(x, t, 1);
    bool read = one != NULL;
    *out = read ? *one : 0;
    return read;
}

/* Checks that an e4m3 tensor has no NaN; e4m3 has one NaN per sign and no infinity. */
static bool all_numbers(struct binder *x, const struct st_tensor *t)
{
    const uint8_t *p = t->data;
    size_t bad = 0;
    for (size_t i = 0; i < t->bytes && !x->o->shapes_only; i++)
        bad += (p[i] & 127) == 127;
    if (bad)
        binder_fail(x, "tensor '%s' has %zu NaN values", t->name, bad);
    return !bad;
}

static bool take_f8(struct binder *x, struct stored *m, const struct st_tensor *scale, int64_t rows,
                    int64_t cols)
{
    if (!has_shape(m->t, DT_F8E4M3, rows, cols)) {
        wrong_shape(x, m->t, DT_F8E4M3, rows, cols);
        return false;
    }
    m->format = QUANT_F8;
    m->source.stored = (struct tensor){(void *)(uintptr_t)m->t->data, DT_F8E4M3, rows, cols, cols};
    if (!all_numbers(x, m->t))
        return false;
    if (rows == 1 || !is_column(scale, rows))
        return read_scale(x, scale, &m->source.scale);
    m->source.scales = m->scales = read_scales(x, scale, rows);
    return m->scales;
}

static int64_t blocks_of(int64_t n)
{
    return (n + QUANT_F8_BLOCK - 1) / QUANT_F8_BLOCK;
}

static bool take_f8_blocks(struct binder *x, struct stored *m, const struct st_tensor *scale, int64_t rows,
                           int64_t cols)
{
    int64_t n = blocks_of(rows) * blocks_of(cols);
    if (!has_shape(m->t, DT_F8E4M3, rows, cols)) {
        wrong_shape(x, m->t, DT_F8E4M3, rows, cols);
        return false;
    }
    if (!has_shape(scale, scale->dtype, blocks_of(rows), blocks_of(cols))) {
        wrong_shape(x, scale, DT_BF16, blocks_of(rows), blocks_of(cols));
        return false;
    }
    struct st_tensor list = *scale; /* one scale per block, as a column */
    list.dims = 1;
    list.shape[0] = n;
    m->format = QUANT_F8_BLOCKS;
    m->source.stored = (struct tensor){(void *)(uintptr_t)m->t->data, DT_F8E4M3, rows, cols, cols};
    m->source.blocks = m->scales = all_numbers(x, m->t) ? read_scales(x, &list, n) : NULL;
    return m->scales;
}

static bool take_f4(struct binder *x, struct stored *m, const struct st_tensor *scale, int64_t rows,
                    int64_t cols)
{
    const struct st_tensor *whole = binder_beside(x, m->t->name, "weight_scale_2"), *divisor = NULL;
    if (!whole)
        whole = divisor = binder_beside(x, m->t->name, "weight_global_scale");
    int64_t groups = cols / QUANT_F4_GROUP;
    if (cols % QUANT_F4_GROUP || !has_shape(m->t, DT_U8, rows, cols / 2)) {
        wrong_shape(x, m->t, DT_U8, rows, cols / 2);
        return false;
    }
    if (!has_shape(scale, DT_F8E4M3, rows, groups)) {
        wrong_shape(x, scale, DT_F8E4M3, rows, groups);
        return false;
    }
    if (!whole) {
        binder_fail(x, "tensor '%s' has no matching 'weight_scale_2'", m->t->name);
        return false;
    }
    m->format = QUANT_F4;
    m->source.stored = (struct tensor){(void *)(uintptr_t)m->t->data, DT_U8, rows, cols / 2, cols / 2};
    m->source.groups = scale->data;
    if (!read_scale(x, whole, &m->source.scale) || !all_numbers(x, scale))
        return false;
    m->source.scale = divisor && !x->o->shapes_only ? 1 / m->source.scale : m->source.scale;
    return true;
}

struct stored binder_plain(const struct st_tensor *t, int64_t rows, int64_t cols)
{
    if (t->gguf) {
        int64_t bytes = (int64_t)gguf_row_bytes(t->gguf, cols);
        return (struct stored){.t = t,
                               .format = gguf_kept(t->gguf),
                               .source = {.rows = rows,
                                          .cols = cols,
                                          .stored = {(void *)(uintptr_t)t->data, DT_U8, rows, bytes, bytes},
                                          .scale = 1,
                                          .gguf = t->gguf}};
    }
    return (struct stored){.t = t,
                           .source = {.rows = rows,
                                      .cols = cols,
                                      .stored = {(void *)(uintptr_t)t->data, t->dtype, rows, cols, cols},
                                      .scale = 1}};
}

/* Reads the scale of the whole matrix, which NVFP4 in GGUF may have; the scale of activations is ignored. */
static bool take_nvfp4_scale(struct binder *x, struct stored *m, const char *name)
{
    const struct st_tensor *scale = binder_beside(x, name, "scale");
    binder_beside(x, name, "input_scale");
    return !scale || x->o->shapes_only || read_scale(x, scale, &m->source.scale);
}

bool binder_part_scale(struct binder *x, const struct st_tensor *t, int64_t k, float *out)
{
    const struct st_tensor *scale = binder_beside(x, t->name, "scale");
    binder_beside(x, t->name, "input_scale");
    float *all = scale && !x->o->shapes_only ? read_scales(x, scale, t->shape[0]) : NULL;
    if (all)
        *out = all[k];
    free(all);
    return !scale || x->o->shapes_only || all;
}

bool binder_stored(struct binder *x, const char *name, int64_t rows, int64_t cols, struct stored *out)
{
    if (binder_stopped(x))
        return false;
    bool qwen = family_is_qwen(x->c->family); /* other families do not store these formats */
    const struct st_tensor *t = safetensors_find(x->s, name),
                           *packed = t ? NULL : binder_beside(x, name, "weight_packed"),
                           *gptq = t || packed || !qwen ? NULL : binder_beside(x, name, "qweight");
    *out = (struct stored){.t = gptq, .source = {.rows = rows, .cols = cols}};
    if (gptq)
        return binder_gptq(x, out, name);
    const struct st_tensor *scale = t || packed ? binder_beside(x, name, "weight_scale") : NULL,
                           *blocks = t && !scale && qwen ? binder_beside(x, name, "weight_scale_inv") : NULL;
    if (blocks) {
        mark_used(x, t);
        *out = (struct stored){.t = t, .source = {.rows = rows, .cols = cols}};
        return take_f8_blocks(x, out, blocks, rows, cols);
    }
    t = packed && scale ? packed : t;
    if (!scale) {
        t = binder_take_shape(x, name, SHAPE(rows, cols));
        if (t)
            *out = binder_plain(t, rows, cols);
        if (t && t->gguf == GGML_NVFP4 && !take_nvfp4_scale(x, out, name))
            return false;
        return t && (!t->gguf || binder_makes(x) || binder_check_blocks(x, t, 1));
    }
    mark_used(x, t);
    binder_beside(x, name, "input_scale");
    *out = (struct stored){.t = t, .source = {.rows = rows, .cols = cols}};
    return t->dtype == DT_U8 ? take_f4(x, out, scale, rows, cols) : take_f8(x, out, scale, rows, cols);
}

void binder_stored_free(struct stored *m)
{
    free(m->scales);
    free(m->order);
}

bool binder_unused_scale(struct binder *x, const struct st_tensor *t)
{
    static const char *const ends[] = {".k_scale", ".v_scale", ".input_scale", ".input_global_scale"};
    size_t n = strlen(t->name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = strlen(ends[i]);
        if (n < k || strcmp(t->name + n - k, ends[i]) != 0)
            continue;
        if (i < 2 && !x->warned_scales && !x->o->shapes_only)
            warn("scales of keys and values ('%s' and others) are ignored: --kv fp8 computes its own",
                 t->name);
        x->warned_scales = true;
        return true;
    }
    return false;
}

/* ---- quantizing ---------------------------------------------------------------------------------------- */

/* A GPU has no products on the tensor cores for formats with records, and none with activations in fp8.
 * There, a format that the user asks for replaces them. */
enum quant_format binder_format(const struct binder *x, enum role role, const struct stored *m)
{
    enum weight_storage n = x->o->storage;
    if (n == WEIGHTS_BF16)
        return QUANT_NONE;
    enum quant_format stored = m->format;
    if (role == ROLE_TOWER)
        return stored || !((x->o->coarse && n != WEIGHTS_FP8) || x->o->tower8) ? stored : QUANT_I8;
    if (n == WEIGHTS_AUTO || role == ROLE_OTHER || role == ROLE_GATE)
        return stored;
    bool gpu = !x->b->ops->borrow;
    if (gpu && quant_has_records(stored))
        stored = QUANT_NONE;
    if (stored == QUANT_I4 || stored == QUANT_F4 || stored == QUANT_Q4_1 || stored == QUANT_Q4_K ||
        stored == QUANT_GPTQ)
        return stored;
    if (n == WEIGHTS_INT4 && role == ROLE_LINEAR)
        return QUANT_I4;
    return stored ? stored : n == WEIGHTS_FP8 ? QUANT_F8 : QUANT_I8;
}

void binder_note_form(struct binder *x, const struct stored *m, const char *to)
{
    uint32_t type = m->source.gguf;
    const char *from = type ? ggml_type_name(type) : quant_name(m->format);
    bool here = !type || gguf_kernels(type) == m->format;
    if ((!type && !m->format) || (here && type != GGML_NVFP4 && type != GGML_F64) || !strcmp(from, to))
        return;
    for (int i = 0; i < WEIGHT_FORMS; i++) {
        struct weight_form *f = &x->forms[i];
        if (f->matrices && (strcmp(f->from, from) != 0 || strcmp(f->to, to) != 0))
            continue;
        *f = (struct weight_form){from, to, f->matrices + 1};
        return;
    }
}

char *binder_forms(const struct binder *x)
{
    char *all = NULL;
    for (int i = 0; i < WEIGHT_FORMS && x->forms[i].matrices; i++) {
        const struct weight_form *f = &x->forms[i];
        char *more =
            xasprintf("%s%s%s -> %s (%d)", all ? all : "", all ? ", " : "", f->from, f->to, f->matrices);
        free(all);
        all = more;
    }
    return all;
}

struct weight *binder_quantized(struct binder *x, enum quant_format format, const struct stored *m)
{
    const struct ops *ops = x->b->ops;
    struct quant_source s = m->source;
    size_t bytes = ops->quant_bytes(x->b, format, s.rows, s.cols);
    if (x->o->shapes_only)
        return ops->quant_weight(x->b, NULL, true, format, s.rows, s.cols);
    bool cached = format != m->format; /* a stored format is read as fast from the model's file */
    void *room = cached ? weight_cache_find(x->o->cache, m->t->name, format, s.rows, s.cols, bytes) : NULL;
    if (room)
        return ops->quant_weight(x->b, room, false, format, s.rows, s.cols);
    if (posix_memalign(&room, 64, bytes))
        die(ERR_ENV, "out of memory: %zu bytes requested", bytes);
    autofree void *copy = NULL;
    if (!m->format && !s.gguf)
        s.stored = binder_host_view(x, m->t, s.rows, s.cols, &copy);
    ops->quant_pack(x->b, room, format, &s);
    if (cached)
        weight_cache_add(x->o->cache, m->t->name, format, s.rows, s.cols, room, bytes);
    return ops->quant_weight(x->b, room, true, format, s.rows, s.cols);
}

struct tensor binder_dequantized(const struct stored *m, enum dtype dtype)
{
    const struct quant_source *s = &m->source;
    struct tensor out = {xmalloc((unsigned long)s->rows * (unsigned long)s->cols, dtype_size(dtype)), dtype,
                         s->rows, s->cols, s->cols};
    autofree float *row = xmalloc((unsigned long)s->cols, sizeof *row);
    for (int64_t n = 0; n < s->rows; n++) {
        quant_source_row(s, n, row);
        tensor_convert(tensor_rows(out, n, 1), (struct tensor){row, DT_F32, 1, s->cols, s->cols});
    }
    return out;
}
