/* mamba.c - layer with the Mamba-2 mixer (Dao and Gu, "Transformers are SSMs", 2024).
 *
 *     z, xBC, dt = split( W_in . u )                    H heads of P channels, G groups of N states
 *     x, B, C    = split( SiLU( conv(xBC) ) )           depthwise over the last K tokens
 *     D_t        = softplus(dt + dt_bias)               time step of each head, within the limits
 *     S          = exp(D_t a) S + D_t x BT              per head, B and C shared by the heads of a group
 *     y          = S C + D x
 *     out        = w * RMSNorm_G( y * SiLU(z) )         gate first, then the norm over each of G parts
 *     h          = h + W_out . out
 *
 * A prefill runs through the chunked scan, the same formulas as matrix products; one token of one or
 * several sessions runs through the recurrence. Both start from the state and update it. f16 states are
 * rounded stochastically once per call, with a key that depends only on the layer and the position
 * reached, so that all ways to reach a position round alike.
 *
 * Delayed state write-back (as in ReplaySSM): with many sessions on a GPU, reading and writing f32 states
 * takes most of a layer's time. There a state is written every few tokens; the inputs of the tokens in
 * between are kept in a ring buffer next to it, and the next step recomputes their updates, bit-identical
 * (struct ssm_ring). */
#include "model/layers.h"
#include "ops/stochastic_round.h"

struct mixer { /* a layer between its two projections; row views of the scratch */
    struct language *m;
    const struct mamba_weights *w;
    struct language_batch batch;
    int layer;
    struct tensor z, xbc, dt, v, y;
};

static struct mixer mixer_rows(const struct mixer *x, int64_t first, int64_t n)
{
    struct mixer part = *x;
    struct tensor *const rows[] = {&part.z, &part.xbc, &part.dt, &part.v, &part.y};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i] = tensor_rows(*rows[i], first, n);
    part.batch.states += first;
    part.batch.sessions = (int)n;
    part.batch.before += (int)first;
    return part;
}

int mamba_lag(struct language_batch batch, int session, int64_t tokens)
{
    const struct lm_state *s = batch.states[session];
    return batch.replay && tokens == 1 && s->lag < s->now.types.ring ? s->lag + 1 : 0;
}

/* Sets up the ring buffers of a batch. Returns false if no state lags or will lag after this pass. */
static bool rings_of(struct language *m, struct language_batch batch, int layer, struct ssm_ring *ring)
{
    bool any = false;
    for (int i = 0; i < batch.sessions; i++) {
        const struct lm_state *s = batch.states[i];
        m->rings[0][i] = s->now.ring_in[layer];
        m->rings[1][i] = s->now.ring_dt[layer];
        m->lag[i] = s->lag;
        m->write[i] = mamba_lag(batch, i, 1) == 0;
        any |= m->lag[i] || !m->write[i];
    }
    *ring = (struct ssm_ring){m->rings[0], m->rings[1], m->lag, m->write};
    return any;
}

void mamba_flush(struct language *m, const struct mamba_weights *w, const struct lm_state *s, int layer)
{
    const struct ssm_ring ring = {&s->now.ring_in[layer], &s->now.ring_dt[layer], &s->lag, NULL};
    if (s->lag)
        m->backend->ops->ssm_flush(m->backend, s->now.ssm[layer], &ring, &m->config->ssm, &w->constants);
}

/* Computes sessions whose SSM states have the same type. Returns true if the gated norm is included. */
static bool mix_alike(const struct mixer *x)
{
    struct language *m = x->m;
    const struct ops *ops = m->backend->ops;
    const struct ssm_shape *shape = &m->config->ssm;
    const struct mamba_weights *w = x->w;
    struct tensor *conv = m->slots[0], *ssm = m->slots[1];
    for (int i = 0; i < x->batch.sessions; i++) {
        conv[i] = x->batch.states[i]->now.conv[x->layer];
        ssm[i] = x->batch.states[i]->now.ssm[x->layer];
        m->keys[i] = stochastic_key(language_past(x->batch, i) + 1, x->layer);
    }
    /* f32 states need no keys; without them a replayed graph has the same arguments */
    const uint32_t *keys = ssm->dtype == DT_F16 ? m->keys : NULL;
    if (ops->mamba_batch) {
        struct ssm_ring ring;
        bool replay = rings_of(m, x->batch, x->layer, &ring);
        const struct mamba_batch e = {.conv = w->conv,
                                      .conv_bias = w->conv_bias,
                                      .norm = w->norm,
                                      .eps = m->config->eps,
                                      .conv_states = conv,
                                      .ssm_states = ssm,
                                      .keys = keys,
                                      .shape = shape,
                                      .constants = &w->constants,
                                      .ring = replay ? &ring : NULL};
        ops->mamba_batch(m->backend, x->y, x->z, x->xbc, x->dt, &e);
        return true;
    }
    ops->conv_batch(m->backend, x->v, x->xbc, w->conv, w->conv_bias, conv);
    ops->ssm_step_batch(m->backend, x->y, x->v, x->dt, ssm, keys, shape, &w->constants);
    return false;
}

/* Computes one token of each session; tokens of the same session one at a time, since each needs the
 * previous state. */
static bool mix_batch(const struct mixer *x)
{
    bool normed = false;
    struct lm_state *const *s = x->batch.states;
    for (int i = 0, n; i < x->batch.sessions; i += n) {
        for (n = 1; !x->batch.sequential && i + n < x->batch.sessions &&
                    s[i + n]->now.types.ssm == s[i]->now.types.ssm;)
            n++;
        struct mixer alike = mixer_rows(x, i, n);
        normed = mix_alike(&alike);
    }
    return normed;
}

/* Computes many tokens of one session. */
static void mix_tokens(const struct mixer *x)
{
    struct backend *b = x->m->backend;
    struct lm_state *s = x->batch.states[0];
    mamba_flush(x->m, x->w, s, x->layer);
    b->ops->conv_tokens(b, x->v, x->xbc, x->w->conv, x->w->conv_bias, s->now.conv[x->layer]);
    b->ops->ssm_scan(b, x->y, x->v, x->dt, s->now.ssm[x->layer],
                     stochastic_key(s->length + x->v.rows, x->layer), &x->m->config->ssm, &x->w->constants);
}

void mamba_layer(struct language *m, const struct mamba_weights *w, struct language_batch batch, int layer,
                 struct tensor h, struct tensor u)
{
    const struct lm_config *c = m->config;
    int64_t rows = u.rows, inner = config_inner(c), channels = config_conv_dim(c);
    struct tensor p = tensor_rows(m->p, 0, rows);
    struct mixer x = {m, w, batch, layer, .v = tensor_rows(m->v, 0, rows), .y = tensor_rows(m->y, 0, rows)};
    x.z = tensor_cols(p, 0, inner);
    x.xbc = tensor_cols(p, inner, channels);
    x.dt = tensor_cols(p, inner + channels, c->ssm.heads);

    bool normed = false;
    project(m, p, w->in_proj, u);
    if (rows == batch.sessions)
        normed = mix_batch(&x);
    else
        mix_tokens(&x);
    if (h.rows == 0)
        return;
    struct tensor y = last_rows(x.y, h.rows), z = last_rows(x.z, h.rows);
    if (!normed)
        m->backend->ops->gated_norm(m->backend, y, y, z, w->norm, c->ssm.groups, c->eps);
    project_add(m, h, w->out_proj, y);
}
