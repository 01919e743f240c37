/* language.h - the language model: tokens and image rows in, state out, logits when asked for.
 *
 *   h[t]   = E[token[t]], or the projector row of an image position
 *   for each layer i:   h = h + mixer_i( RMSNorm(h, w_i) )
 *   f      = RMSNorm(h, norm_f)
 *   logits = f . headT, in f32
 *
 * with mixer_i by the letter of the pattern (D hidden size):
 *
 *   M  Mamba-2 (Dao and Gu 2024), mamba.c
 *   *  attention over all earlier positions, grouped queries, no position embedding, attention.c
 *   -  W_down . max(0, W_up . u)^2
 *   E  a mixture of experts, moe.c
 *
 * Rounding: h, u, every matrix product and everything stored between two steps have the activation
 * type; in bf16 each is rounded once when it is stored (the residual sum too, at every layer; the square
 * of an MLP before and after; the sum over experts once).  The router, norms, time steps, the state space recurrence, softmax and all sums run
 * in f32; the recurrent state is f32 within a call, and kept in f32 or f16 (state.h).
 *
 * A prompt goes through in pieces of at most LANGUAGE_ROWS tokens, which bounds the scratch memory; each
 * piece continues from the state that the one before left, and none but a prompt of one token has one alone.  One token of each of several sessions goes
 * through together, with one pass over the weights; no row's result depends on which others there are.
 * Behind the last layer where tokens meet only the last row of a prompt is computed: nobody sees the others.
 */
#ifndef HOLORUN_MODEL_LANGUAGE_H
#define HOLORUN_MODEL_LANGUAGE_H

#include "model/config.h"
#include "model/state.h"
#include "model/weights.h"

enum { LANGUAGE_ROWS = 512 };

/* Scratch of a mixture of experts, LANGUAGE_ROWS rows of each; what the last layer chose stays in it. */
struct moe_scratch {
    struct tensor logits;       /* [T, E] f32 */
    struct tensor ids, weights; /* [T, k] i32 and f32 */
    struct tensor in;           /* [T, X] latent input of the experts; data NULL where X is D */
    struct tensor out;          /* [T, X] */
    struct tensor sum;          /* [T, D] with the shared expert; data NULL where X is D */
};

struct language { /* one for each engine */
    const struct lm_config *config;
    const struct model_weights *weights;
    struct backend *backend;
    enum dtype act;

    /* scratch, LANGUAGE_ROWS rows of each: the wave of activations */
    struct tensor h;      /* [T, D] residual stream */
    struct tensor u;      /* [T, D] normalised */
    struct tensor p;      /* [T, 2HP + 2GN + H] in_proj: z, x, B, C, dt */
    struct tensor v;      /* [T, HP + 2GN] after the convolution */
    struct tensor y;      /* [T, HP] */
    struct tensor q;      /* [T, Hq * d] */
    struct tensor a;      /* [T, Hq * d] attended */
    struct tensor m;      /* [T, M] inside the MLP */
    struct tensor logits; /* [n, V] f32 of as many sessions as were ever asked for together */
    struct moe_scratch moe;
    struct tensor slots[2][LANGUAGE_ROWS]; /* states of each session, of the layer that runs */
    uint32_t keys[LANGUAGE_ROWS];          /* and what they are rounded with */

    const volatile int
        *cancel; /* non-zero: what reads many tokens gives up before its next layer; may be NULL */
    const volatile int *own; /* the same of the session whose tokens go through */
    void (*watch)(void *arg, int layer, struct tensor h); /* after each layer; for tests, may be NULL */
    void *watch_arg;
};

/* Rows that stand where `ids` has the image token. */
struct image_rows {
    int64_t at;         /* index into ids of the first */
    struct tensor rows; /* [n, D] */
};

/* Whose tokens go through: all rows are of one session, or one row is of each of several. */
struct language_batch {
    struct lm_state *const *states;
    int sessions;
};

void language_init(struct language *m, const struct lm_config *c, const struct model_weights *w,
                   struct backend *b, enum dtype act);
void language_free(struct language *m);

/* How many of n tokens that wait go through at once. */
int64_t language_chunk(const struct language *m, int64_t n);

/* Continues s by n >= 1 tokens.  -1: cancelled; some layers may have seen tokens that others have not, and s is of use
 * only after its state has been put back. */
int language_forward(struct language *m, struct lm_state *s, const int32_t *ids, int64_t n,
                     const struct image_rows *images, int n_images);

/* Continues each of n <= LANGUAGE_ROWS states by one text token: the same bits as one by one.  Their types may differ;
 * those of one type stand together. */
void language_step_each(struct language *m, struct lm_state *const *s, int n, const int32_t *ids);

/* Logits after the last token of s, [V] on the host; and of several. */
void language_logits(struct language *m, const struct lm_state *s, float *logits);
void language_logits_each(struct language *m, struct lm_state *const *s, int n, float *const *logits);

/* Their next tokens, of ids below `ids`, by a backend that has the operation. */
void language_choose_each(struct language *m, struct lm_state *const *s, int n, int ids,
                          const struct choosing *how, struct choice *out);

/* The mixers: h += mixer(u).  h has the last rows of those that u has: all that the layers behind want to know. */
void mamba_layer(struct language *m, const struct mamba_weights *w, struct language_batch of, int layer,
                 struct tensor h, struct tensor u);
void attention_layer(struct language *m, const struct attention_weights *w, struct language_batch of,
                     int layer, struct tensor h, struct tensor u);
void moe_layer(struct language *m, const struct moe_weights *w, struct tensor h, struct tensor u);

/* Scratch of the latter. */
void moe_init(struct language *m);
void moe_free(struct language *m);

#endif
