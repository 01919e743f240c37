/* config_qwen.c - hyperparameters of the Qwen3.5 family: Gated DeltaNet hybrids, dense or with experts.
 *
 * One file serves Qwen3.5, 3.6, 3.8 and what is trained from them.  A layer of the file is two of ours:
 * a mixer, Gated DeltaNet or gated attention, and a SwiGLU MLP or a mixture of such experts.  What the
 * code that defines the family always does, whatever its files say (norms of 1 + w, normalised routing,
 * an output gate), is not read; a key that says otherwise is refused.
 */
#include "model/config_impl.h"

#include <math.h>
#include <string.h>

/* ---- which model --------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *architecture;
    bool moe, text;
} known[] = {
    {"qwen3_5", "Qwen3_5ForConditionalGeneration", false, false},
    {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", true, false},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", false, true},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", true, true},
};
enum { KNOWN = sizeof known / sizeof *known };

bool config_is_qwen(const struct reader *config)
{
    const char *type = json_string_value(reader_get(config, "model_type"));
    const char *named = json_string_value(json_array_get(reader_get(config, "architectures"), 0));
    return (type && !strncmp(type, "qwen", 4)) || (named && !strncmp(named, "Qwen", 4));
}

/* The row of `known`; -1 after a refusal. */
static int find_kind(struct reader *config)
{
    const char *type = json_string_value(reader_get(config, "model_type"));
    const char *named = json_string_value(json_array_get(reader_get(config, "architectures"), 0));
    for (int i = 0; i < KNOWN; i++) {
        bool same_type = type && !strcmp(type, known[i].type);
        bool same_name = named && !strcmp(named, known[i].architecture);
        if ((same_type && (same_name || !named)) || (same_name && !type))
            return i;
    }
    reader_refuse(config,
                  "'model_type' is '%s' and 'architectures' names '%s'; of this family qwen3_5 and "
                  "qwen3_5_moe are implemented",
                  type ? type : "", named ? named : "");
    return -1;
}

/* ---- layers -------------------------------------------------------------------------------------------- */

static bool is_attention(struct reader *r, const json_t *types, int interval, int i)
{
    const char *name = json_string_value(json_array_get(types, (size_t)i));
    bool full = name && !strcmp(name, "full_attention"), every = interval && (i + 1) % interval == 0;
    if (types && !full && (!name || strcmp(name, "linear_attention") != 0))
        reader_refuse(r,
                      "'layer_types' has '%s' for layer %d; implemented are linear_attention and "
                      "full_attention",
                      name ? name : "no text", i);
    if (types && interval && full != every)
        reader_refuse(r, "'layer_types' and 'full_attention_interval' disagree on layer %d", i);
    return types ? full : every;
}

/* The kinds of layers: a list, a rule that every nth is attention, or both. */
static void read_layers(struct reader *r, struct lm_config *c, bool moe)
{
    int n = reader_int(r, "num_hidden_layers", 1, CONFIG_MAX_LAYERS / 2, -1);
    const json_t *types = reader_get(r, "layer_types");
    int interval = reader_int(r, "full_attention_interval", 1, CONFIG_MAX_LAYERS, types ? 0 : 4);
    if (types && json_array_size(types) != (size_t)n)
        reader_refuse(r, "'layer_types' has %zu entries for %d layers", json_array_size(types), n);
    if (reader_get(r, "mlp_only_layers") && json_array_size(reader_get(r, "mlp_only_layers")))
        reader_refuse(r, "'mlp_only_layers' names layers, which is not implemented");
    int width = moe ? 0 : reader_int(r, "intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    for (int i = 0; i < n; i++) {
        c->pattern[2 * i] = is_attention(r, types, interval, i) ? LAYER_GATED_ATTENTION : LAYER_DELTA;
        c->pattern[2 * i + 1] = moe ? LAYER_SWIGLU_MOE : LAYER_SWIGLU;
        c->mlp[2 * i + 1] = width;
    }
    c->layers = 2 * n;
}

static void read_delta(struct reader *r, struct lm_config *c)
{
    struct delta_shape *d = &c->delta;
    d->key_heads = reader_int(r, "linear_num_key_heads", 1, CONFIG_MAX_HEADS, -1);
    d->value_heads = reader_int(r, "linear_num_value_heads", 1, CONFIG_MAX_HEADS, -1);
    d->key = reader_int(r, "linear_key_head_dim", 1, 512, -1);
    d->value = reader_int(r, "linear_value_head_dim", 1, 512, -1);
    d->conv = reader_int(r, "linear_conv_kernel_dim", 2, 16, -1);
    d->chunk = 64;
    if (d->value_heads % d->key_heads)
        reader_refuse(r, "%d value heads cannot share %d key heads", d->value_heads, d->key_heads);
    reader_only_text(r, "output_gate_type", "swish");
    reader_only_text(r, "mamba_ssm_dtype", "float32");
}

static void read_attention(struct reader *r, struct lm_config *c)
{
    c->q_heads = reader_int(r, "num_attention_heads", 1, CONFIG_MAX_HEADS, -1);
    c->kv_heads = reader_int(r, "num_key_value_heads", 1, CONFIG_MAX_HEADS, c->q_heads);
    c->head_dim = reader_int(r, "head_dim", 2, 1024, c->hidden / c->q_heads);
    if (c->q_heads % c->kv_heads)
        reader_refuse(r, "%d query heads cannot share %d key heads", c->q_heads, c->kv_heads);
    reader_only_bool(r, "attention_bias", false);
    reader_only_bool(r, "attn_output_gate", true);
    if (reader_get(r, "sliding_window"))
        reader_refuse(r, "'sliding_window' is set, which is not implemented");
}

static void read_moe(struct reader *r, struct moe_config *m)
{
    struct route_shape *s = &m->route;
    s->experts = reader_int(r, "num_experts", 1, CONFIG_MAX_EXPERTS, -1);
    s->chosen = reader_int(r, "num_experts_per_tok", 1, CONFIG_MAX_EXPERTS, -1);
    s->groups = s->groups_kept = 1;
    s->normalise = s->softmax = true;
    s->scale = 1;
    if (s->chosen > s->experts)
        reader_refuse(r, "'num_experts_per_tok' is %d of %d experts", s->chosen, s->experts);
    m->width = reader_int(r, "moe_intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    m->shared = reader_int(r, "shared_expert_intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    reader_only_bool(r, "norm_topk_prob", true);
    if (reader_int(r, "decoder_sparse_step", 0, CONFIG_MAX_LAYERS, 1) != 1)
        reader_refuse(r, "'decoder_sparse_step' is not 1, which is not implemented");
}

/* ---- positions ----------------------------------------------------------------------------------------- */

/* Frequencies of time, height and width; without the key those of the published models. */
static void read_section(struct reader *r, struct rope_shape *p, bool vision)
{
    static const int published[3] = {11, 11, 10};
    const json_t *v = reader_get(r, "mrope_section");
    int half = p->dims / 2, sum = 0;
    if (v && json_array_size(v) != 3)
        reader_refuse(r, "'mrope_section' is not three numbers");
    for (size_t i = 0; i < 3; i++) {
        double x = v ? reader_number(json_array_get(v, i)) : half == 32 ? published[i] : i ? 0 : half;
        if (!(x >= 0 && x <= half) || x != floor(x)) {
            reader_refuse(r, "'mrope_section' has an entry that is not a whole number from 0 to %d", half);
            return;
        }
        p->section[i] = (int)x;
        sum += p->section[i];
    }
    if (sum != half)
        reader_refuse(r, "'mrope_section' has %d frequencies; the rotated dimensions have %d", sum, half);
    if (vision && !v && half != 32)
        reader_refuse(r, "'mrope_section' is missing");
}

/* In rope_parameters, or in older files some of it beside it. */
static void read_rope(struct reader *r, struct lm_config *c, bool vision)
{
    struct reader in = reader_inside(r, "rope_parameters|rope_scaling");
    struct reader *where = in.object ? &in : r;
    const char *type = json_string_value(reader_get(where, "rope_type|type"));
    if (in.object && type && strcmp(type, "default") != 0 && strcmp(type, "mrope") != 0)
        reader_refuse(&in, "'rope_type' is '%s'; only 'default' is implemented", type);
    c->rope.theta = reader_float(reader_get(where, "rope_theta") ? where : r, "rope_theta", 1, 1e12, 1e4);
    float part = reader_float(reader_get(where, "partial_rotary_factor") ? where : r, "partial_rotary_factor",
                              0, 1, 0.25);
    double dims = (double)part * c->head_dim;
    c->rope.dims = (int)lrint(dims);
    if (c->rope.dims < 2 || c->rope.dims % 2 || fabs(dims - c->rope.dims) > 1e-3)
        reader_refuse(where, "'partial_rotary_factor' leaves %g of %d dimensions, not an even number of them",
                      dims, c->head_dim);
    reader_only_bool(where, "mrope_interleaved", true);
    read_section(where, &c->rope, vision);
}

/* ---- vision -------------------------------------------------------------------------------------------- */

static void read_tower(struct reader *r, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    v->hidden = reader_int(r, "hidden_size", 1, CONFIG_MAX_SIZE, -1);
    v->blocks = reader_int(r, "depth", 1, CONFIG_MAX_LAYERS, -1);
    v->heads = reader_int(r, "num_heads", 1, CONFIG_MAX_HEADS, -1);
    v->mlp = reader_int(r, "intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    v->patch = reader_int(r, "patch_size", 2, 64, -1);
    v->frames = reader_int(r, "temporal_patch_size", 1, 8, -1);
    v->merge = reader_int(r, "spatial_merge_size", 2, 2, 2);
    v->projector = v->merge * v->merge * v->hidden;
    int positions = reader_int(r, "num_position_embeddings", 1, 1 << 20, -1);
    v->table_side = (int)lrint(sqrt(positions));
    if (v->table_side * v->table_side != positions)
        reader_refuse(r, "'num_position_embeddings' is %d, which is no square", positions);
    if (v->hidden % v->heads || v->hidden / v->heads % 4)
        reader_refuse(r, "%d columns cannot be split into %d heads of a multiple of 4", v->hidden, v->heads);
    int out = reader_int(r, "out_hidden_size", 1, CONFIG_MAX_SIZE, c->lm.hidden);
    if (out != c->lm.hidden)
        reader_refuse(r, "'out_hidden_size' is %d, but the language model's 'hidden_size' is %d", out,
                      c->lm.hidden);
    (void)reader_int(r, "in_channels", 3, 3, 3);
    reader_only_text(r, "hidden_act", "gelu_pytorch_tanh");
    if (json_array_size(reader_get(r, "deepstack_visual_indexes")))
        reader_refuse(r, "'deepstack_visual_indexes' is not empty, which is not implemented");
    const char *type = json_string_value(reader_get(r, "model_type"));
    if (type && strncmp(type, "qwen3_5", 7) != 0)
        reader_refuse(r, "'model_type' is '%s'; only towers of qwen3_5 are implemented", type);
}

static void same_int(struct reader *r, const char *key, int want)
{
    int have = reader_int(r, key, 1, CONFIG_MAX_SIZE, want);
    if (have != want)
        reader_refuse(r, "'%s' is %d, but config.json says %d", key, have, want);
}

/* Bounds of a picture's pixels.  The newer spelling calls them edges; they are pixels all the same. */
static void read_pixels(struct reader *pre, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    enum { CELLS = 64, MOST_CELLS = 16384 }; /* of published files, where no file says otherwise */
    int cell = v->patch * v->merge * v->patch * v->merge;
    for (int i = 0; i < 3; i++) {
        c->mean[i] = c->std[i] = 0.5f;
    }
    v->min_pixels = CELLS * cell;
    v->max_pixels = MOST_CELLS * cell;
    v->max_patches = v->max_pixels / (v->patch * v->patch);
    if (!pre->object)
        return;
    struct reader size = reader_inside(pre, "size");
    struct reader *from = size.object && reader_get(&size, "shortest_edge|longest_edge") ? &size : pre;
    v->min_pixels = reader_int(from, "shortest_edge|min_pixels", 1, 1 << 28, v->min_pixels);
    v->max_pixels = reader_int(from, "longest_edge|max_pixels", 1, 1 << 28, v->max_pixels);
    if (v->max_pixels < v->min_pixels || v->max_pixels < cell)
        reader_refuse(from, "at most %d pixels and at least %d cannot both hold", v->max_pixels,
                      v->min_pixels);
    v->max_patches = v->max_pixels / (v->patch * v->patch);
    same_int(pre, "patch_size", v->patch);
    same_int(pre, "merge_size", v->merge);
    same_int(pre, "temporal_patch_size", v->frames);
    config_read_triple(pre, "image_mean", c->mean);
    config_read_triple(pre, "image_std", c->std);
    for (int i = 0; i < 3; i++)
        if (!(c->std[i] > 1e-6f))
            reader_refuse(pre, "'image_std' has an entry that is not positive");
}

static void read_marks(struct reader *config, struct model_config *c)
{
    c->image_token = reader_int(config, "image_token_id", 0, CONFIG_MAX_VOCAB, -1);
    c->image_open = reader_int(config, "vision_start_token_id", 0, CONFIG_MAX_VOCAB, -1);
    c->image_close = reader_int(config, "vision_end_token_id", 0, CONFIG_MAX_VOCAB, -1);
    int vocab = c->lm.vocab;
    if (c->image_token >= vocab || c->image_open >= vocab || c->image_close >= vocab)
        reader_refuse(config, "the ids of image tokens are not below 'vocab_size', %d", vocab);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void read_language(struct reader *config, struct reader *r, struct lm_config *c, bool moe)
{
    c->hidden = reader_int(r, "hidden_size", 1, CONFIG_MAX_SIZE, -1);
    read_layers(r, c, moe);
    read_delta(r, c);
    read_attention(r, c);
    if (moe)
        read_moe(r, &c->moe);
    reader_only_text(r, "hidden_act", "silu");
    c->eps = reader_float(r, "rms_norm_eps", 0, 1, 1e-6);
    c->vocab = reader_int(r, "vocab_size", 1, CONFIG_MAX_VOCAB, -1);
    c->max_tokens = reader_int(r, "max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 32768);
    c->tied =
        reader_bool(reader_get(config, "tie_word_embeddings") ? config : r, "tie_word_embeddings", false);
}

int config_limit_pixels(struct model_config *c, int least, int most, struct err *e)
{
    struct vit_config *v = &c->vit;
    int cell = v->patch * v->merge * v->patch * v->merge;
    if (!least && !most)
        return 0;
    if (!c->vision || c->family != FAMILY_QWEN35)
        return err_set(e, ERR_USAGE,
                       "--min-pixels and --max-pixels are for models whose pictures have any size");
    v->max_pixels = most ? most : v->max_pixels > least ? v->max_pixels : least;
    v->min_pixels = least ? least : v->min_pixels < v->max_pixels ? v->min_pixels : v->max_pixels;
    if (v->max_pixels < cell || v->min_pixels > v->max_pixels)
        return err_set(e, ERR_USAGE,
                       "pictures cannot have at least %d and at most %d pixels; %d make one token",
                       v->min_pixels, v->max_pixels, cell);
    v->max_patches = v->max_pixels / (v->patch * v->patch);
    return 0;
}

void config_read_qwen(struct reader *config, struct reader *pre, struct model_config *c)
{
    int kind = find_kind(config);
    if (kind < 0)
        return;
    struct reader text = reader_inside(config, "text_config"), vit = reader_inside(config, "vision_config");
    struct reader *r = known[kind].text && !text.object ? config : &text;
    c->family = FAMILY_QWEN35;
    c->vision = vit.object && !known[kind].text && !reader_bool(config, "language_model_only", false);
    if (!r->object) {
        reader_refuse(config, "'text_config' is missing");
        return;
    }
    read_language(config, r, &c->lm, known[kind].moe);
    read_rope(r, &c->lm, c->vision);
    c->image_token = c->image_open = c->image_close = -1;
    if (!c->vision)
        return;
    read_tower(&vit, c);
    read_pixels(pre, c);
    read_marks(config, c);
}
