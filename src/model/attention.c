/* attention.c - grouped-query attention without positions, as one layer of the model.
 *
 *   q, k, v = W_q u, W_k u, W_v u                     Hq query heads, Hkv key heads of d channels
 *   y       = softmax( q kT / sqrt d ) v              over all positions up to the own one
 *   h       = h + W_o y
 *
 * Keys and values of one session are computed straight into their place in the cache; those of several are
 * computed together and copied to theirs.  In 8 bits they are made of what was computed elsewhere, and every query sees
 * what they have become, those of its own piece of a prompt too: where pieces end makes no difference.  Order is known to the model
 * through its Mamba layers alone, so a key never changes once it is written.
 */
#include "model/language.h"

static const struct tensor no_bias = {0};

/* Room for new keys or values: where results of attention will be. */
static struct tensor fresh_rows(struct language *m, int64_t rows)
{
    return tensor_cols(tensor_rows(m->a, 0, rows), 0, (int64_t)m->config->kv_heads * m->config->head_dim);
}

/* Rows of a cache out of those of u. */
static void extend(struct language *m, const struct weight *w, struct tensor u, struct tensor rows)
{
    struct backend *b = m->backend;
    if (rows.dtype != DT_F8E4M3) {
        b->ops->linear(b, rows, u, w, no_bias, EPI_NONE, 0);
        return;
    }
    struct tensor fresh = fresh_rows(m, u.rows);
    b->ops->linear(b, fresh, u, w, no_bias, EPI_NONE, 0);
    b->ops->kv_quantize(b, rows, fresh, m->config->kv_heads);
}

/* New rows of one session, behind those it has; the last of them, as many as q has, attend. */
static void attend_many(struct language *m, const struct attention_weights *w, struct lm_state *s, int layer,
                        struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    struct backend *b = m->backend;
    int64_t rows = u.rows, past = s->length;
    struct tensor k = tensor_rows(s->k[layer], 0, past + rows), v = tensor_rows(s->v[layer], 0, past + rows);
    extend(m, w->k, u, tensor_rows(k, past, rows));
    extend(m, w->v, u, tensor_rows(v, past, rows));
    if (q.rows)
        b->ops->attend(b, a, q, k, v, c->q_heads, c->kv_heads, past + rows - q.rows);
}

/* One new row of each of several caches; `out` gets the caches up to it. */
static void extend_each(struct language *m, struct language_batch of, const struct weight *w, struct tensor u,
                        struct tensor *const caches[], struct tensor *out)
{
    struct backend *b = m->backend;
    struct tensor row[LANGUAGE_ROWS], fresh = fresh_rows(m, u.rows);
    b->ops->linear(b, fresh, u, w, no_bias, EPI_NONE, 0);
    for (int i = 0; i < of.sessions; i++) {
        int64_t past = of.states[i]->length;
        out[i] = tensor_rows(*caches[i], 0, past + 1);
        row[i] = tensor_rows(out[i], past, 1);
    }
    if (of.states[0]->now.types.kv == DT_F8E4M3)
        b->ops->kv_quantize_batch(b, row, fresh, m->config->kv_heads);
    else
        b->ops->scatter(b, row, fresh);
}

static void attend_each(struct language *m, const struct attention_weights *w, struct language_batch of,
                        int layer, struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    struct tensor *k[LANGUAGE_ROWS], *v[LANGUAGE_ROWS];
    for (int i = 0; i < of.sessions; i++) {
        k[i] = &of.states[i]->k[layer];
        v[i] = &of.states[i]->v[layer];
    }
    extend_each(m, of, w->k, u, k, m->slots[0]);
    extend_each(m, of, w->v, u, v, m->slots[1]);
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
