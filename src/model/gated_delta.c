/* gated_delta.c - layer with the Gated DeltaNet mixer of Qwen3.5 (Yang et al., "Gated Delta Networks",
 * 2024).
 *
 *     x, z, a, b = W_qkv u, W_z u, W_a u, W_b u         Hk key heads of dk, H value heads of dv
 *     q, k, v    = split( SiLU( conv(x) ) )             depthwise over the last K tokens, no bias
 *     g, beta    = -exp(A_log) softplus(a + dt_bias), sigmoid(b)
 *     S, y       = the gated delta rule                 ops/ref_delta.c
 *     out        = w * RMSNorm( y ) * SiLU(z)           per value head; the norm first, then the gate
 *     h          = h + W_out out
 *
 * A prefill runs in chunks, the same formulas as matrix products; one token of one or several sessions
 * runs through the recurrence. Both start from the state and update it. */
#include "model/layers.h"

void gated_delta_layer(struct language *m, const struct delta_weights *w, struct language_batch batch,
                       int layer, struct tensor h, struct tensor u)
{
    const struct delta_shape *s = &m->config->delta;
    const struct ops *ops = m->backend->ops;
    struct backend *b = m->backend;
    int64_t rows = u.rows, heads = s->value_heads;
    struct tensor x = tensor_cols(tensor_rows(m->p, 0, rows), 0, m->v.cols), v = tensor_rows(m->v, 0, rows),
                  ab = tensor_rows(m->ab, 0, rows), gates = tensor_rows(m->gates, 0, rows),
                  y = tensor_rows(m->y, 0, rows);
    struct tensor *conv = m->slots[0], *states = m->slots[1];
    for (int i = 0; i < batch.sessions; i++) {
        conv[i] = batch.states[i]->now.conv[layer];
        states[i] = batch.states[i]->now.ssm[layer];
    }
    project(m, x, w->qkv, u);
    project(m, tensor_cols(ab, 0, heads), w->a_proj, u);
    project(m, tensor_cols(ab, heads, heads), w->b_proj, u);
    if (rows == batch.sessions && !batch.sequential && h.rows == rows && ops->delta_batch) {
        struct tensor z = tensor_rows(m->z, 0, rows);
        const struct delta_batch e = {.conv = w->conv,
                                      .a = w->a,
                                      .dt_bias = w->dt_bias,
                                      .norm = w->norm,
                                      .eps = m->config->eps,
                                      .conv_states = conv,
                                      .states = states,
                                      .shape = s};
        project(m, z, w->z, u);
        ops->delta_batch(b, y, z, x, ab, &e);
        project_add(m, h, w->out_proj, y);
        return;
    }
    ops->delta_gates(b, gates, tensor_cols(ab, 0, heads), tensor_cols(ab, heads, heads), w->a, w->dt_bias);
    if (batch.sequential) {
        for (int64_t i = 0; i < rows; i++) {
            struct tensor row = tensor_rows(v, i, 1);
            ops->conv_batch(b, row, tensor_rows(x, i, 1), w->conv, no_bias, conv);
            ops->delta_step_batch(b, tensor_rows(y, i, 1), row, tensor_rows(gates, i, 1), states, s);
        }
    } else if (rows == batch.sessions) {
        ops->conv_batch(b, v, x, w->conv, no_bias, conv);
        ops->delta_step_batch(b, y, v, gates, states, s);
    } else {
        ops->conv_tokens(b, v, x, w->conv, no_bias, conv[0]);
        ops->delta_scan(b, y, v, gates, states[0], s);
    }
    if (h.rows == 0)
        return;
    struct tensor z = tensor_rows(m->z, 0, h.rows), last = last_rows(y, h.rows);
    project(m, z, w->z, last_rows(u, h.rows));
    ops->norm_gate(b, last, last, z, w->norm, m->config->eps);
    project_add(m, h, w->out_proj, last);
}
