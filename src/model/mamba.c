/* mamba.c - the Mamba-2 mixer (Dao and Gu, "Transformers are SSMs", 2024), as one layer of the model.
 *
 *   z, xBC, dt = split( W_in . u )                    H heads of P channels, G groups of N states
 *   x, B, C    = split( SiLU( conv(xBC) ) )           depthwise over the last K tokens
 *   D_t        = softplus(dt + dt_bias)               time step of each head, within the limits
 *   S          = exp(D_t a) S + D_t x BT              per head, B and C shared by the heads of a group
 *   y          = S C + D x
 *   out        = w * RMSNorm_G( y * SiLU(z) )         gate first, then the norm over each of G parts
 *   h          = h + W_out . out
 *
 * Many tokens at once go through the chunked form of the recurrence, which is the same mathematics with
 * matrix products; one token, of one session or of each of several, goes through the recurrence itself.  Both
 * start from the state before and leave the state after.  Where states are f16 each call rounds them by chance, with a
 * key of the layer and the position that they have reached: of nothing that differs between two ways to get there.
 */
#include "model/language.h"
#include "ops/stochastic_round.h"

/* What stands between the two projections; true if the norm has been done, too.  All states are of one type. */
static bool mix_alike(struct language *m, const struct mamba_weights *w, struct language_batch of, int layer,
                      struct tensor z, struct tensor xbc, struct tensor dt, struct tensor v, struct tensor y)
{
    struct tensor *conv = m->slots[0], *ssm = m->slots[1];
    for (int i = 0; i < of.sessions; i++) {
        conv[i] = of.states[i]->now.conv[layer];
        ssm[i] = of.states[i]->now.ssm[layer];
        m->keys[i] = stochastic_key(of.states[i]->length + 1, layer);
    }
    if (m->backend->ops->mamba_each) {
        m->backend->ops->mamba_each(m->backend, y, z, xbc, dt,
                                    &(struct mamba_each){w->conv, w->conv_bias, w->norm, m->config->eps, conv,
                                                         ssm, m->keys, &m->config->ssm, &w->constants});
        return true;
    }
    m->backend->ops->conv_each(m->backend, v, xbc, w->conv, w->conv_bias, conv);
    m->backend->ops->ssm_each(m->backend, y, v, dt, ssm, m->keys, &m->config->ssm, &w->constants);
    return false;
}

static bool mix_each(struct language *m, const struct mamba_weights *w, struct language_batch of, int layer,
                     struct tensor z, struct tensor xbc, struct tensor dt, struct tensor v, struct tensor y)
{
    bool normed = false;
    for (int i = 0, n; i < of.sessions; i += n) {
        enum dtype type = of.states[i]->now.types.ssm;
        for (n = 1; i + n < of.sessions && of.states[i + n]->now.types.ssm == type;)
            n++;
        normed = mix_alike(m, w, (struct language_batch){of.states + i, n}, layer, tensor_rows(z, i, n),
                           tensor_rows(xbc, i, n), tensor_rows(dt, i, n), tensor_rows(v, i, n),
                           tensor_rows(y, i, n));
    }
    return normed;
}

static void mix_batch(struct language *m, const struct mamba_weights *w, struct lm_state *state, int layer,
                      struct tensor xbc, struct tensor dt, struct tensor v, struct tensor y)
{
    struct recurrent *s = &state->now;
    m->backend->ops->conv(m->backend, v, xbc, w->conv, w->conv_bias, s->conv[layer]);
    m->backend->ops->ssm_scan(m->backend, y, v, dt, s->ssm[layer],
                              stochastic_key(state->length + v.rows, layer), &m->config->ssm, &w->constants);
}

void mamba_layer(struct language *m, const struct mamba_weights *w, struct language_batch of, int layer,
                 struct tensor h, struct tensor u)
{
    static const struct tensor no_bias = {0};
    const struct lm_config *c = m->config;
    const struct ops *ops = m->backend->ops;
    struct backend *b = m->backend;
    int64_t rows = u.rows, inner = config_inner(c), channels = config_conv_dim(c);
    struct tensor p = tensor_rows(m->p, 0, rows), v = tensor_rows(m->v, 0, rows),
                  y = tensor_rows(m->y, 0, rows);
    struct tensor z = tensor_cols(p, 0, inner), xbc = tensor_cols(p, inner, channels),
                  dt = tensor_cols(p, inner + channels, c->ssm.heads);

    bool normed = false;
    ops->linear(b, p, u, w->in_proj, no_bias, EPI_NONE, 0);
    if (rows == of.sessions)
        normed = mix_each(m, w, of, layer, z, xbc, dt, v, y);
    else
        mix_batch(m, w, of.states[0], layer, xbc, dt, v, y);
    if (h.rows == 0)
        return;
    y = tensor_rows(y, rows - h.rows, h.rows);
    z = tensor_rows(z, rows - h.rows, h.rows);
    if (!normed)
        ops->gated_norm(b, y, y, z, w->norm, c->ssm.groups, c->eps);
    ops->linear(b, h, y, w->out_proj, no_bias, EPI_NONE, 1);
}
