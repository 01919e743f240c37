/* config_lm.c - reads the hyperparameters of Nemotron language models.
 *
 * Second spellings of keys come from files that some releases of transformers 5 wrote. */
#include "model/config_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char letter_of(const char *kind)
{
    static const struct {
        const char *kind;
        char letter;
    } kinds[] = {{"linear_attention", 'M'}, {"mamba", 'M'}, {"full_attention", '*'},
                 {"attention", '*'},        {"mlp", '-'},   {"moe", 'E'}};
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind))
            return kinds[i].letter;
    return kind && strlen(kind) == 1 ? *kind : '?';
}

/* Finds the layer pattern: a string of letters, a list of letters, or in newer files a list of words.
 * Empty if missing. */
static void find_pattern(const struct reader *r, char out[CONFIG_MAX_LAYERS + 2])
{
    const json_t *words = reader_get(r, "hybrid_override_pattern|layers_block_type|layer_types");
    const char *letters = json_string_value(words);
    size_t n = 0;
    if (letters)
        n = (size_t)snprintf(out, CONFIG_MAX_LAYERS + 2, "%s", letters);
    else
        for (size_t i = 0; i < json_array_size(words) && n <= CONFIG_MAX_LAYERS; i++)
            out[n++] = letter_of(json_string_value(json_array_get(words, i)));
    out[n <= CONFIG_MAX_LAYERS ? n : CONFIG_MAX_LAYERS + 1] = 0;
}

static void read_pattern(struct reader *r, struct lm_config *c)
{
    char s[CONFIG_MAX_LAYERS + 2] = "";
    find_pattern(r, s);
    size_t n = strlen(s);
    if (!n || n > CONFIG_MAX_LAYERS) {
        reader_refuse(r, "'hybrid_override_pattern' does not name 1 to %d layers", CONFIG_MAX_LAYERS);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!strchr("M*-E", s[i]))
            reader_refuse(r, "'hybrid_override_pattern' has '%c' at layer %zu; implemented are M, *, - and E",
                          s[i], i);
    memcpy(c->pattern, s, n + 1);
    c->layers = (int)n;
    int layers = reader_int(r, "num_hidden_layers", 1, CONFIG_MAX_LAYERS, c->layers);
    if (layers != c->layers)
        reader_refuse(r, "'num_hidden_layers' is %d but 'hybrid_override_pattern' has %d letters", layers,
                      c->layers);
}

/* Reads one width for all MLPs, or one per MLP in order. */
static void read_mlp(struct reader *r, struct lm_config *c)
{
    const json_t *v = reader_get(r, "intermediate_size");
    size_t n = json_is_array(v) ? json_array_size(v) : 1, mlps = 0;
    for (int i = 0; i < c->layers; i++)
        mlps += c->pattern[i] == LAYER_MLP;
    if (n != 1 && n != mlps)
        reader_refuse(r, "'intermediate_size' has %zu entries for %zu MLP layers", n, mlps);
    size_t k = 0;
    for (int i = 0; i < c->layers; i++) {
        if (c->pattern[i] != LAYER_MLP)
            continue;
        double x = reader_number(json_is_array(v) ? json_array_get(v, n == 1 ? 0 : k++) : v);
        if (!(x >= 1 && x <= CONFIG_MAX_SIZE) || x != floor(x))
            reader_refuse(r, "'intermediate_size' has no valid width for the MLP of layer %d", i);
        else
            c->mlp[i] = (int)x;
    }
}

static void read_mamba(struct reader *r, struct lm_config *c)
{
    struct ssm_shape *s = &c->ssm;
    s->heads = reader_int(r, "mamba_num_heads", 1, CONFIG_MAX_HEADS, -1);
    s->head_dim = reader_int(r, "mamba_head_dim", 1, 1024, -1);
    s->state = reader_int(r, "ssm_state_size", 1, 1024, -1);
    s->groups = reader_int(r, "n_groups|mamba_n_groups", 1, CONFIG_MAX_HEADS, -1);
    s->conv = reader_int(r, "conv_kernel|mamba_d_conv", 2, 16, -1);
    s->chunk = reader_int(r, "chunk_size|mamba_chunk_size", 1, 1024, 128);
    c->conv_bias = reader_bool(r, "use_conv_bias|mamba_conv_bias", true);
    if (s->heads % s->groups)
        reader_refuse(r, "%d heads cannot share %d groups", s->heads, s->groups);
    s->dt_min = 0;
    s->dt_max = INFINITY;
    const json_t *limit = reader_get(r, "time_step_limit|mamba_dt_limit");
    if (limit) {
        double lo = reader_number(json_array_get(limit, 0)), hi = reader_number(json_array_get(limit, 1));
        if (json_array_size(limit) != 2 || !(lo >= 0 && hi > lo))
            reader_refuse(r, "'time_step_limit' is not a pair of rising numbers");
        else if (lo > 0)
            warn("%s: time steps are clamped to at least %g, as 'time_step_limit' says", r->where, lo);
        s->dt_min = (float)lo;
        s->dt_max = (float)hi;
    }
    reader_only_text(r, "mamba_hidden_act", "silu");
    reader_only_bool(r, "mamba_proj_bias|use_bias", false);
}

static void read_attention(struct reader *r, struct lm_config *c)
{
    c->q_heads = reader_int(r, "num_attention_heads", 1, CONFIG_MAX_HEADS, -1);
    c->kv_heads = reader_int(r, "num_key_value_heads", 1, CONFIG_MAX_HEADS, c->q_heads);
    c->head_dim = reader_int(r, "head_dim|attention_head_dim", 1, 1024, c->hidden / c->q_heads);
    if (c->head_dim < 1 || c->q_heads % c->kv_heads)
        reader_refuse(r, "%d query heads cannot share %d key heads", c->q_heads, c->kv_heads);
    reader_only_bool(r, "attention_bias", false);
    if (reader_get(r, "sliding_window"))
        reader_refuse(r, "'sliding_window' is set, which is not implemented");
}

/* Checks that the groups kept by the router have enough experts to choose from. */
static void check_route(struct reader *r, const struct route_shape *s)
{
    if (s->experts % s->groups)
        reader_refuse(r, "%d experts cannot be split into the %d groups of 'n_group'", s->experts, s->groups);
    else if (s->groups > 1 && s->experts / s->groups < 2)
        reader_refuse(r, "'n_group' is %d, which leaves groups of one expert", s->groups);
    else if (s->groups_kept > s->groups)
        reader_refuse(r, "'topk_group' is %d, but there are %d groups", s->groups_kept, s->groups);
    else if (s->chosen > s->experts / s->groups * s->groups_kept)
        reader_refuse(r, "'num_experts_per_tok' is %d, but only %d experts are available", s->chosen,
                      s->experts / s->groups * s->groups_kept);
}

static void read_moe(struct reader *r, struct moe_config *m)
{
    struct route_shape *s = &m->route;
    s->experts = reader_int(r, "n_routed_experts|num_local_experts", 1, CONFIG_MAX_EXPERTS, -1);
    s->chosen = reader_int(r, "num_experts_per_tok", 1, CONFIG_MAX_EXPERTS, -1);
    s->groups = reader_int(r, "n_group", 1, CONFIG_MAX_EXPERTS, 1);
    s->groups_kept = reader_int(r, "topk_group", 1, CONFIG_MAX_EXPERTS, 1);
    s->normalise = reader_bool(r, "norm_topk_prob", true);
    s->scale = reader_float(r, "routed_scaling_factor", 0, 1e6, 1);
    check_route(r, s);
    m->width = reader_int(r, "moe_intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    m->latent = reader_int(r, "moe_latent_size", 0, CONFIG_MAX_SIZE, 0);
    if (reader_int(r, "n_shared_experts", 0, 1, 1)) /* runtimes disagree on the meaning of several */
        m->shared = reader_int(r, "moe_shared_expert_intermediate_size", 1, CONFIG_MAX_SIZE, -1);
}

void config_read_language(struct reader *r, struct lm_config *c)
{
    reader_only_text(r, "model_type", "nemotron_h");
    read_pattern(r, c);
    c->hidden = reader_int(r, "hidden_size", 1, CONFIG_MAX_SIZE, -1);
    read_mlp(r, c);
    reader_only_text(r, "mlp_hidden_act", "relu2");
    reader_only_bool(r, "mlp_bias", false);
    if (strchr(c->pattern, LAYER_MAMBA))
        read_mamba(r, c);
    if (strchr(c->pattern, LAYER_ATTENTION))
        read_attention(r, c);
    if (strchr(c->pattern, LAYER_MOE))
        read_moe(r, &c->moe);
    c->extra_predictors = reader_int(r, "num_nextn_predict_layers", 0, CONFIG_MAX_LAYERS, 0);
    reader_only_bool(r, "residual_in_fp32", false);
    c->tied = reader_bool(r, "tie_word_embeddings", false);
    c->eps = reader_float(r, "layer_norm_epsilon|norm_eps|rms_norm_eps", 0, 1, 1e-5);
    c->vocab = reader_int(r, "vocab_size", 1, CONFIG_MAX_VOCAB, -1);
    c->max_tokens = reader_int(r, "max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 131072);
}
