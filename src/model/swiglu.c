/* swiglu.c - SwiGLU MLP and mixture-of-experts layers of Qwen's models.
 *
 *     MLP( u ) = W_down ( SiLU( W_gate u ) * W_up u )
 *
 *     p        = softmax( W_router u )                  always in f32
 *     chosen   = the k experts with the largest p;  w = p of the chosen, divided by their sum
 *     h        = h + sum over the chosen of w MLP_e( u ) + sigmoid( w_s . u ) MLP_s( u )
 *
 * Every token runs through the shared expert s; Qwen3-VL has none. */
#include "model/layers.h"

/* Computes SiLU( W_gate u ) * W_up u in scratch. */
static struct tensor inner(struct language *m, const struct mlp_weights *w, int width, struct tensor u)
{
    struct tensor gate = tensor_cols(tensor_rows(m->m, 0, u.rows), 0, width),
                  up = tensor_cols(tensor_rows(m->m2, 0, u.rows), 0, width);
    project(m, gate, w->gate, u);
    project(m, up, w->up, u);
    m->backend->ops->swiglu(m->backend, gate, gate, up);
    return gate;
}

void swiglu_layer(struct language *m, const struct mlp_weights *w, int width, struct tensor h,
                  struct tensor u)
{
    project_add(m, h, w->down, inner(m, w, width, u));
}

void swiglu_moe_layer(struct language *m, const struct moe_weights *w, struct tensor h, struct tensor u)
{
    const struct moe_config *c = &m->config->moe;
    const struct ops *ops = m->backend->ops;
    struct backend *b = m->backend;
    struct moe_scratch *s = &m->moe;
    int64_t rows = h.rows;
    struct tensor ids, weights, sum = tensor_rows(s->out, 0, rows);
    moe_route(m, w, no_bias, u, &ids, &weights);
    ops->experts(b, sum, u, ids, weights, &w->experts);
    if (c->shared) {
        struct tensor shared = tensor_rows(s->shared, 0, rows), gate = tensor_rows(s->gate, 0, rows);
        project(m, shared, w->shared.down, inner(m, &w->shared, c->shared, u));
        project(m, gate, w->shared_gate, u);
        ops->add_gated(b, sum, shared, gate);
    }
    ops->add(b, h, sum);
}
