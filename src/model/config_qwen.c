/* config_qwen.c - reads the hyperparameters of Qwen's language models: the Gated DeltaNet hybrids of
 * Qwen3.5 and the attention-only Qwen3-VL and Qwen2.5-VL. Vision encoders: config_qwen_vision.c.
 *
 * The text models Qwen2 (also published as Qwen2.5) and Qwen3 are the language models of Qwen2.5-VL and
 * Qwen3-VL. One reader serves Qwen3.5, 3.6, 3.8 and models derived from them. A layer in the file is two
 * layers here: a mixer (Gated DeltaNet or attention) and a SwiGLU MLP or a mixture of such experts.
 * Properties that the reference code fixes regardless of the config (norms of 1 + w, normalized routing,
 * an output gate) are not read; a key that contradicts them is rejected. */
#include "model/config_impl.h"

#include <math.h>
#include <string.h>

/* ---- which model --------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *architecture;
    enum model_family family;
    bool moe, text; /* text: a model without a vision encoder, with its keys at the top level */
} known[] = {
    {"qwen3_5", "Qwen3_5ForConditionalGeneration", FAMILY_QWEN35, false, false},
    {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", FAMILY_QWEN35, true, false},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", FAMILY_QWEN35, false, true},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", FAMILY_QWEN35, true, true},
    {"qwen3_vl", "Qwen3VLForConditionalGeneration", FAMILY_QWEN3VL, false, false},
    {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", FAMILY_QWEN3VL, true, false},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", FAMILY_QWEN25VL, false, false},
    {"qwen2", "Qwen2ForCausalLM", FAMILY_QWEN25VL, false, true},
    {"qwen3", "Qwen3ForCausalLM", FAMILY_QWEN3VL, false, true},
};
enum { KNOWN = sizeof known / sizeof *known };

bool config_is_qwen(const struct reader *config)
{
    const char *type = json_string_value(reader_get(config, "model_type"));
    const char *named = json_string_value(json_array_get(reader_get(config, "architectures"), 0));
    return (type && !strncmp(type, "qwen", 4)) || (named && !strncmp(named, "Qwen", 4));
}

/* Returns the row of `known`, or -1 after reporting an error. */
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
    reader_refuse(
        config,
        "'model_type' is '%s' and 'architectures' names '%s'; of Qwen's models qwen3_5, qwen3_5_moe, "
        "qwen3_vl, qwen3_vl_moe, qwen2_5_vl and the text models qwen2 and qwen3 are implemented",
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

/* Reads the kinds of layers: a list, a rule that every n-th layer is attention, or both. Before Qwen3.5
 * all are attention. */
static void read_layers(struct reader *r, struct lm_config *c, enum model_family family, bool moe)
{
    int n = reader_int(r, "num_hidden_layers", 1, CONFIG_MAX_LAYERS / 2, -1);
    const json_t *types = reader_get(r, "layer_types");
    int interval = 1;
    char mixer = family == FAMILY_QWEN35 ? LAYER_GATED_ATTENTION : LAYER_ROTARY_ATTENTION;
    if (family == FAMILY_QWEN35)
        interval = reader_int(r, "full_attention_interval", 1, CONFIG_MAX_LAYERS, types ? 0 : 4);
    if (types && json_array_size(types) != (size_t)n)
        reader_refuse(r, "'layer_types' has %zu entries for %d layers", json_array_size(types), n);
    if (reader_get(r, "mlp_only_layers") && json_array_size(reader_get(r, "mlp_only_layers")))
        reader_refuse(r, "'mlp_only_layers' names layers, which is not implemented");
    int width = moe ? 0 : reader_int(r, "intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    for (int i = 0; i < n; i++) {
        c->pattern[2 * i] = is_attention(r, types, interval, i) ? mixer : LAYER_DELTA;
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

/* Checks the attention options. Qwen2.5-VL and the text models name a sliding window but state that it is
 * not used. */
static void check_attention(struct reader *r, enum model_family family, bool text)
{
    reader_only_bool(r, "attention_bias", false);
    reader_only_bool(r, "use_sliding_window", false);
    if (family == FAMILY_QWEN35)
        reader_only_bool(r, "attn_output_gate", true);
    if (family != FAMILY_QWEN25VL && !(text && family == FAMILY_QWEN3VL) && reader_get(r, "sliding_window"))
        reader_refuse(r, "'sliding_window' is set, which is not implemented");
}

static void read_attention(struct reader *r, struct lm_config *c, enum model_family family, bool text)
{
    c->q_heads = reader_int(r, "num_attention_heads", 1, CONFIG_MAX_HEADS, -1);
    c->kv_heads = reader_int(r, "num_key_value_heads", 1, CONFIG_MAX_HEADS, c->q_heads);
    c->head_dim = reader_int(r, "head_dim", 2, 1024, family == FAMILY_QWEN3VL ? -1 : c->hidden / c->q_heads);
    if (c->q_heads % c->kv_heads)
        reader_refuse(r, "%d query heads cannot share %d key heads", c->q_heads, c->kv_heads);
    check_attention(r, family, text);
}

static void read_moe(struct reader *r, struct moe_config *m, enum model_family family)
{
    struct route_shape *s = &m->route;
    s->experts = reader_int(r, family == FAMILY_QWEN3VL ? "num_experts|num_local_experts" : "num_experts", 1,
                            CONFIG_MAX_EXPERTS, -1);
    s->chosen = reader_int(r, "num_experts_per_tok", 1, CONFIG_MAX_EXPERTS, -1);
    s->groups = s->groups_kept = 1;
    s->normalise = s->softmax = true;
    s->scale = 1;
    if (s->chosen > s->experts)
        reader_refuse(r, "'num_experts_per_tok' is %d of %d experts", s->chosen, s->experts);
    m->width = reader_int(r, "moe_intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    if (family == FAMILY_QWEN35)
        m->shared = reader_int(r, "shared_expert_intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    reader_only_bool(r, "norm_topk_prob", true);
    if (reader_int(r, "decoder_sparse_step", 0, CONFIG_MAX_LAYERS, 1) != 1)
        reader_refuse(r, "'decoder_sparse_step' is not 1, which is not implemented");
}

/* ---- positions ----------------------------------------------------------------------------------------- */

/* Reads the number of frequencies for time, height and width. If the key is missing: the values of the
 * published Qwen3.5 models, or all frequencies for time in other text models. */
static void read_section(struct reader *r, struct rope_shape *p, bool published_split, bool vision)
{
    static const int published[3] = {11, 11, 10};
    const json_t *v = reader_get(r, "mrope_section");
    int half = p->dims / 2, sum = 0;
    if (v && json_array_size(v) != 3)
        reader_refuse(r, "'mrope_section' is not three numbers");
    for (size_t i = 0; i < 3; i++) {
        double x = v ? reader_number(json_array_get(v, i)) : published_split ? published[i] : i ? 0 : half;
        if (!(x >= 0 && x <= half) || x != floor(x)) {
            reader_refuse(r, "'mrope_section' has an entry that is not a whole number from 0 to %d", half);
            return;
        }
        p->section[i] = (int)x;
        sum += p->section[i];
    }
    if (sum != half)
        reader_refuse(r, "'mrope_section' has %d frequencies; the rotated dimensions have %d", sum, half);
    if (vision && !v && !published_split)
        reader_refuse(r, "'mrope_section' is missing");
}

/* Reads rope_parameters; in older files some of its keys are at the top level. */
static void read_rope(struct reader *r, struct lm_config *c, int kind, bool vision)
{
    enum model_family family = known[kind].family;
    struct reader in = reader_inside(r, "rope_parameters|rope_scaling");
    struct reader *where = in.object ? &in : r;
    const char *type = json_string_value(reader_get(where, "rope_type|type"));
    if (in.object && type && strcmp(type, "default") != 0 && strcmp(type, "mrope") != 0)
        reader_refuse(&in, "'rope_type' is '%s'; only 'default' is implemented", type);
    bool old = family != FAMILY_QWEN35; /* all dimensions of a head are rotated */
    c->rope.theta =
        reader_float(reader_get(where, "rope_theta") ? where : r, "rope_theta", 1, 1e12, old ? NAN : 1e4);
    float part = reader_float(reader_get(where, "partial_rotary_factor") ? where : r, "partial_rotary_factor",
                              old ? 1 : 0, 1, old ? 1 : 0.25);
    c->rope.sectioned = family == FAMILY_QWEN25VL;
    double dims = (double)part * c->head_dim;
    c->rope.dims = (int)lrint(dims);
    if (c->rope.dims < 2 || c->rope.dims % 2 || fabs(dims - c->rope.dims) > 1e-3)
        reader_refuse(where, "'partial_rotary_factor' leaves %g of %d dimensions, not an even number of them",
                      dims, c->head_dim);
    reader_only_bool(where, "mrope_interleaved", !c->rope.sectioned);
    if (old && !known[kind].text && !reader_get(where, "mrope_section"))
        reader_refuse(where, "'mrope_section' is missing");
    read_section(where, &c->rope, !old && c->rope.dims == 64, vision);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void read_language(struct reader *config, struct reader *r, struct lm_config *c, int kind)
{
    enum model_family family = known[kind].family;
    c->hidden = reader_int(r, "hidden_size", 1, CONFIG_MAX_SIZE, -1);
    read_layers(r, c, family, known[kind].moe);
    if (family == FAMILY_QWEN35)
        read_delta(r, c);
    read_attention(r, c, family, known[kind].text);
    if (known[kind].moe)
        read_moe(r, &c->moe, family);
    reader_only_text(r, "hidden_act", "silu");
    c->eps = reader_float(r, "rms_norm_eps", 0, 1, 1e-6);
    c->vocab = reader_int(r, "vocab_size", 1, CONFIG_MAX_VOCAB, -1);
    c->max_tokens = reader_int(r, "max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 32768);
    c->tied =
        reader_bool(reader_get(config, "tie_word_embeddings") ? config : r, "tie_word_embeddings", false);
}

void config_read_qwen(struct reader *config, struct reader *pre, struct model_config *c)
{
    int kind = find_kind(config);
    if (kind < 0)
        return;
    struct reader text = reader_inside(config, "text_config"), vit = reader_inside(config, "vision_config");
    bool flat = known[kind].text || known[kind].family == FAMILY_QWEN25VL; /* keys at the top level, as
                                                                            * first published */
    struct reader *r = flat && !text.object ? config : &text;
    c->family = known[kind].family;
    c->vision = vit.object && !known[kind].text && !reader_bool(config, "language_model_only", false);
    if (!r->object) {
        reader_refuse(config, "'text_config' is missing");
        return;
    }
    read_language(config, r, &c->lm, kind);
    read_rope(r, &c->lm, kind, c->vision);
    c->image_token = c->image_open = c->image_close = -1;
    if (!c->vision)
        return;
    config_read_qwen_vision(config, &vit, pre, c);
}
