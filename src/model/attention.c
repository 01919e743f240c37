/* attention.c - grouped-query attention without positions, as one layer of the model.
 *
 *   q, k, v = W_q u, W_k u, W_v u                     Hq query heads, Hkv key heads of d channels
 *   y       = softmax( q kT / sqrt d ) v              over all positions up to the own one
 *   h       = h + W_o y
 *
 * Keys and values of one session are computed straight into their place in the cache; those of several are
 * computed together and copied to theirs.  Order is known to the model
 * through its Mamba layers alone, so a key never changes once it is written.
 */
#include "model/language.h"

static const struct tensor no_bias = {0};

/* New rows of one session, behind those it has; the last of them, as many as q has, attend. */
static void attend_many(struct language *m, const struct attention_weights *w, struct lm_state *s, int layer,
                        struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    struct backend *b = m->backend;
    int64_t rows = u.rows, past = s->length;
    struct tensor k = tensor_rows(s->k[layer], 0, past + rows), v = tensor_rows(s->v[layer], 0, past + rows);
    b->ops->linear(b, tensor_rows(k, past, rows), u, w->k, no_bias, EPI_NONE, 0);
    b->ops->linear(b, tensor_rows(v, past, rows), u, w->v, no_bias, EPI_NONE, 0);
    if (q.rows)
        b->ops->attend(b, a, q, k, v, c->q_heads, c->kv_heads, past + rows - q.rows);
}

/* One new row of each of several caches, through scratch; `out` gets the caches up to it. */
static void extend_each(struct language *m, struct language_batch of, const struct weight *w, struct tensor u,
                        struct tensor scratch, struct tensor *const caches[], struct tensor *out)
{
    struct backend *b = m->backend;
    struct tensor row[LANGUAGE_ROWS];
    b->ops->linear(b, scratch, u, w, no_bias, EPI_NONE, 0);
    for (int i = 0; i < of.sessions; i++) {
        int64_t past = of.states[i]->length;
        out[i] = tensor_rows(*caches[i], 0, past + 1);
        row[i] = tensor_rows(out[i], past, 1);
    }
    b->ops->scatter(b, row, scratch);
}

static void attend_each(struct language *m, const struct attention_weights *w, struct language_batch of,
                        int layer, struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    struct tensor *k[LANGUAGE_ROWS], *v[LANGUAGE_ROWS];
    struct tensor scratch =
        tensor_cols(a, 0, (int64_t)c->kv_heads * c->head_dim); /* free until there is a result */
    for (int i = 0; i < of.sessions; i++) {
        k[i] = &of.states[i]->k[layer];
        v[i] = &of.states[i]->v[layer];
    }
    extend_each(m, of, w->k, u, scratch, k, m->slots[0]);
    extend_each(m, of, w->v, u, scratch, v, m->slots[1]);
    m->backend->ops->attend_each(m->backend, a, q, m->slots[0], m->slots[1], c->q_heads, c->kv_heads);
}

void attention_layer(struct language *m, const struct attention_weights *w, struct language_batch of,
                     int layer, struct tensor h, struct tensor u)
{
    struct backend *b = m->backend;
    struct tensor q = tensor_rows(m->q, 0, h.rows), a = tensor_rows(m->a, 0, h.rows);

    if (h.rows)
        b->ops->linear(b, q, tensor_rows(u, u.rows - h.rows, h.rows), w->q, no_bias, EPI_NONE, 0);
    if (of.sessions > 1)
        attend_each(m, w, of, layer, q, a, u);
    else
        attend_many(m, w, of.states[0], layer, q, a, u);
    if (h.rows)
        b->ops->linear(b, h, a, w->o, no_bias, EPI_NONE, 1);
}
