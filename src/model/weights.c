/* weights.c - binds the tensors of Nemotron models to the structs of weights.h.
 *
 * A binder visits the model in the order of the forward pass and takes each tensor by name. It stores the
 * first failure and returns empty tensors afterwards, so the lists below need no checks. The published
 * checkpoint uses names language_model.backbone.X; a text model omits the first part, and newer tools
 * write model.X for backbone.X. */
#include "base/buf.h"
#include "model/weights_impl.h"
#include "ops/gguf_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- language model ------------------------------------------------------------------------------------ */

static const char *layer_name(const struct binder *x, int layer, const char *part)
{
    static _Thread_local char name[192];
    snprintf(name, sizeof name, "%slayers.%d.%s", x->body, layer, part);
    return name;
}

static struct weight *layer_matrix(struct binder *x, int layer, const char *part, int64_t rows, int64_t cols)
{
    return binder_matrix(x, ROLE_LINEAR, layer_name(x, layer, part), rows, cols);
}

static struct tensor layer_vector(struct binder *x, int layer, const char *part, int64_t n)
{
    return binder_vector(x, layer_name(x, layer, part), n);
}

static void bind_mamba(struct binder *x, int i, struct mamba_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    int64_t inner = config_inner(c), channels = config_conv_dim(c), heads = c->ssm.heads, taps = c->ssm.conv;
    w->in_proj = layer_matrix(x, i, "mixer.in_proj.weight", config_proj_rows(c), c->hidden);
    const struct st_tensor *conv =
        binder_take_shape(x, layer_name(x, i, "mixer.conv1d.weight"), SHAPE(channels, 1, taps));
    w->conv = binder_upload(x, conv, DT_F32, channels, taps);
    if (c->conv_bias)
        w->conv_bias = layer_vector(x, i, "mixer.conv1d.bias", channels);
    w->dt_bias = layer_vector(x, i, "mixer.dt_bias", heads);
    w->d = layer_vector(x, i, "mixer.D", heads);
    float *a = binder_numbers(x, binder_take_shape(x, layer_name(x, i, "mixer.A_log"), SHAPE(heads)));
    for (int64_t h = 0; a && h < heads; h++)
        a[h] = -expf(a[h]);
    w->a = binder_put_numbers(x, a, DT_F32, 1, heads);
    w->constants = (struct ssm_const){w->a.data, w->dt_bias.data, w->d.data};
    w->norm = layer_vector(x, i, "mixer.norm.weight", inner);
    w->out_proj = layer_matrix(x, i, "mixer.out_proj.weight", c->hidden, inner);
}

static void bind_attention(struct binder *x, int i, struct attention_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    int64_t q = (int64_t)c->q_heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    w->q = layer_matrix(x, i, "mixer.q_proj.weight", q, c->hidden);
    w->k = layer_matrix(x, i, "mixer.k_proj.weight", kv, c->hidden);
    w->v = layer_matrix(x, i, "mixer.v_proj.weight", kv, c->hidden);
    w->o = layer_matrix(x, i, "mixer.o_proj.weight", c->hidden, q);
}

struct weight *binder_router(struct binder *x, const char *name, int64_t rows, int64_t cols)
{
    const struct st_tensor *t = binder_take_shape(x, name, SHAPE(rows, cols));
    if (!t)
        return NULL;
    autofree void *copy = NULL;
    struct weight *w = binder_makes(x)
                           ? binder_synthetic_weight(x, t, QUANT_NONE, DT_F32, rows, cols)
                           : x->b->ops->pack(x->b, binder_host_view(x, t, rows, cols, &copy), DT_F32);
    binder_done(x, t);
    return binder_own_weight(x, w);
}

struct weight *binder_part(struct binder *x, const struct st_tensor *t, int64_t first, int64_t rows,
                           int64_t cols)
{
    char name[160];
    struct st_tensor one = *t;
    size_t row = t->gguf ? gguf_row_bytes(t->gguf, cols) : (size_t)cols * dtype_size(t->dtype);
    snprintf(name, sizeof name, "%s.%lld", t->name, (long long)(first / rows));
    one.name = name;
    one.bytes = (size_t)rows * row;
    one.data = (const char *)t->data + (size_t)first * row;
    struct stored m = binder_plain(&one, rows, cols);
    if (one.gguf && !binder_makes(x) && !binder_check_blocks(x, &one, 1))
        return NULL;
    if (t->gguf == GGML_NVFP4 && !binder_part_scale(x, t, first / t->shape[1], &m.source.scale))
        return NULL;
    struct weight *w = binder_weight(x, ROLE_LINEAR, &m);
    binder_done(x, &one);
    return w;
}

/* Binds a matrix for each expert: separate tensors, or slices of one with three dimensions. The caller
 * frees the list. */
static struct weight **expert_matrices(struct binder *x, int layer, const char *part, int64_t rows,
                                       int64_t cols)
{
    int count = x->c->lm.moe.route.experts;
    struct weight **w = xcalloc((unsigned long)count, sizeof *w);
    char name[64];
    snprintf(name, sizeof name, "mixer.experts.%s", part);
    bool stacked = safetensors_find(x->s, layer_name(x, layer, name));
    const struct st_tensor *all =
        stacked ? binder_take_shape(x, layer_name(x, layer, name), SHAPE(count, rows, cols)) : NULL;
    for (int i = 0; i < count && !binder_stopped(x); i++) {
        if (all) {
            w[i] = binder_part(x, all, i * rows, rows, cols);
        } else if (!stacked) {
            snprintf(name, sizeof name, "mixer.experts.%d.%s.weight", i, part);
            w[i] = binder_matrix(x, ROLE_LINEAR, layer_name(x, layer, name), rows, cols);
        }
    }
    return w;
}

static void bind_moe(struct binder *x, int i, struct moe_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    int64_t inner = c->moe.latent ? c->moe.latent : c->hidden;
    w->gate = binder_router(x, layer_name(x, i, "mixer.gate.weight"), c->moe.route.experts, c->hidden);
    w->bias = layer_vector(x, i, "mixer.gate.e_score_correction_bias", c->moe.route.experts);
    w->up = expert_matrices(x, i, "up_proj", c->moe.width, inner);
    w->down = expert_matrices(x, i, "down_proj", inner, c->moe.width);
    w->experts = (struct experts){c->moe.route.experts, w->up, w->down, NULL};
    if (c->moe.shared) {
        w->shared.up = layer_matrix(x, i, "mixer.shared_experts.up_proj.weight", c->moe.shared, c->hidden);
        w->shared.down =
            layer_matrix(x, i, "mixer.shared_experts.down_proj.weight", c->hidden, c->moe.shared);
    }
    if (c->moe.latent) {
        w->latent_down = layer_matrix(x, i, "mixer.fc1_latent_proj.weight", inner, c->hidden);
        w->latent_up = layer_matrix(x, i, "mixer.fc2_latent_proj.weight", c->hidden, inner);
    }
}

static void bind_layer(struct binder *x, int i, struct layer_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    w->norm = layer_vector(x, i, "norm.weight", c->hidden);
    switch (c->pattern[i]) {
    case LAYER_MAMBA:
        bind_mamba(x, i, &w->mamba);
        break;
    case LAYER_ATTENTION:
        bind_attention(x, i, &w->att);
        break;
    case LAYER_MOE:
        bind_moe(x, i, &w->moe);
        break;
    default:
        w->mlp.up = layer_matrix(x, i, "mixer.up_proj.weight", c->mlp[i], c->hidden);
        w->mlp.down = layer_matrix(x, i, "mixer.down_proj.weight", c->hidden, c->mlp[i]);
    }
}

/* Finds the spelling of names in this checkpoint, by its embedding or, if that is missing, its first
 * layer. */
static bool find_names(struct binder *x)
{
    static const char *const fronts[] = {"language_model.", ""};
    static const char *const bodies[] = {"backbone.", "model."};
    static const char *const witnesses[] = {"embeddings.weight", "layers.0.norm.weight"};
    for (int i = 0; i < 8; i++) {
        char name[128];
        snprintf(x->head, sizeof x->head, "%s", fronts[i / 2 % 2]);
        snprintf(x->body, sizeof x->body, "%s%s", fronts[i / 2 % 2], bodies[i % 2]);
        snprintf(name, sizeof name, "%s%s", x->body, witnesses[i / 4]);
        if (safetensors_find(x->s, name))
            return true;
    }
    binder_fail(x, "tensor 'language_model.backbone.embeddings.weight' is missing");
    return false;
}

/* Allocates the embedding. A token reads one row of it, 10 KB in a large model, so a device that is short
 * of memory reads it from pinned host memory. */
static void place_embedding(struct binder *x, struct model_weights *w)
{
    int64_t rows = w->vocab, cols = x->c->lm.hidden;
    enum dtype t = binder_activation(x);
    if (x->o->embed_on_host && !x->o->shapes_only && x->b->ops->host_alloc)
        w->embed_pinned = x->b->ops->host_alloc(x->b, (size_t)rows * (size_t)cols * dtype_size(t));
    if (w->embed_pinned)
        w->embed = (struct tensor){w->embed_pinned, t, rows, cols, cols};
    else
        w->embed = binder_alloc(x, t, rows, cols);
}

/* Copies host rows to the embedding, starting with row `first`. */
static void fill_embedding(struct binder *x, struct model_weights *w, int64_t first, struct tensor host)
{
    struct tensor to = tensor_rows(w->embed, first, host.rows);
    if (w->embed_pinned)
        tensor_convert(to, host);
    else
        x->b->ops->upload(x->b, to, host);
}

/* Converts a table of a GGUF type for a device, which needs it in memory; an f32 copy of the whole table
 * would be too large. */
static void fill_from_codes(struct binder *x, const struct st_tensor *t, struct model_weights *w)
{
    enum { ROWS = 1024 };
    int64_t cols = x->c->lm.hidden;
    struct st_tensor part = *t;
    for (int64_t first = 0; first < w->vocab; first += ROWS) {
        void *copy;
        int64_t rows = w->vocab - first < ROWS ? w->vocab - first : ROWS;
        part.data = (const char *)t->data + gguf_row_bytes(t->gguf, cols) * (size_t)first;
        fill_embedding(x, w, first, binder_host_view(x, &part, rows, cols, &copy));
        free(copy);
    }
}

static void pack_embedding(struct binder *x, const struct st_tensor *t, struct model_weights *w)
{
    void *copy;
    if (!t)
        return;
    place_embedding(x, w);
    if (binder_makes(x)) {
        binder_make(x, t, w->embed);
    } else if (t->gguf && !x->o->shapes_only) {
        fill_from_codes(x, t, w);
    } else if (!x->o->shapes_only) {
        fill_embedding(x, w, 0, binder_host_view(x, t, w->vocab, x->c->lm.hidden, &copy));
        free(copy);
    }
    binder_done(x, t);
}

/* Binds the embedding. A token reads one row of it, so keeping it mapped costs little. */
void binder_embedding(struct binder *x, const struct st_tensor *t, struct model_weights *w)
{
    int64_t hidden = x->c->lm.hidden;
    if (t && t->gguf && binder_beside(x, t->name, "scale")) {
        binder_fail(x, "tensor '%s' has a separate scale, which is not supported for an embedding", t->name);
        return;
    }
    if (t && t->gguf && !x->o->random && x->b->ops->borrow) { /* rows are converted when tokens need them */
        w->embed_codes = binder_plain(t, w->vocab, hidden).source;
        binder_check_blocks(x, t, 64);
        binder_done(x, t);
        return;
    }
    w->embed_mapped = t && binder_stays_mapped(x, t, binder_activation(x));
    if (w->embed_mapped) {
        binder_check_mapped(x, t);
        w->embed = (struct tensor){(void *)(uintptr_t)t->data, t->dtype, w->vocab, hidden, hidden};
        binder_done(x, t);
    } else {
        pack_embedding(x, t, w);
    }
}

static void dequantize_embedding(struct binder *x, const char *name, struct model_weights *w)
{
    struct stored m;
    if (!binder_stored(x, name, w->vocab, x->c->lm.hidden, &m))
        return;
    place_embedding(x, w);
    if (binder_makes(x)) {
        binder_make(x, m.t, w->embed);
    } else if (!x->o->shapes_only) {
        struct tensor host = binder_dequantized(&m, DT_BF16);
        fill_embedding(x, w, 0, host);
        free(host.data);
    }
    binder_stored_free(&m);
    binder_done(x, m.t);
}

/* Binds embedding, final norm and lm_head. V is the number of rows of the embedding: published files pad
 * it beyond the tokenizer's vocabulary. */
static void bind_ends(struct binder *x, struct model_weights *w)
{
    char embed[128], name[128];
    int64_t hidden = x->c->lm.hidden;
    snprintf(embed, sizeof embed, "%sembeddings.weight", x->body);
    snprintf(name, sizeof name, "%sembeddings.weight_scale", x->body);
    bool quantized = safetensors_find(x->s, name) && safetensors_find(x->s, embed);
    const struct st_tensor *t = quantized ? safetensors_find(x->s, embed) : binder_take(x, embed);
    if (t && (t->dims != 2 || t->shape[0] < x->c->lm.vocab || t->shape[0] > 1 << 22))
        binder_fail(x, "tensor '%s' has fewer than the %d rows of 'vocab_size'", embed, x->c->lm.vocab);
    if (!t || binder_stopped(x) || t->dims != 2)
        return;
    w->vocab = (int)t->shape[0];
    if (quantized)
        dequantize_embedding(x, embed, w);
    else
        binder_embedding(x, binder_take_shape(x, embed, SHAPE(w->vocab, hidden)), w);
    snprintf(name, sizeof name, "%snorm_f.weight", x->body);
    w->norm = binder_vector(x, name, hidden);
    snprintf(name, sizeof name, "%slm_head.weight", x->head);
    w->head = binder_matrix(x, ROLE_HEAD, x->c->lm.tied && !safetensors_find(x->s, name) ? embed : name,
                            w->vocab, hidden);
}

static void bind_language(struct binder *x, struct model_weights *w)
{
    bind_ends(x, w);
    for (int i = 0; i < x->c->lm.layers; i++)
        bind_layer(x, i, &w->layers[i]);
}

/* ---- unused tensors ------------------------------------------------------------------------------------ */

/* Returns whether t is a layer scale, by the name of timm or of transformers 5, whose values are all 1.
 * Any other value belongs to another model. */
static bool is_unit_scale(struct binder *x, const struct st_tensor *t)
{
    static const char *const names[] = {".ls1", ".ls2", ".layer_scale1.lambda1", ".layer_scale2.lambda1"};
    bool scale = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        scale = scale || strstr(t->name, names[i]);
    if (!scale || !text_starts(t->name, VIT "blocks."))
        return false;
    if (t->dtype != DT_BF16 && t->dtype != DT_F32 && t->dtype != DT_F16)
        return false;
    if (x->o->shapes_only)
        return true;
    autofree float *v = binder_numbers(x, t);
    size_t n = t->bytes / dtype_size(t->dtype), ones = 0;
    for (size_t i = 0; i < n; i++)
        ones += v[i] == 1.0f;
    return ones == n;
}

/* Returns whether a tensor is not needed: buffers that repeat the config, and parts for training, sound
 * and video. */
static bool is_unused(struct binder *x, const struct st_tensor *t)
{
    static const char *const fronts[] = {
        "vision_model.radio_model.input_conditioner.",
        "vision_model.radio_model.summary_idxs",
        "vision_model.radio_model.adaptor",
        "vision_model.radio_model.feature_normalizer",
        VIT "patch_generator.video_embedder.",
        "sound_encoder.",
        "sound_projection.",
        "mtp.",
        "language_model.mtp.",
    };
    if (family_is_qwen(x->c->family))
        return binder_unused_qwen(t) || binder_unused_scale(x, t);
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        if (text_starts(t->name, fronts[i]))
            return true;
    return binder_unused_scale(x, t) || is_unit_scale(x, t);
}

static void check_extra(struct binder *x)
{
    int n = safetensors_count(x->s);
    for (int i = 0; i < n && !binder_stopped(x); i++) {
        const struct st_tensor *t = safetensors_at(x->s, i);
        if (x->used[i])
            continue;
        if (!is_unused(x, t))
            binder_fail(x, "tensor '%s' of %s is not part of this model", t->name, t->file);
        else if (x->o->ignored)
            x->o->ignored(x->o->look_arg, t);
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

int weights_bind(struct model_weights *w, const struct model_config *c, const struct safetensors *s,
                 struct backend *b, const struct bind_options *o, struct err *e)
{
    struct binder x = {.w = w, .c = c, .s = s, .b = b, .o = o, .e = e};
    int n = safetensors_count(s);
    x.used = xcalloc((unsigned long)n + 1, sizeof *x.used);
    for (int i = 0; i < n; i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        x.all += t->bytes;
        bool whole = t->dims == 2 && !strstr(t->name, "embeddings.") &&
                     !strstr(t->name, "embed_tokens."); /* embeddings are read row by row */
        x.awaited += whole && !binder_is_expert(t) ? t->bytes : 0;
    }
    *w = (struct model_weights){0};
    w->layers = xcalloc((unsigned long)c->lm.layers, sizeof *w->layers);
    w->vision.blocks = xcalloc((unsigned long)c->vit.blocks + 1, sizeof *w->vision.blocks);
    w->vision.deepstack = xcalloc((unsigned long)c->vit.n_deepstack + 1, sizeof *w->vision.deepstack);
    bool qwen = family_is_qwen(c->family);
    if (qwen ? binder_find_qwen(&x) : find_names(&x)) {
        (qwen ? binder_qwen : bind_language)(&x, w);
        if (c->vision)
            binder_vision(&x, &w->vision);
        check_extra(&x);
    }
    free(x.used);
    w->forms = binder_forms(&x);
    w->element_bytes = x.elements > 0 ? x.stored_bytes / x.elements : 0;
    if (x.failed)
        weights_free(w, c, b);
    return x.failed ? -1 : 0;
}

void weights_free(struct model_weights *w, const struct model_config *c, struct backend *b)
{
    for (int i = 0; i < w->n_tensors; i++)
        b->ops->free(b, &w->tensors[i]);
    if (w->embed_pinned)
        b->ops->host_free(b, w->embed_pinned);
    for (int i = 0; i < w->n_matrices; i++)
        b->ops->weight_free(b, w->matrices[i]);
    for (int i = 0; w->layers && i < c->lm.layers; i++) {
        free(w->layers[i].moe.up);
        free(w->layers[i].moe.down);
        free(w->layers[i].moe.gates);
    }
    free(w->forms);
    free(w->tensors);
    free(w->matrices);
    free(w->layers);
    free(w->vision.blocks);
    free(w->vision.deepstack);
    for (int i = 0; i < w->vision.extra.n; i++)
        free(w->vision.extra.list[i].name);
    free(w->vision.extra.list);
    *w = (struct model_weights){0};
}
