/* language.h - the language model: token ids and image rows in, state updated, logits on request.
 *
 *   h[t]   = E[token[t]], or the projector's row at an image position
 *   for each layer i:   u = RMSNorm(h, w_i);  h = h + mixer_i(u)
 *   f      = RMSNorm(h, norm_f)
 *   logits = f . lm_headT, in f32
 *
 * with mixer_i by the letter of the pattern (D hidden size):
 *
 *   M  Mamba-2 (Dao and Gu 2024), mamba.c
 *   *  causal attention with grouped queries and no position embedding, attention.c
 *   -  MLP: W_down . max(0, W_up . u)^2
 *   E  mixture of experts, moe.c
 *
 * or, in Qwen's models, whose layers are two of ours, a mixer and an MLP,
 *
 *   D  Gated DeltaNet, gated_delta.c
 *   A  gated attention with rotary positions, gated_attention.c and rope.c;  R  the same without a gate
 *   S  SwiGLU MLP,  X  mixture of such experts, swiglu.c
 *
 * Rounding: h, u, every matrix product and everything a state keeps have the activation type; in bf16 each is
 * rounded once, when it is stored (the residual sum at every layer; the square of an MLP before and after;
 * the sum over experts once).  The router, norms, time steps, the recurrence, softmax and all sums run in
 * f32.  The SSM state is f32 within a call and stored in f32 or f16 (state.h).
 *
 * A prompt runs in chunks, of at most LANGUAGE_ROWS tokens or of the more that a backend wants, which
 * bounds the scratch memory; each chunk continues from the state the previous one left.  Decoding runs one
 * token of each of several sessions together, with one pass over the weights.  No row's result depends on
 * which other rows run with it. After the last layer that mixes tokens only the last row of a prompt is
 * computed.
 */
#ifndef HOLORUN_MODEL_LANGUAGE_H
#define HOLORUN_MODEL_LANGUAGE_H

#include "model/config.h"
#include "model/state.h"
#include "model/weights.h"

struct rope_position;

enum {
    LANGUAGE_ROWS = 512,    /* of a chunk, where the backend has no other number */
    LANGUAGE_SESSIONS = 512 /* most sessions of a decode step, and rows of the smallest scratch memory */
};

/* Scratch of a mixture of experts, language.rows rows each; keeps the last layer's routing. */
struct moe_scratch {
    struct tensor logits;       /* [T, E] f32 */
    struct tensor ids, weights; /* [T, k] i32 and f32 */
    struct tensor in;           /* [T, X] latent input of the experts; data NULL where X is D */
    struct tensor out;          /* [T, X] */
    struct tensor sum;          /* [T, D] with the shared expert; data NULL where X is D */
    struct tensor shared, gate; /* [T, D], [T, 1] of a gated shared expert, or data NULL */
};

struct language { /* one for each engine */
    const struct lm_config *config;
    const struct model_weights *weights;
    struct backend *backend;
    enum dtype act;
    int64_t rows; /* of the largest chunk */

    /* scratch, so many rows each */
    struct tensor h;      /* [T, D] residual stream */
    struct tensor u;      /* [T, D] normalised */
    struct tensor p;      /* [T, 2HP + 2GN + H] in_proj: z, x, B, C, dt; or q, k, v; or queries and gates */
    struct tensor v;      /* [T, HP + 2GN] after the convolution */
    struct tensor y;      /* [T, HP] */
    struct tensor z;      /* [T, H dv] gate of a Gated DeltaNet layer */
    struct tensor ab;     /* [T, 2H] its decays and betas before they are such */
    struct tensor gates;  /* [T, 2H] f32 */
    struct tensor kv;     /* [T, 2 Hkv d] keys and values on their way to a cache */
    struct tensor rope;   /* [T, dims] f32: this pass's cosines and sines */
    struct tensor q;      /* [T, Hq * d] */
    struct tensor a;      /* [T, Hq * d] attention output */
    struct tensor m, m2;  /* [T, M] inside the MLP */
    struct tensor steps;  /* [LANGUAGE_STEPS or more, D] RMSNorm(h) of the rows of language_steps or _rows */
    bool every_row;       /* within language_rows */
    struct tensor logits; /* [n, V] f32 for the most sessions asked for together so far */
    struct moe_scratch moe;
    float *angles;                             /* `rope` on the host; NULL: no rotary positions */
    float *embed_row;                          /* [D] of an embedding in blocks; else NULL */
    struct rope_position *places;              /* [rows] of this pass; NULL likewise */
    struct tensor slots[2][LANGUAGE_SESSIONS]; /* state views of each session, for the current layer */
    uint32_t keys[LANGUAGE_SESSIONS];          /* stochastic rounding keys of those states */
    struct tensor rings[2][LANGUAGE_SESSIONS]; /* their inputs and time steps */
    int behind[LANGUAGE_SESSIONS];             /* tokens in these */
    bool write[LANGUAGE_SESSIONS];             /* whether the states are written now */

    /* Prefill stops before its next layer when either is non-zero; both may be NULL. */
    const volatile int *cancel;         /* of the engine */
    const volatile int *session_cancel; /* of the session that runs */

    void (*watch)(void *arg, int layer, struct tensor h); /* after each layer; for tests, may be NULL */
    void *watch_arg;
};

/* Rows for positions whose id is the image token. */
struct image_rows {
    int64_t at;         /* index into ids of the first */
    struct tensor rows; /* [n, D], or [n, (1 + k) D]: the rest is added after the first k MLPs */
    int64_t cols;       /* they form lines of so many: see rope.h; 0 in a model without rotary positions */
};

/* Owners of the rows of a pass: all rows belong to one session, or row t belongs to session t.  in_turn:
 * these sessions are all the same one, and each row continues from the row before it; `before`: so many
 * others. */
struct language_batch {
    struct lm_state *const *states;
    int sessions;
    bool replay; /* Mamba-2 states may be left behind */
    bool in_turn;
    int before;
};

/* Sessions of a batch from which on states are left behind: with fewer, writing them is cheap. */
enum { LANGUAGE_REPLAYS = 16 };

/* Tokens that row i's session has when the row is computed. */
static inline int64_t language_past(struct language_batch of, int i)
{
    return of.states[i]->length + (of.in_turn ? of.before + i : 0);
}

void language_init(struct language *m, const struct lm_config *c, const struct model_weights *w,
                   struct backend *b, enum dtype act);
void language_free(struct language *m);

/* Size of the next prefill chunk when n tokens are pending after `done` others.  Chunks that begin among the
 * first m->rows tokens have LANGUAGE_ROWS at most, so that prefixes can be reused at that distance. */
int64_t language_chunk(const struct language *m, int64_t done, int64_t n);

/* Prefill: continues s by n >= 1 tokens.  -1: cancelled; layers then disagree on how many tokens they have
 * seen, and the state must be restored before s is used again. */
int language_forward(struct language *m, struct lm_state *s, const int32_t *ids, int64_t n,
                     const struct image_rows *images, int n_images);

/* Decode step: continues each of n <= LANGUAGE_SESSIONS states by one text token, with the bits each would
 * have alone. State types may differ; states of one type must be adjacent. */
void language_decode_batch(struct language *m, struct lm_state *const *s, int n, const int32_t *ids);

/* Brings the SSM states up to date where they are behind: before their memory is read by others. */
void language_flush(struct language *m, struct lm_state *s);

/* Continues one session by n <= LANGUAGE_STEPS text tokens with one pass over the weights.  Row t has the
 * bits that decoding ids[t] after the ones before it would have: speculation is decided with the logits that
 * decoding one token at a time would give.  What follows is asked of the n rows of the last call. */
enum { LANGUAGE_STEPS = 16 };
void language_steps(struct language *m, struct lm_state *s, const int32_t *ids, int n);
void language_steps_logits(struct language *m, int start, int n,
                           float *const *logits); /* rows from start on */
void language_steps_sample(struct language *m, int n, int ids, const struct sampler *how,
                           struct sampled *out);

/* Prefill of n text tokens, at most language_chunk of them, after which language_steps_logits computes the
 * logits after each of them.  -1: cancelled, as language_forward. */
int language_rows(struct language *m, struct lm_state *s, const int32_t *ids, int n);

/* Logits after the last token, [V] each, on the host. */
void language_logits(struct language *m, struct lm_state *s, float *logits);
void language_logits_batch(struct language *m, struct lm_state *const *s, int n, float *const *logits);

/* Samples the next token of each among ids below `ids`, on a backend that has the operation `sample`. */
void language_sample_batch(struct language *m, struct lm_state *const *s, int n, int ids,
                           const struct sampler *how, struct sampled *out);

/* language_decode_batch, then the next token of each of the first k, in one graph where the backend can. */
void language_decode_sample_batch(struct language *m, struct lm_state *const *s, int n, const int32_t *fed,
                                  int k, int ids, const struct sampler *how, struct sampled *out);

#endif
