/* state.h - the state of the language model after a sequence of tokens.
 *
 * Mamba-2 and Gated DeltaNet layers have a state matrix per head and the last K - 1 inputs of their
 * convolution: a fixed size, updated in place by every token. Attention layers have a KV cache, which
 * only grows; its entries never change, so a rewind needs only the fixed part of the earlier position.
 * `last` is the row from which logits are computed on request.
 *
 * If many sessions decode together on a GPU, their Mamba-2 states are written only every few tokens and
 * lag in between (delayed state write-back). The inputs of the missing tokens are in the same block, so
 * copies, checkpoints and spilled states need no special handling. language_flush() applies them. */
#pragma once

#include "checkpoint/options.h"
#include "model/config.h"
#include "model/state_pool.h"

/* Storage types of a state. */
struct state_types {
    enum dtype act; /* type of activations: convolution inputs, the last row */
    enum dtype ssm; /* SSM states: f32, or f16 with stochastic rounding (ops/stochastic_round.h) */
    enum dtype kv;  /* KV cache: the activations' type, or f8e4m3 for rows of ops/kv8.h */
    int ring;       /* tokens by which a Mamba-2 state may lag (ssm_ring); 0: no delayed write-back */
};

struct state_types state_types(bool f32, enum state_storage ssm, enum kv_storage kv);

/* Returns the ring size for such states of a model: 0 unless the backend supports it and the model has f32
 * Mamba-2 states. */
int state_ring(struct state_types types, const struct lm_config *c, bool supported);

/* The part of fixed size: one block, so that it is copied at once, and views of it, each 256-byte aligned. */
struct recurrent {
    struct state_types types;
    struct tensor block; /* u8 [1, bytes] */
    struct tensor *ssm;  /* per layer: [H * P, N] or [H * dk, dv]; empty for other kinds */
    struct tensor *conv; /* per layer: [K - 1, C], oldest first */
    struct tensor last;  /* [1, D]: RMSNorm(h) of the last token */
    /* Per layer: [ring, H*P + G*N], and f32 [ring, H]; empty without a ring. */
    struct tensor *ring_in, *ring_dt;
};

struct lm_state {
    struct recurrent now;
    struct tensor *k, *v;          /* per layer: [capacity, config_kv_cols]; empty for other kinds */
    int64_t length, capacity;      /* tokens in use and allocated */
    int64_t position;              /* rotary position of the next token (rope.h) */
    int lag;                       /* tokens that are in the ring but not in the SSM states */
    struct state_pool *state_pool; /* allocates its memory; NULL: the backend does, without a limit */
};

/* Set shapes without memory, as a spilled entry has them. recurrent_place() sets the views once the block
 * has memory. */
void recurrent_set_shapes(struct recurrent *r, const struct lm_config *c, struct state_types types);
void recurrent_place(struct recurrent *r, const struct lm_config *c);
void recurrent_free_shapes(struct recurrent *r); /* does not free the block */
void state_set_shapes(struct lm_state *s, const struct lm_config *c, struct state_pool *r,
                      struct state_types types);
/* Visits every tensor that holds memory, for the pool. */
void state_each(struct lm_state *s, const struct lm_config *c, pool_entry_visit *fn, void *arg);

void state_init(struct lm_state *s, const struct lm_config *c, struct backend *b, struct state_types types);
void state_free(struct lm_state *s, const struct lm_config *c, struct backend *b);

/* Grow the KV cache. state_try_reserve() makes `length` positions available, or returns -1 with e.
 * state_capacity() returns the positions a state has afterwards: it grows in steps of 512 and by at least
 * 1/32, so that single tokens do not copy the cache each time and little memory is unused. state_need()
 * returns the additional bytes in use during growth. */
int64_t state_capacity(int64_t have, int64_t length);
size_t state_position(const struct lm_config *c, enum dtype kv); /* bytes per position */
size_t state_need(const struct lm_state *s, const struct lm_config *c, int64_t length);
int state_try_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b, int64_t length,
                      struct err *e);
void state_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b,
                   int64_t length); /* ends the program on failure */

/* Copies a state to one that has memory and the capacity for all of `from`. */
void state_copy(struct lm_state *to, const struct lm_state *from, const struct lm_config *c,
                struct backend *b);

/* Visits every tensor of the state in the order of saved files, keys and values cut to the positions in
 * use. Stops with -1 if fn returns non-zero. */
typedef int state_visit_fn(void *arg, struct tensor t);
int state_visit(const struct lm_state *s, const struct lm_config *c, state_visit_fn *fn, void *arg);
