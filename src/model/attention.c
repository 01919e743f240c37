/* attention.c - layer with grouped-query causal attention and no position embedding.
 *
 *     q, k, v = W_q u, W_k u, W_v u                     Hq query heads, Hkv KV heads of d channels
 *     y       = softmax( q kT / sqrt d ) v              over all positions up to the query's own
 *     h       = h + W_o y
 *
 * Keys and values of a single session are computed directly into its KV cache; those of a batch are
 * computed together and scattered to the caches. An 8-bit cache is quantized from scratch rows, and every
 * query reads the quantized values, including those of its own chunk, so that chunk boundaries do not
 * affect results. Positions enter the model only through the Mamba layers, so a cached key never changes. */
#include "model/layers.h"

/* Returns scratch rows for new keys or values; attention overwrites them with its result. */
static struct tensor fresh_rows(struct language *m, int64_t rows)
{
    return tensor_cols(tensor_rows(m->a, 0, rows), 0, (int64_t)m->config->kv_heads * m->config->head_dim);
}

/* Computes rows = W u, where rows are part of a KV cache. */
static void extend(struct language *m, const struct weight *w, struct tensor u, struct tensor rows)
{
    bool quantized = rows.dtype == DT_F8E4M3;
    struct tensor fresh = quantized ? fresh_rows(m, u.rows) : rows;
    project(m, fresh, w, u);
    if (quantized)
        m->backend->ops->kv_quantize(m->backend, rows, fresh, m->config->kv_heads);
}

/* Appends all rows of u to one session's cache; the last q.rows of them attend. */
static void attend_tokens(struct language *m, const struct attention_weights *w, struct lm_state *s,
                          int layer, struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    int64_t rows = u.rows, past = s->length;
    struct tensor k = tensor_rows(s->k[layer], 0, past + rows), v = tensor_rows(s->v[layer], 0, past + rows);
    extend(m, w->k, u, tensor_rows(k, past, rows));
    extend(m, w->v, u, tensor_rows(v, past, rows));
    if (q.rows)
        m->backend->ops->attend_tokens(m->backend, a, q, k, v, c->q_heads, c->kv_heads, past + rows - q.rows);
}

void attention_append(struct language *m, struct language_batch batch, struct tensor *const caches[],
                      struct tensor fresh, struct tensor *out)
{
    struct backend *b = m->backend;
    struct tensor row[LANGUAGE_SESSIONS];
    for (int i = 0; i < batch.sessions; i++) {
        int64_t past = language_past(batch, i);
        out[i] = tensor_rows(*caches[i], 0, past + 1);
        row[i] = tensor_rows(out[i], past, 1);
    }
    if (batch.states[0]->now.types.kv == DT_F8E4M3)
        b->ops->kv_quantize_batch(b, row, fresh, m->config->kv_heads);
    else
        b->ops->scatter(b, row, fresh);
}

/* Appends row t of W u to the cache of session t. */
static void extend_batch(struct language *m, struct language_batch batch, const struct weight *w,
                         struct tensor u, struct tensor *const caches[], struct tensor *out)
{
    struct tensor fresh = fresh_rows(m, u.rows);
    project(m, fresh, w, u);
    attention_append(m, batch, caches, fresh, out);
}

static void attend_batch(struct language *m, const struct attention_weights *w, struct language_batch batch,
                         int layer, struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    struct tensor *k[LANGUAGE_SESSIONS], *v[LANGUAGE_SESSIONS];
    for (int i = 0; i < batch.sessions; i++) {
        k[i] = &batch.states[i]->k[layer];
        v[i] = &batch.states[i]->v[layer];
    }
    extend_batch(m, batch, w->k, u, k, m->slots[0]);
    extend_batch(m, batch, w->v, u, v, m->slots[1]);
    m->backend->ops->attend_batch(m->backend, a, q, m->slots[0], m->slots[1], c->q_heads, c->kv_heads);
}

void attention_layer(struct language *m, const struct attention_weights *w, struct language_batch batch,
                     int layer, struct tensor h, struct tensor u)
{
    struct tensor q = tensor_rows(m->q, 0, h.rows), a = tensor_rows(m->a, 0, h.rows);
    if (h.rows)
        project(m, q, w->q, last_rows(u, h.rows));
    if (batch.sessions > 1)
        attend_batch(m, w, batch, layer, q, a, u);
    else
        attend_tokens(m, w, batch.states[0], layer, q, a, u);
    if (h.rows)
        project_add(m, h, w->o, a);
}
