/* state.h - what the language model remembers of the tokens so far.
 *
 * Mamba-2 layers keep a matrix for each head and the last K - 1 inputs of their convolution: a fixed
 * size, changed in place by every token.  Attention layers keep keys and values of every position:
 * they grow, but what is written never changes, so that going back to fewer tokens only needs the
 * fixed part from then.  `last` is the row the logits are computed from, when somebody asks for them.
 */
#ifndef HOLORUN_MODEL_STATE_H
#define HOLORUN_MODEL_STATE_H

#include "model/config.h"
#include "model/options.h"
#include "model/state_pool.h"

/* What numbers it is held in. */
struct state_types {
    enum dtype act; /* of activations: convolutions' inputs, the last row */
    enum dtype ssm; /* of the matrices: f32, or f16 rounded by chance (ops/stochastic_round.h) */
    enum dtype kv;  /* of keys and values: that of activations, or f8e4m3 for rows of ops/kv8.h */
};

struct state_types state_types(bool f32, enum state_storage numbers,
                               enum kv_storage kv); /* as of engine_options */

/* The fixed part: one piece of memory, so that it is copied at once, and views of it.  Each begins at a multiple
 * of 256 bytes. */
struct recurrent {
    struct state_types types;
    struct tensor block; /* u8 [1, bytes] */
    struct tensor *ssm;  /* by layer: [H * P, N]; empty for other kinds */
    struct tensor *conv; /* by layer: [K - 1, C], oldest first */
    struct tensor last;  /* [1, D]: RMSNorm(h) of the last token */
};

struct lm_state {
    struct recurrent now;
    struct tensor *k, *v;          /* by layer: [capacity, config_kv_cols]; empty for other kinds */
    int64_t length, capacity;      /* positions in use, and that there is room for */
    struct state_pool *state_pool; /* where its memory comes from; NULL: from the backend, without a bound */
};

/* state_set_shapes: shapes without memory, as a tenant has them that is away; recurrent_place when there is memory. */
void recurrent_set_shapes(struct recurrent *r, const struct lm_config *c, struct state_types types);
void recurrent_place(struct recurrent *r, const struct lm_config *c);
void state_set_shapes(struct lm_state *s, const struct lm_config *c, struct state_pool *r,
                      struct state_types types);
void state_each(struct lm_state *s, const struct lm_config *c, pool_entry_visit *fn, void *arg);

void state_init(struct lm_state *s, const struct lm_config *c, struct backend *b, struct state_types types);
void state_free(struct lm_state *s, const struct lm_config *c, struct backend *b);

/* Room for `length` positions: what a state gets that has room for so many; in steps, so that tokens one by one do
 * not copy all of them each time, and small ones, so that little lies idle.  state_need: how many bytes more are
 * taken for that while it grows. */
int64_t state_capacity(int64_t have, int64_t length);
size_t state_position(const struct lm_config *c, enum dtype kv); /* bytes of one */
size_t state_need(const struct lm_state *s, const struct lm_config *c, int64_t length);
int state_try_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b, int64_t length,
                      struct err *e);
void state_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b,
                   int64_t length); /* or dies */

/* `to` has the memory of an empty one and room for all of `from`. */
void state_copy(struct lm_state *to, const struct lm_state *from, const struct lm_config *c,
                struct backend *b);

/* Every tensor that makes up the state, in a fixed order, with keys and values cut to the rows in use:
 * what is written to a file, and where a file is read into. Stops when fn answers non-zero. */
typedef int state_visit_fn(void *arg, struct tensor t);
int state_visit(const struct lm_state *s, const struct lm_config *c, state_visit_fn *fn, void *arg);

#endif
