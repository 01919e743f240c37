/* weights_qwen.c - binds the tensors of the language models of Qwen3.5, Qwen3-VL and Qwen2.5-VL
 * (weights.h).
 *
 * A layer in the file is two layers here, a mixer and an MLP. Most norms of Qwen3.5 multiply by 1 + w,
 * which is the value kept here; the norm inside a Gated DeltaNet layer and the norms of the other models
 * multiply by w. Names: model.language_model.X if the model has a vision encoder, model.X in a text model,
 * lm_head.weight in both. GGUF files already contain 1 + w and -exp(A_log). */
#include "model/weights_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the name of a part of layer i, converted to the file's numbering. */
static const char *name_of(const struct binder *x, int i, const char *part)
{
    static _Thread_local char name[192];
    snprintf(name, sizeof name, "%slayers.%d.%s", x->body, i / 2, part);
    return name;
}

static struct weight *matrix(struct binder *x, int i, const char *part, int64_t rows, int64_t cols)
{
    return binder_matrix(x, ROLE_LINEAR, name_of(x, i, part), rows, cols);
}

/* Binds a norm: 1 + w, or w before Qwen3.5. */
static struct tensor norm_of(struct binder *x, const char *name, int64_t n)
{
    float *w = binder_numbers(x, binder_take_shape(x, name, SHAPE(n)));
    bool add = x->c->family == FAMILY_QWEN35 && !safetensors_is_gguf(x->s);
    for (int64_t i = 0; w && add && i < n; i++)
        w[i] += 1;
    return binder_put_numbers(x, w, DT_F32, 1, n);
}

static void bind_delta(struct binder *x, int i, struct delta_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    int64_t inner = config_inner(c), channels = config_conv_dim(c), heads = c->delta.value_heads,
            taps = c->delta.conv;
    w->qkv = matrix(x, i, "linear_attn.in_proj_qkv.weight", channels, c->hidden);
    w->z = matrix(x, i, "linear_attn.in_proj_z.weight", inner, c->hidden);
    /* a few rows that control the decay: never quantized here */
    w->a_proj = binder_matrix(x, ROLE_GATE, name_of(x, i, "linear_attn.in_proj_a.weight"), heads, c->hidden);
    w->b_proj = binder_matrix(x, ROLE_GATE, name_of(x, i, "linear_attn.in_proj_b.weight"), heads, c->hidden);
    const struct st_tensor *conv =
        binder_take_shape(x, name_of(x, i, "linear_attn.conv1d.weight"), SHAPE(channels, 1, taps));
    w->conv = binder_upload(x, conv, DT_F32, channels, taps);
    w->dt_bias = binder_vector(x, name_of(x, i, "linear_attn.dt_bias"), heads);
    float *a = binder_numbers(x, binder_take_shape(x, name_of(x, i, "linear_attn.A_log"), SHAPE(heads)));
    for (int64_t h = 0; a && h < heads && !safetensors_is_gguf(x->s); h++)
        a[h] = -expf(a[h]);
    w->a = binder_put_numbers(x, a, DT_F32, 1, heads);
    w->norm = binder_vector(x, name_of(x, i, "linear_attn.norm.weight"), c->delta.value);
    w->out_proj = matrix(x, i, "linear_attn.out_proj.weight", c->hidden, inner);
}

static void bind_attention(struct binder *x, int i, struct attention_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    int64_t q = (int64_t)c->q_heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    bool gate = c->pattern[i] == LAYER_GATED_ATTENTION;
    w->q = matrix(x, i, "self_attn.q_proj.weight", gate ? 2 * q : q, c->hidden);
    w->k = matrix(x, i, "self_attn.k_proj.weight", kv, c->hidden);
    w->v = matrix(x, i, "self_attn.v_proj.weight", kv, c->hidden);
    w->o = matrix(x, i, "self_attn.o_proj.weight", c->hidden, q);
    if (x->c->family == FAMILY_QWEN25VL) {
        w->q_bias = binder_vector(x, name_of(x, i, "self_attn.q_proj.bias"), q);
        w->k_bias = binder_vector(x, name_of(x, i, "self_attn.k_proj.bias"), kv);
        w->v_bias = binder_vector(x, name_of(x, i, "self_attn.v_proj.bias"), kv);
        return;
    }
    w->q_norm = norm_of(x, name_of(x, i, "self_attn.q_norm.weight"), c->head_dim);
    w->k_norm = norm_of(x, name_of(x, i, "self_attn.k_norm.weight"), c->head_dim);
}

static void bind_mlp(struct binder *x, int i, const char *front, int64_t width, struct mlp_weights *w)
{
    char part[64];
    int64_t hidden = x->c->lm.hidden;
    snprintf(part, sizeof part, "%s.gate_proj.weight", front);
    w->gate = matrix(x, i, part, width, hidden);
    snprintf(part, sizeof part, "%s.up_proj.weight", front);
    w->up = matrix(x, i, part, width, hidden);
    snprintf(part, sizeof part, "%s.down_proj.weight", front);
    w->down = matrix(x, i, part, hidden, width);
}

/* ---- experts ------------------------------------------------------------------------------------------- */

/* Returns a tensor of all experts, in some files with .weight after the name; NULL: they are stored
 * separately. */
static const struct st_tensor *stacked(struct binder *x, int i, const char *part, const int64_t shape[3])
{
    char name[192];
    snprintf(name, sizeof name, "%s", name_of(x, i, part));
    if (!safetensors_find(x->s, name))
        snprintf(name + strlen(name), sizeof name - strlen(name), ".weight");
    return safetensors_find(x->s, name) ? binder_take_shape(x, name, 3, shape) : NULL;
}

/* Binds rows [first, first + rows) of the transposed matrix k of a tensor [E, cols, all], from a
 * transposed copy. */
static struct weight *part_across(struct binder *x, const struct st_tensor *t, int64_t k, int64_t first,
                                  int64_t rows, int64_t cols)
{
    size_t each = dtype_size(t->dtype), all = (size_t)t->shape[2];
    const char *from = (const char *)t->data + ((size_t)(k * cols) * all + (size_t)first) * each;
    struct bind_options packed = *x->o;
    struct st_tensor one = *t;
    bool read = !x->o->shapes_only && !binder_makes(x);
    autofree char *to = read ? xmalloc((unsigned long)(rows * cols), each) : NULL;
    for (int64_t r = 0; read && r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            memcpy(to + (size_t)(r * cols + c) * each, from + ((size_t)c * all + (size_t)r) * each, each);
    packed.mapped = false;
    one.data = to;
    one.bytes = (size_t)(rows * cols) * each;
    const struct bind_options *given = x->o;
    x->o = &packed;
    struct stored m = binder_plain(&one, rows, cols);
    struct weight *w = binder_weight(x, ROLE_LINEAR, &m);
    x->o = given;
    return w;
}

/* Stacked experts of one layer: gate and up rows together, and down. */
struct stack {
    const struct st_tensor *both, *down;
    bool both_across, down_across; /* stored transposed */
};

/* Returns bit 0 for a tensor of E matrices [rows, cols], bit 1 for [cols, rows]. */
static int orientations(const struct st_tensor *t, int64_t rows, int64_t cols)
{
    if (!t || t->dims != 3)
        return 0;
    return (t->shape[1] == rows && t->shape[2] == cols) | (t->shape[1] == cols && t->shape[2] == rows) << 1;
}

/* Finds whether stacked experts are transposed. Qwen3-VL is published with [E, D, 2M] and [E, M, D];
 * transformers from 5.24 saves [E, 2M, D] and [E, D, M]. If one of the tensors is square (2M = D or M =
 * D), the other is not and decides. */
static void find_orientations(struct binder *x, int i, struct stack *s)
{
    int64_t width = x->c->lm.moe.width, hidden = x->c->lm.hidden;
    if (x->c->family != FAMILY_QWEN3VL)
        return;
    int both = orientations(safetensors_find(x->s, name_of(x, i, "mlp.experts.gate_up_proj")), 2 * width,
                            hidden),
        down = orientations(safetensors_find(x->s, name_of(x, i, "mlp.experts.down_proj")), hidden, width);
    s->both_across = (both == 3 ? down : both) == 2;
    s->down_across = (down == 3 ? both : down) == 2;
}

static void find_stack(struct binder *x, int i, struct stack *s)
{
    const struct lm_config *c = &x->c->lm;
    int64_t n = c->moe.route.experts, width = c->moe.width, hidden = c->hidden;
    *s = (struct stack){0};
    find_orientations(x, i, s);
    s->both = stacked(x, i, "mlp.experts.gate_up_proj",
                      s->both_across ? (const int64_t[]){n, hidden, 2 * width}
                                     : (const int64_t[]){n, 2 * width, hidden});
    s->down =
        stacked(x, i, "mlp.experts.down_proj",
                s->down_across ? (const int64_t[]){n, width, hidden} : (const int64_t[]){n, hidden, width});
}

/* Binds part `part` of `parts` of expert k, each of `rows` rows. */
static struct weight *expert_part(struct binder *x, const struct st_tensor *t, bool across, int64_t k,
                                  int part, int parts, int64_t rows, int64_t cols)
{
    return across ? part_across(x, t, k, part * rows, rows, cols)
                  : binder_part(x, t, (parts * k + part) * rows, rows, cols);
}

static struct weight *expert_matrix(struct binder *x, int i, int64_t k, const char *which, int64_t rows,
                                    int64_t cols)
{
    char part[96];
    snprintf(part, sizeof part, "mlp.experts.%lld.%s.weight", (long long)k, which);
    return matrix(x, i, part, rows, cols);
}

static void bind_experts(struct binder *x, int i, struct moe_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    int64_t n = c->moe.route.experts, width = c->moe.width, hidden = c->hidden;
    struct stack s;
    w->gates = xcalloc((unsigned long)n, sizeof *w->gates);
    w->up = xcalloc((unsigned long)n, sizeof *w->up);
    w->down = xcalloc((unsigned long)n, sizeof *w->down);
    w->experts = (struct experts){(int)n, w->up, w->down, w->gates};
    find_stack(x, i, &s);
    const struct st_tensor *gates =
        stacked(x, i, "mlp.experts.gate_proj", (const int64_t[]){n, width, hidden});
    const struct st_tensor *ups = stacked(x, i, "mlp.experts.up_proj", (const int64_t[]){n, width, hidden});
    for (int64_t k = 0; k < n && !binder_stopped(x); k++) {
        if (s.both) {
            w->gates[k] = expert_part(x, s.both, s.both_across, k, 0, 2, width, hidden);
            w->up[k] = expert_part(x, s.both, s.both_across, k, 1, 2, width, hidden);
        } else if (gates && ups) {
            w->gates[k] = binder_part(x, gates, k * width, width, hidden);
            w->up[k] = binder_part(x, ups, k * width, width, hidden);
        } else {
            w->gates[k] = expert_matrix(x, i, k, "gate_proj", width, hidden);
            w->up[k] = expert_matrix(x, i, k, "up_proj", width, hidden);
        }
        w->down[k] = s.down ? expert_part(x, s.down, s.down_across, k, 0, 1, hidden, width)
                            : expert_matrix(x, i, k, "down_proj", hidden, width);
    }
    if (s.both && s.both_across)
        binder_done(x, s.both);
    if (s.down && s.down_across)
        binder_done(x, s.down);
}

static void bind_moe(struct binder *x, int i, struct moe_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    w->gate = binder_router(x, name_of(x, i, "mlp.gate.weight"), c->moe.route.experts, c->hidden);
    bind_experts(x, i, w);
    if (!c->moe.shared)
        return;
    bind_mlp(x, i, "mlp.shared_expert", c->moe.shared, &w->shared);
    w->shared_gate =
        binder_matrix(x, ROLE_GATE, name_of(x, i, "mlp.shared_expert_gate.weight"), 1, c->hidden);
}

static void bind_layer(struct binder *x, int i, struct layer_weights *w)
{
    const struct lm_config *c = &x->c->lm;
    w->norm = norm_of(x, name_of(x, i, i % 2 ? "post_attention_layernorm.weight" : "input_layernorm.weight"),
                      c->hidden);
    switch (c->pattern[i]) {
    case LAYER_DELTA:
        bind_delta(x, i, &w->delta);
        break;
    case LAYER_GATED_ATTENTION:
    case LAYER_ROTARY_ATTENTION:
        bind_attention(x, i, &w->att);
        break;
    case LAYER_SWIGLU_MOE:
        bind_moe(x, i, &w->moe);
        break;
    default:
        bind_mlp(x, i, "mlp", c->mlp[i], &w->mlp);
    }
}

/* ---- the ends ------------------------------------------------------------------------------------------ */

/* Ignores lm_head of a tied model, which some files store in addition to the embedding; warns if they
 * differ. */
static void drop_second_head(struct binder *x, const char *embed)
{
    const struct st_tensor *first = safetensors_find(x->s, embed),
                           *second = safetensors_find(x->s, "lm_head.weight");
    if (!first || !second)
        return;
    x->used[second - safetensors_at(x->s, 0)] = true;
    size_t n = first->bytes < second->bytes ? first->bytes : second->bytes;
    if (!x->o->shapes_only && !x->o->random &&
        (first->bytes != second->bytes || memcmp(first->data, second->data, n) != 0))
        warn("'lm_head.weight' differs from the embedding although 'tie_word_embeddings' is true: ignored");
    binder_done(x, second);
}

static void bind_ends(struct binder *x, struct model_weights *w)
{
    char embed[96], name[96];
    const struct lm_config *c = &x->c->lm;
    snprintf(embed, sizeof embed, "%sembed_tokens.weight", x->body);
    const struct st_tensor *t = safetensors_find(x->s, embed);
    if (!t || !t->gguf)
        t = binder_take(x, embed);
    if (t && (t->dims != 2 || t->shape[0] < c->vocab || t->shape[0] > 1 << 22))
        binder_fail(x, "tensor '%s' has fewer than the %d rows of 'vocab_size'", embed, c->vocab);
    if (!t || t->dims != 2 || binder_stopped(x))
        return;
    w->vocab = (int)t->shape[0];
    binder_embedding(x, binder_take_shape(x, embed, SHAPE(w->vocab, c->hidden)), w);
    snprintf(name, sizeof name, "%snorm.weight", x->body);
    w->norm = norm_of(x, name, c->hidden);
    w->head = binder_matrix(x, ROLE_HEAD, c->tied ? embed : "lm_head.weight", w->vocab, c->hidden);
    if (c->tied)
        drop_second_head(x, embed);
}

bool binder_find_qwen(struct binder *x)
{
    static const char *const bodies[] = {"model.language_model.", "model."};
    for (int i = 0; i < 2; i++) {
        char name[96];
        snprintf(x->body, sizeof x->body, "%s", bodies[i]);
        snprintf(name, sizeof name, "%sembed_tokens.weight", x->body);
        if (safetensors_find(x->s, name))
            return true;
    }
    binder_fail(x, "tensor '%s' is missing",
                safetensors_spelling(x->s, "model.language_model.embed_tokens.weight"));
    return false;
}

void binder_qwen(struct binder *x, struct model_weights *w)
{
    bind_ends(x, w);
    for (int i = 0; i < x->c->lm.layers; i++)
        bind_layer(x, i, &w->layers[i]);
}

bool binder_unused_qwen(const struct st_tensor *t)
{
    static const char *const fronts[] = {"mtp.", "model.mtp."};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        if (!strncmp(t->name, fronts[i], strlen(fronts[i])))
            return true;
    return false;
}
