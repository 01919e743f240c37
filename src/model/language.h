/* language.h - the language model: token ids and image rows in, state updated, logits on request.
 *
 *     h[t]   = E[token[t]], or the projector's row at an image position
 *     for each layer i:   u = RMSNorm(h, w_i);  h = h + mixer_i(u)
 *     f      = RMSNorm(h, norm_f)
 *     logits = f . lm_headT, in f32
 *
 * mixer_i depends on the letter of the pattern (D hidden size):
 *
 *     M  Mamba-2 (Dao and Gu 2024), mamba.c
 *     *  causal attention with grouped queries and no position embedding, attention.c
 *     -  MLP: W_down . max(0, W_up . u)^2
 *     E  mixture of experts, moe.c
 *
 * In Qwen's models each published layer becomes two, a mixer and an MLP:
 *
 *     D  Gated DeltaNet, gated_delta.c
 *     A  gated attention with rotary positions, gated_attention.c and rope.c;  R  without a gate
 *     S  SwiGLU MLP,  X  mixture of such experts, swiglu.c
 *
 * Rounding: h, u, every matrix product and everything stored in a state have the activation type. In bf16
 * each is rounded once, when it is stored (the residual sum at every layer; the square of an MLP before
 * and after; the sum over experts once). The router, norms, time steps, the recurrence, softmax and all
 * sums run in f32. The SSM state is f32 within a call and stored in f32 or f16 (state.h).
 *
 * A prompt runs in chunks of at most LANGUAGE_ROWS tokens, or of the larger number that the backend
 * requests, which bounds the scratch memory; each chunk continues from the state of the previous one. A
 * decode step computes one token of each of several sessions with one pass over the weights. The result of
 * a row does not depend on the other rows computed with it. After the last layer that mixes tokens, only
 * the last row of a prompt is computed. */
#pragma once

#include "model/config.h"
#include "model/state.h"
#include "model/weights.h"

struct rope_position;

enum {
    LANGUAGE_ROWS = 512,    /* rows of a chunk, unless the backend sets another number */
    LANGUAGE_SESSIONS = 512 /* maximum sessions of a decode step, and minimum rows of scratch memory */
};

/* Scratch of a mixture of experts, language.rows rows each; holds the routing of the last layer. */
struct moe_scratch {
    struct tensor logits;       /* [T, E] f32 */
    struct tensor ids, weights; /* [T, k] i32 and f32 */
    struct tensor in;           /* latent input of the experts; data NULL if X is D */
    struct tensor out;          /* [T, X] */
    struct tensor sum;          /* with the shared expert; data NULL if X is D */
    struct tensor shared, gate; /* [T, D], [T, 1] of a gated shared expert, or data NULL */
};

struct language { /* one per engine */
    const struct lm_config *config;
    const struct model_weights *weights;
    struct backend *backend;
    enum dtype act;
    int64_t rows; /* rows of the largest chunk */

    /* scratch; T = max(rows, LANGUAGE_SESSIONS) */
    struct tensor h;     /* [T, D] residual stream */
    struct tensor u;     /* normalized */
    struct tensor p;     /* in_proj: z, x, B, C, dt; or q, k, v; or queries and gates */
    struct tensor v;     /* [T, HP + 2GN] after the convolution */
    struct tensor y;     /* [T, HP] */
    struct tensor z;     /* [T, H dv] gate of a Gated DeltaNet layer */
    struct tensor ab;    /* its decay and beta inputs, before activation */
    struct tensor gates; /* [T, 2H] f32 */
    struct tensor kv;    /* keys and values before they are quantized or scattered into a cache */
    struct tensor rope;  /* [T, dims] f32: cosines and sines of this pass */
    struct tensor q;     /* [T, Hq * d] */
    struct tensor a;     /* [T, Hq * d] attention output */
    struct tensor m, m2; /* [T, M] hidden rows of the MLP */
    /* [LANGUAGE_MAX_VERIFY or more, D] final norm of the rows of language_verify_drafts() or
     * language_rows(). */
    struct tensor outputs;
    bool every_row;       /* set within language_rows() */
    struct tensor logits; /* [n, V] f32; n is the largest number of sessions requested together so far */
    struct moe_scratch moe;
    float *angles;                             /* host copy of `rope`; NULL: no rotary positions */
    float *embed_row;                          /* [D] f32, if the embedding is stored in GGUF blocks; else
                                                * NULL */
    struct rope_position *positions;           /* [rows] of this pass; NULL: no rotary positions */
    struct tensor slots[2][LANGUAGE_SESSIONS]; /* state views of each session for the current layer */
    uint32_t keys[LANGUAGE_SESSIONS];          /* keys for stochastic rounding of those states */
    /* Delayed state write-back: the buffered inputs and time steps of each session, the number of buffered
     * tokens, and whether the state is written in this pass. */
    struct tensor rings[2][LANGUAGE_SESSIONS];
    int lag[LANGUAGE_SESSIONS];
    bool write[LANGUAGE_SESSIONS];

    /* A prefill stops before its next layer when either is non-zero; both may be NULL. */
    const volatile int *cancel;         /* cancel flag of the engine */
    const volatile int *session_cancel; /* cancel flag of the running session */

    void (*watch)(void *arg, int layer, struct tensor h); /* called after each layer, for tests; may be
                                                           * NULL */
    void *watch_arg;
};

/* Rows that replace the embeddings at image positions. */
struct image_rows {
    int64_t at;         /* index into ids of the first image token */
    struct tensor rows; /* [n, D], or [n, (1 + k) D] with DeepStack: the rest is added after the first k
                         * MLPs */
    int64_t cols;       /* number of rows per line of the image, see rope.h; 0 in a model without rotary
                         * positions */
};

/* Owners of the rows of a pass: all rows belong to one session, or row t belongs to session t. sequential:
 * all sessions are the same one, and each row continues from the row before it; `before` is the number of
 * earlier rows of the pass that are not in this part of the batch. */
struct language_batch {
    struct lm_state *const *states;
    int sessions;
    bool replay; /* Mamba-2 states may be written back later */
    bool sequential;
    int before;
};

/* Minimum number of sessions for delayed state write-back; with fewer, writing the states is cheap. */
enum { LANGUAGE_REPLAYS = 16 };

/* Returns the number of tokens in row i's session before that row. */
static inline int64_t language_past(struct language_batch batch, int i)
{
    return batch.states[i]->length + (batch.sequential ? batch.before + i : 0);
}

void language_init(struct language *m, const struct lm_config *c, const struct model_weights *w,
                   struct backend *b, enum dtype act);
void language_free(struct language *m);

/* Returns the size of the next prefill chunk when n tokens are pending after `done` others, `text` of them
 * before the next image. Chunks that begin among the first m->rows tokens and end before an image have at
 * most LANGUAGE_ROWS, so that prefixes, which have no images, can be reused at that granularity. */
int64_t language_chunk(const struct language *m, int64_t done, int64_t n, int64_t text);

/* Returns the number of tokens from `first` on that are before `end` and before any image with rows there. */
static inline int64_t language_text(const struct image_rows *images, int n_images, int64_t first, int64_t end)
{
    for (int i = 0; i < n_images; i++)
        if (images[i].at + images[i].rows.rows > first && images[i].at < end)
            end = images[i].at > first ? images[i].at : first;
    return end - first;
}

/* Prefills: continues s by n >= 1 tokens. Returns -1 if cancelled; the layers then differ in the number of
 * tokens they have processed, so the state must be restored before s is used again. */
int language_forward(struct language *m, struct lm_state *s, const int32_t *ids, int64_t n,
                     const struct image_rows *images, int n_images);

/* Decodes: continues each of n <= LANGUAGE_SESSIONS states by one text token, bit-identical to decoding
 * each alone. State types may differ; states of one type must be adjacent. */
void language_decode_batch(struct language *m, struct lm_state *const *s, int n, const int32_t *ids);

/* Applies the buffered SSM updates of s (delayed state write-back, struct ssm_ring). Call before anything
 * else reads or copies the state. Does nothing if none are pending. */
void language_flush(struct language *m, struct lm_state *s);

/* Verifies draft tokens: continues one session by n <= LANGUAGE_MAX_VERIFY text tokens with one pass over
 * the weights. Row t is bit-identical to decoding ids[t] after the ones before it, so speculation uses the
 * logits that decoding one token at a time would give. The two functions below compute logits or samples
 * of the n rows of the last call. */
enum { LANGUAGE_MAX_VERIFY = 16 };
void language_verify_drafts(struct language *m, struct lm_state *s, const int32_t *ids, int n);
void language_verify_logits(struct language *m, int start, int n,
                            float *const *logits); /* n rows, starting with `start` */
void language_verify_sample(struct language *m, int n, int ids, const struct sampler *how,
                            struct sampled *out);

/* Prefills n text tokens, at most language_chunk() of them, and keeps all rows: language_verify_logits()
 * then computes the logits after each of them. Returns -1 if cancelled, as language_forward(). */
int language_rows(struct language *m, struct lm_state *s, const int32_t *ids, int n);

/* Compute the logits after the last token, [V] per state, on the host. */
void language_logits(struct language *m, struct lm_state *s, float *logits);
void language_logits_batch(struct language *m, struct lm_state *const *s, int n, float *const *logits);

/* Samples the next token of each state among ids below `ids`; the backend must have the operation
 * `sample`. */
void language_sample_batch(struct language *m, struct lm_state *const *s, int n, int ids,
                           const struct sampler *how, struct sampled *out);

/* Runs language_decode_batch() and samples the next token of the first k states, in one graph if the
 * backend supports it. */
void language_decode_sample_batch(struct language *m, struct lm_state *const *s, int n, const int32_t *fed,
                                  int k, int ids, const struct sampler *how, struct sampled *out);
