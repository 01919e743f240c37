/* state.h - what the language model keeps of the tokens so far.
 *
 * Mamba-2 and Gated DeltaNet layers keep a state matrix for each head and the last K - 1 inputs of their
 * convolution: a fixed size, updated in place by every token.  Attention layers keep a KV cache, which
 * grows but never changes what is written, so a rewind needs only the fixed part of the earlier position.
 * `last` is the row that logits are computed from on request.
 *
 * Where many sessions decode together on a GPU their Mamba-2 states are written every few tokens only and are
 * `behind` meanwhile: the inputs of the tokens they lack are in the same block, so that copies, checkpoints
 * and spilled states need not know.  language_flush brings a state up to date.
 */
#ifndef HOLORUN_MODEL_STATE_H
#define HOLORUN_MODEL_STATE_H

#include "checkpoint/options.h"
#include "model/config.h"
#include "model/state_pool.h"

/* Storage types of a state. */
struct state_types {
    enum dtype act; /* activations: convolution inputs, the last row */
    enum dtype ssm; /* SSM states: f32, or f16 with stochastic rounding (ops/stochastic_round.h) */
    enum dtype kv;  /* KV cache: the activations' type, or f8e4m3 for rows of ops/kv8.h */
    int ring;       /* tokens that a Mamba-2 state may be behind, with their inputs beside it (ssm_ring) */
};

struct state_types state_types(bool f32, enum state_storage ssm, enum kv_storage kv);

/* Tokens of a ring for such states of a model: 0 unless the backend can and a state is f32 of Mamba-2. */
int state_ring(struct state_types types, const struct lm_config *c, bool supported);

/* The fixed part: one block, so that it is copied at once, and views of it, each 256-byte aligned. */
struct recurrent {
    struct state_types types;
    struct tensor block; /* u8 [1, bytes] */
    struct tensor *ssm;  /* by layer: [H * P, N], or [H * dk, dv]; empty for other kinds */
    struct tensor *conv; /* by layer: [K - 1, C], oldest first */
    struct tensor last;  /* [1, D]: RMSNorm(h) of the last token */
    struct tensor *ring_in,
        *ring_dt; /* by layer: [ring, H*P + G*N] and f32 [ring, H]; empty without a ring */
};

struct lm_state {
    struct recurrent now;
    struct tensor *k, *v;          /* by layer: [capacity, config_kv_cols]; empty for other kinds */
    int64_t length, capacity;      /* tokens in use and allocated */
    int64_t position;              /* rotary position of the next token: rope.h */
    int behind;                    /* tokens that are in the ring and not in the SSM states */
    struct state_pool *state_pool; /* where its memory comes from; NULL: from the backend, without a bound */
};

/* The set_shapes functions set shapes without memory, as a spilled entry has them; recurrent_place sets
 * the views once the block has memory. */
void recurrent_set_shapes(struct recurrent *r, const struct lm_config *c, struct state_types types);
void recurrent_place(struct recurrent *r, const struct lm_config *c);
void recurrent_free_shapes(struct recurrent *r); /* not the block */
void state_set_shapes(struct lm_state *s, const struct lm_config *c, struct state_pool *r,
                      struct state_types types);
/* Visits every tensor that holds memory, for the pool. */
void state_each(struct lm_state *s, const struct lm_config *c, pool_entry_visit *fn, void *arg);

void state_init(struct lm_state *s, const struct lm_config *c, struct backend *b, struct state_types types);
void state_free(struct lm_state *s, const struct lm_config *c, struct backend *b);

/* state_try_reserve makes room for `length` positions.  state_capacity: the positions a state then has;
 * it grows in steps, so that single tokens do not copy all of them each time, and by small ones, so that
 * little memory is idle.  state_need: bytes more that are in use while it grows. */
int64_t state_capacity(int64_t have, int64_t length);
size_t state_position(const struct lm_config *c, enum dtype kv); /* bytes of one position */
size_t state_need(const struct lm_state *s, const struct lm_config *c, int64_t length);
int state_try_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b, int64_t length,
                      struct err *e);
void state_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b,
                   int64_t length); /* exits on failure */

/* `to` has an empty state's memory and room for all of `from`. */
void state_copy(struct lm_state *to, const struct lm_state *from, const struct lm_config *c,
                struct backend *b);

/* Visits every tensor of the state in a fixed order, keys and values cut to the positions in use: the
 * order of state files.  Stops when fn answers non-zero. */
typedef int state_visit_fn(void *arg, struct tensor t);
int state_visit(const struct lm_state *s, const struct lm_config *c, state_visit_fn *fn, void *arg);

#endif
