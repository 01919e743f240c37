/* attention.c - grouped-query attention without positions, as one layer of the model.
 *
 *   q, k, v = W_q u, W_k u, W_v u                     Hq query heads, Hkv key heads of d channels
 *   y       = softmax( q kT / sqrt d ) v              over all positions up to the own one
 *   h       = h + W_o y
 *
 * Keys and values are computed straight into their place in the cache.  Order is known to the model
 * through its Mamba layers alone, so a key never changes once it is written.
 */
#include "model/language.h"

void attention_layer(struct language *m, const struct attention_weights *w, struct lm_state *s, int layer,
                     struct tensor h, struct tensor u)
{
    static const struct tensor no_bias = {0};
    const struct lm_config *c = m->config;
    const struct ops *ops = m->backend->ops;
    struct backend *b = m->backend;
    int64_t rows = h.rows, past = s->length;
    struct tensor q = tensor_rows(m->q, 0, rows), a = tensor_rows(m->a, 0, rows);
    struct tensor *k = &s->k[layer], *v = &s->v[layer];

    ops->linear(b, q, u, w->q, no_bias, EPI_NONE, 0);
    ops->linear(b, tensor_rows(*k, past, rows), u, w->k, no_bias, EPI_NONE, 0);
    ops->linear(b, tensor_rows(*v, past, rows), u, w->v, no_bias, EPI_NONE, 0);
    ops->attend(b, a, q, tensor_rows(*k, 0, past + rows), tensor_rows(*v, 0, past + rows), c->q_heads,
                c->kv_heads, past);
    ops->linear(b, h, a, w->o, no_bias, EPI_NONE, 1);
}
