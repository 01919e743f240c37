/* cost.c - arithmetic and memory traffic of a model (cost.h). */
#include "capacity/cost.h"

#include "model/language.h"

#include <math.h>

/* Returns the matrix elements of a mixture-of-experts layer in which `experts` experts are used. */
static double moe_elements(const struct lm_config *l, double experts)
{
    const struct moe_config *m = &l->moe;
    double d = l->hidden, inner = m->latent ? m->latent : d;
    int matrices = l->rope.dims ? 3 : 2; /* per expert: SwiGLU has a gate */
    return d * m->route.experts + matrices * (experts * m->width * inner + d * m->shared) + 2 * d * m->latent;
}

/* Returns the expected number of experts chosen by at least one of n tokens, if all are equally likely. */
static double experts_used(const struct route_shape *r, double n)
{
    return r->experts * (1 - pow(1 - (double)r->chosen / r->experts, n));
}

/* Returns the matrix elements of layer i, of whose experts `experts` are used. */
static double layer_elements(const struct lm_config *l, int i, double experts)
{
    double d = l->hidden, q = (double)l->q_heads * l->head_dim, kv = (double)l->kv_heads * l->head_dim;
    switch (l->pattern[i]) {
    case LAYER_MAMBA:
        return d * (config_proj_rows(l) + config_inner(l));
    case LAYER_DELTA:
        return d * (config_conv_dim(l) + 2.0 * config_inner(l) + 2.0 * l->delta.value_heads);
    case LAYER_ATTENTION:
    case LAYER_ROTARY_ATTENTION:
        return d * (2 * q + 2 * kv);
    case LAYER_GATED_ATTENTION:
        return d * (3 * q + 2 * kv);
    case LAYER_MOE:
    case LAYER_SWIGLU_MOE:
        return moe_elements(l, experts);
    case LAYER_SWIGLU:
        return d * 3.0 * l->mlp[i];
    default:
        return d * 2.0 * l->mlp[i];
    }
}

double cost_patches_flop(const struct model_config *c, int prefix, int64_t patches)
{
    const struct vit_config *v = &c->vit;
    double w = v->hidden, p = (double)patches, n = p + prefix;
    double seen = n; /* patches a patch attends to, on average over the blocks */
    for (int i = 0, all = 0; v->window && i < v->blocks; i++) {
        all += v->full_attention[i];
        seen = fmin(n, (all * n + (v->blocks - all) * 4.0 * v->window * v->window) / v->blocks);
    }
    double block = 2 * n * w * (4 * w + (v->window ? 3.0 : 2.0) * v->mlp) + 4 * n * seen * w;
    double projector = 2.0 * (p / 4) * v->projector * (4 * w + c->lm.hidden);
    return 2 * p * 3.0 * v->patch * v->patch * w + v->blocks * block + (1 + v->n_deepstack) * projector;
}

double cost_tile_flop(const struct model_config *c, int prefix)
{
    int64_t grid = config_grid(c);
    return cost_patches_flop(c, prefix, c->vit.max_patches ? c->vit.max_patches : grid * grid);
}

double cost_text_flop(const struct model_config *c, int64_t n, int64_t past)
{
    const struct lm_config *l = &c->lm;
    double flop = 0, T = (double)n, seen = T * (double)past + 0.5 * T * (T + 1);
    for (int i = 0; i < l->layers; i++) {
        flop += 2 * T * layer_elements(l, i, l->moe.route.chosen);
        if (layer_recurs(l->pattern[i])) /* decay, input and output of each element of the state */
            flop += 6 * T * (double)(config_state_rows(l) * config_state_cols(l));
        else if (layer_attends(l->pattern[i]))
            flop += 4 * seen * l->q_heads * l->head_dim;
    }
    return flop;
}

double cost_head_flop(const struct model_config *c, int vocab)
{
    return 2.0 * vocab * c->lm.hidden;
}

double cost_weight_bytes(const struct model_config *c, int vocab, int sessions, double bytes)
{
    double experts = c->lm.moe.route.experts ? experts_used(&c->lm.moe.route, sessions) : 0;
    double elements = (double)vocab * c->lm.hidden;
    for (int i = 0; i < c->lm.layers; i++)
        elements += layer_elements(&c->lm, i, experts);
    return bytes * elements;
}

double cost_state_elements(const struct lm_config *l, bool mamba)
{
    double elements = 0;
    for (int i = 0; i < l->layers; i++)
        if (layer_recurs(l->pattern[i]) && (!mamba || l->pattern[i] == LAYER_MAMBA))
            elements += (double)(config_state_rows(l) * config_state_cols(l));
    return elements;
}

bool cost_replays(struct state_types types, int n)
{
    return types.ring && n >= LANGUAGE_REPLAYS;
}

double cost_state_bytes(const struct lm_config *l, struct state_types types, int n)
{
    double size = (double)dtype_size(types.ssm), bytes = 2 * size * cost_state_elements(l, false);
    if (!cost_replays(types, n))
        return bytes;
    double kept =
        (double)dtype_size(types.act) * (double)(config_inner(l) + (int64_t)l->ssm.groups * l->ssm.state) +
        4.0 * l->ssm.heads;
    bytes -= size * cost_state_elements(l, true) * types.ring / (types.ring + 1);
    for (int i = 0; i < l->layers; i++)
        if (l->pattern[i] == LAYER_MAMBA)
            bytes += kept * (types.ring / 2.0 + 1);
    return bytes;
}

double cost_session_bytes(const struct model_config *c, struct state_types types, int n, int64_t past)
{
    const struct lm_config *l = &c->lm;
    double bytes = 2.0 * l->hidden +
                   (double)state_position(l, types.kv) * (double)(past + 1) + /* a row of the embedding */
                   cost_state_bytes(l, types, n);
    for (int i = 0; i < l->layers; i++)
        if (layer_recurs(l->pattern[i]))
            bytes += 4.0 * config_conv_dim(l) * (config_conv_taps(l) - 1);
    return bytes;
}
