/* layers.h - the layers of the language model and their matrix products; private to src/model. */
#pragma once

#include "model/language.h"

static const struct tensor no_bias = {0};

/* Computes y = W x. */
static inline void project(struct language *m, struct tensor y, const struct weight *w, struct tensor x)
{
    m->backend->ops->linear(m->backend, y, x, w, no_bias, EPI_NONE, SET);
}

/* Computes h = h + W x. */
static inline void project_add(struct language *m, struct tensor h, const struct weight *w, struct tensor x)
{
    m->backend->ops->linear(m->backend, h, x, w, no_bias, EPI_NONE, ADD);
}

/* Computes y = max(0, W x)^2. */
static inline void project_relu2(struct language *m, struct tensor y, const struct weight *w, struct tensor x)
{
    m->backend->ops->linear(m->backend, y, x, w, no_bias, EPI_RELU2, SET);
}

static inline struct tensor last_rows(struct tensor t, int64_t n)
{
    return tensor_rows(t, t.rows - n, n);
}

/* Appends row t of `fresh` to the cache of session t; `out` receives the caches including it. */
void attention_append(struct language *m, struct language_batch batch, struct tensor *const caches[],
                      struct tensor fresh, struct tensor *out);

/* Compute h = h + mixer(u). h holds the last h.rows of the rows in u; later layers need only those. */
void mamba_layer(struct language *m, const struct mamba_weights *w, struct language_batch batch, int layer,
                 struct tensor h, struct tensor u);
void attention_layer(struct language *m, const struct attention_weights *w, struct language_batch batch,
                     int layer, struct tensor h, struct tensor u);
void gated_delta_layer(struct language *m, const struct delta_weights *w, struct language_batch batch,
                       int layer, struct tensor h, struct tensor u);
void gated_attention_layer(struct language *m, const struct attention_weights *w, struct language_batch batch,
                           int layer, struct tensor h, struct tensor u);
void swiglu_layer(struct language *m, const struct mlp_weights *w, int width, struct tensor h,
                  struct tensor u);
void swiglu_moe_layer(struct language *m, const struct moe_weights *w, struct tensor h, struct tensor u);
void moe_layer(struct language *m, const struct moe_weights *w, struct tensor h, struct tensor u);

/* Returns the number of tokens by which a session's state lags after this pass of `tokens` tokens per
 * session. */
int mamba_lag(struct language_batch batch, int session, int64_t tokens);

/* Applies the buffered updates of a layer to its state. */
void mamba_flush(struct language *m, const struct mamba_weights *w, const struct lm_state *s, int layer);

/* Chooses the experts of the rows of u and their weights, in scratch of m. */
void moe_route(struct language *m, const struct moe_weights *w, struct tensor bias, struct tensor u,
               struct tensor *ids, struct tensor *weights);
void moe_init(struct language *m); /* allocates the scratch of experts, which language_free() frees */
