/* gated_attention.c - layer with grouped-query causal attention and rotary positions; in Qwen3.5 with an
 * output gate.
 *
 *     q, gate = split( W_q u )                          per head: d channels of each
 *     k, v    = W_k u, W_v u
 *     q, k    = rotate( RMSNorm(q) ), rotate( RMSNorm(k) )    per head; rope.h
 *     y       = softmax( q kT / sqrt d ) v              over all positions up to the query's own
 *     h       = h + W_o ( y * sigmoid(gate) )
 *
 * Qwen3-VL has no gate; Qwen2.5-VL has neither gate nor norm, but biases of q, k and v.
 *
 * Keys are cached after rotation. As in attention.c, values of a single session are computed directly into
 * its KV cache, those of a batch together and then scattered; an 8-bit cache is quantized from scratch
 * rows. */
#include "model/layers.h"

static void project_biased(struct language *m, struct tensor y, const struct weight *w, struct tensor x,
                           struct tensor bias)
{
    m->backend->ops->linear(m->backend, y, x, w, bias, EPI_NONE, SET);
}

/* Computes y = rotate( RMSNorm(x) ); without a norm rotates y in place, which must be x. */
static void turn(struct language *m, struct tensor y, struct tensor x, struct tensor norm, int64_t first,
                 int heads)
{
    const struct ops *ops = m->backend->ops;
    struct tensor table = tensor_rows(m->rope, first, y.rows);
    if (norm.data)
        ops->norm_rotate(m->backend, y, x, norm, table, heads, m->config->eps);
    else
        ops->rotate(m->backend, y, table, heads);
}

/* Computes the rotated keys of u, and its values. */
static void project_kv(struct language *m, const struct attention_weights *w, struct tensor u,
                       struct tensor k, struct tensor v)
{
    const struct lm_config *c = m->config;
    project_biased(m, k, w->k, u, w->k_bias);
    turn(m, k, k, w->k_norm, 0, c->kv_heads);
    project_biased(m, v, w->v, u, w->v_bias);
}

/* Appends all rows of u to one session's cache; the last q.rows of them attend. */
static void attend_tokens(struct language *m, const struct attention_weights *w, struct lm_state *s,
                          int layer, struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    const struct ops *ops = m->backend->ops;
    int64_t rows = u.rows, past = s->length, width = (int64_t)c->kv_heads * c->head_dim;
    struct tensor k = tensor_rows(s->k[layer], 0, past + rows), v = tensor_rows(s->v[layer], 0, past + rows);
    struct tensor new_k = tensor_rows(k, past, rows), new_v = tensor_rows(v, past, rows);
    if (k.dtype == DT_F8E4M3) {
        struct tensor fresh = tensor_rows(m->kv, 0, rows);
        project_kv(m, w, u, tensor_cols(fresh, 0, width), tensor_cols(fresh, width, width));
        ops->kv_quantize(m->backend, new_k, tensor_cols(fresh, 0, width), c->kv_heads);
        ops->kv_quantize(m->backend, new_v, tensor_cols(fresh, width, width), c->kv_heads);
    } else {
        project_kv(m, w, u, new_k, new_v);
    }
    if (q.rows)
        ops->attend_tokens(m->backend, a, q, k, v, c->q_heads, c->kv_heads, past + rows - q.rows);
}

static void attend_batch(struct language *m, const struct attention_weights *w, struct language_batch batch,
                         int layer, struct tensor q, struct tensor a, struct tensor u)
{
    const struct lm_config *c = m->config;
    int64_t width = (int64_t)c->kv_heads * c->head_dim;
    struct tensor *k[LANGUAGE_SESSIONS], *v[LANGUAGE_SESSIONS], fresh = tensor_rows(m->kv, 0, u.rows);
    for (int i = 0; i < batch.sessions; i++) {
        k[i] = &batch.states[i]->k[layer];
        v[i] = &batch.states[i]->v[layer];
    }
    project_kv(m, w, u, tensor_cols(fresh, 0, width), tensor_cols(fresh, width, width));
    attention_append(m, batch, k, tensor_cols(fresh, 0, width), m->slots[0]);
    attention_append(m, batch, v, tensor_cols(fresh, width, width), m->slots[1]);
    m->backend->ops->attend_batch(m->backend, a, q, m->slots[0], m->slots[1], c->q_heads, c->kv_heads);
}

void gated_attention_layer(struct language *m, const struct attention_weights *w, struct language_batch batch,
                           int layer, struct tensor h, struct tensor u)
{
    const struct lm_config *c = m->config;
    struct backend *b = m->backend;
    int64_t rows = h.rows, first = u.rows - rows;
    bool gate = c->pattern[layer] == LAYER_GATED_ATTENTION;
    struct tensor q = tensor_rows(m->q, 0, rows), a = tensor_rows(m->a, 0, rows),
                  p = gate ? tensor_cols(tensor_rows(m->p, 0, rows), 0, 2 * m->q.cols) : q;
    if (rows) {
        project_biased(m, p, w->q, last_rows(u, rows), w->q_bias);
        turn(m, q, p, w->q_norm, first, c->q_heads);
    }
    if (batch.sessions > 1)
        attend_batch(m, w, batch, layer, q, a, u);
    else
        attend_tokens(m, w, batch.states[0], layer, q, a, u);
    if (!rows)
        return;
    if (gate)
        b->ops->gate_heads(b, a, p, c->q_heads);
    project_add(m, h, w->o, a);
}
