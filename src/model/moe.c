/* moe.c - mixture-of-experts layer of Nemotron 3.
 *
 *     s       = sigmoid( W_gate . u )                   router, always in f32
 *     chosen  = the k experts with the largest s + bias; only those of the best groups if the config says so
 *     w       = s of the chosen, divided by their sum, times a factor: the bias is not part of it
 *     x       = u, or W_latent_down . u                 experts may read and write fewer channels
 *     y       = sum over the chosen of w Down . max(0, Up . x)^2
 *     h       = h + (y, or W_latent_up . y) + Down_s . max(0, Up_s . u)^2
 *
 * Every token runs through the shared expert s. A single token reads the weights of the chosen experts
 * only; many tokens are grouped by expert. */
#include "model/layers.h"

void moe_route(struct language *m, const struct moe_weights *w, struct tensor bias, struct tensor u,
               struct tensor *ids, struct tensor *weights)
{
    struct tensor logits = tensor_rows(m->moe.logits, 0, u.rows);
    *ids = tensor_rows(m->moe.ids, 0, u.rows);
    *weights = tensor_rows(m->moe.weights, 0, u.rows);
    project(m, logits, w->gate, u);
    m->backend->ops->route(m->backend, *ids, *weights, logits, bias, &m->config->moe.route);
}

void moe_layer(struct language *m, const struct moe_weights *w, struct tensor h, struct tensor u)
{
    const struct moe_config *c = &m->config->moe;
    const struct ops *ops = m->backend->ops;
    struct backend *b = m->backend;
    struct moe_scratch *s = &m->moe;
    int64_t rows = h.rows;
    struct tensor ids, weights, x = u, y = tensor_rows(s->out, 0, rows), sum = y;

    moe_route(m, w, w->bias, u, &ids, &weights);
    if (c->latent) {
        x = tensor_rows(s->in, 0, rows);
        project(m, x, w->latent_down, u);
    }
    ops->experts(b, y, x, ids, weights, &w->experts);
    if (c->latent) {
        sum = tensor_rows(s->sum, 0, rows);
        project(m, sum, w->latent_up, y);
    }
    if (c->shared) {
        struct tensor t = tensor_cols(tensor_rows(m->m, 0, rows), 0, c->shared);
        project_relu2(m, t, w->shared.up, u);
        project_add(m, sum, w->shared.down, t);
    }
    ops->add(b, h, sum);
}

void moe_init(struct language *m)
{
    const struct lm_config *c = m->config;
    struct backend *b = m->backend;
    struct moe_scratch *s = &m->moe;
    int64_t inner = c->moe.latent ? c->moe.latent : c->hidden;
    s->logits = b->ops->alloc(b, DT_F32, m->h.rows, c->moe.route.experts);
    s->ids = b->ops->alloc(b, DT_I32, m->h.rows, c->moe.route.chosen);
    s->weights = b->ops->alloc(b, DT_F32, m->h.rows, c->moe.route.chosen);
    s->out = b->ops->alloc(b, m->act, m->h.rows, inner);
    if (c->moe.latent) {
        s->in = b->ops->alloc(b, m->act, m->h.rows, inner);
        s->sum = b->ops->alloc(b, m->act, m->h.rows, c->hidden);
    }
    if (c->rope.dims && c->moe.shared) {
        s->shared = b->ops->alloc(b, m->act, m->h.rows, c->hidden);
        s->gate = b->ops->alloc(b, m->act, m->h.rows, 1);
    }
}
