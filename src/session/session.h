/* session.h - the manual of the two public nouns, the engine and the session.
 *
 * An engine is a loaded model: config, tokenizer, weights and backend (llama.cpp's llama_model).  It does
 * not change after engine_open, and any number of sessions share it.
 *
 * A session is one conversation and all of its state (llama.cpp's llama_context with one sequence): its
 * tokens, the SSM and convolution states of the Mamba layers, the KV cache of the attention layers, the
 * random number generator, and the logits after the last token.  It only grows, or goes back to a
 * checkpoint: a recurrent state cannot drop tokens from its end or its middle.
 *
 *     struct engine *g = engine_open(&(struct engine_options){.dir = "model"}, &e);
 *     struct session *s = session_new(g, 42);                random seed
 *     session_append(s, ids, n, &e);                         tokens are pending, nothing is computed
 *     struct checkpoint *c = session_try_checkpoint(s, &e);  prefill, then a copy of the state
 *     generate(s, &how, &out, &e);                           generate.h: sampling, logit mask, stop tokens
 *     session_rewind(s, c, &e);                              the reply is gone, the prompt is not read again
 *
 * Threads: one thread at a time may use an engine, its sessions and checkpoints.  With
 * engine_options.shared any number of threads may use the engine, each session and its checkpoints still
 * one thread at a time: the scheduler (scheduler.h) interleaves prefill chunks and decodes one token of all
 * waiting sessions in one batch.  A session computes the same bits as alone.
 *
 * Errors: functions with a struct err return -1 or NULL and leave the session as it was; those without one
 * end the program.  The mathematics and its rounding: model/language.h and model/vision.h.
 */
#ifndef HOLORUN_SESSION_SESSION_H
#define HOLORUN_SESSION_SESSION_H

#include "base/err.h"
#include "base/image.h"
#include "checkpoint/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct session;
struct checkpoint;
struct tokenizer;
struct model_config;
struct drift;
struct extra_tensor;
struct vision_tower_rows;
struct sampler;         /* ops.h: temperature, top-p, logit mask, random number */
struct sampled;         /* ops.h: the sampled token and its log-probabilities */
struct scheduler_stats; /* scheduler.h */

typedef int vision_use_rows(void *arg, const struct vision_tower_rows *r, struct err *e); /* model/vision.h */

/* ---- engine ------------------------------------------------------------------------------- */

/* Loads the model in o->dir; NULL on failure. */
struct engine *engine_open(const struct engine_options *o, struct err *e);
void engine_close(struct engine *g); /* after its sessions and checkpoints; NULL is fine */

const char *engine_dir(const struct engine *g);
const struct model_config *engine_config(const struct engine *g);
const struct tokenizer *engine_tokenizer(const struct engine *g);
const struct chat_template *engine_chat(const struct engine *g);
int engine_vocab(const struct engine *g);       /* V: rows of the embedding, length of a row of logits */
const char *engine_isa(const struct engine *g); /* name of the backend: "avx512", "cuda", ... */
int engine_threads(const struct engine *g);

/* In the matrices of the language model, scales of quantized ones included. */
double engine_bytes_per_weight(const struct engine *g);
enum kv_storage engine_kv_storage(const struct engine *g);
enum state_storage engine_state_storage(const struct engine *g);
const struct drift *engine_drift(const struct engine *g); /* of f16 states, measured by engine_open */

/* Whether generation ends with this token: the model's eos tokens and those that end a turn. */
bool engine_is_stop(const struct engine *g, int32_t id);

/* Image tokens of a screenshot of w x h pixels, and its tile grid; cols and rows may be NULL. */
int engine_image_tokens(const struct engine *g, int w, int h, int *cols, int *rows);

/* Larger pictures are reduced to so many pixels from now on; for models with a canvas of any size. */
int engine_limit_pixels(struct engine *g, int most, struct err *e);

/* Hash of config.json, the tensor table and the first 256 bytes of each tensor: a saved session loads only
 * into an engine with the same one. */
uint64_t engine_hash(const struct engine *g);

/* The same over every byte of the weights in `dir`, as the record of a run has it.  Takes as long as
 * reading them: returns 1, and sets nothing, when they have more than `most` bytes. */
enum { MODEL_HASH_MOST = 1 << 30 };
int model_hash_weights(const char *dir, size_t most, uint64_t *hash, struct err *e);

/* Whether config, tokenizer and an embedding of `vocab` rows agree: every id has a row, the marks around an
 * image are tokens.  engine_open refuses a model that fails this. */
int engine_check_tokenizer(const struct model_config *c, int vocab, const struct tokenizer *t, struct err *e);

/* Memory of the states of sessions and checkpoints, in bytes. */
struct state_memory {
    size_t bound, used, peak;  /* bound 0: none */
    int64_t spilled, restored; /* entries that went to host memory and came back */
};
struct state_memory engine_state_memory(const struct engine *g);

/* Bytes that a device has left for this engine, with what its own pool keeps; 0: states are in host
 * memory. */
size_t engine_memory_left(const struct engine *g);

/* Guesses of all sessions so far, and those that were sampled then. */
struct speculation_counts {
    int64_t proposed, accepted;
};
struct speculation_counts engine_speculation(const struct engine *g);

/* Tensors of the checkpoint that the model itself does not use, such as heads on its tower, by their whole
 * name (model/weights.h); NULL: not found. */
const struct extra_tensor *engine_extra_tensor(const struct engine *g, const char *name);

/* Calls use() with the tower's rows of an image while this thread has the engine (vision_use_tower()).  The
 * wait and the computation end with ERR_STOPPED when *cancel becomes non-zero; it may be NULL. */
int engine_use_tower(struct engine *g, const struct image *im, const volatile int *cancel,
                     vision_use_rows *use, void *arg, struct err *e);

/* Counts of what the scheduler has done so far; zeros when the engine is not shared. */
struct scheduler_stats engine_scheduler_stats(const struct engine *g);

/* ---- session ------------------------------------------------------------------------------
 *
 * Appended tokens stay pending until logits, a checkpoint or a copy need them, so that all parts of a turn
 * go through the model in one prefill.  Images go through the vision tower when they are appended.
 *
 * States live within engine_options.state_memory.  When it is full, a GPU spills idle ones to host memory,
 * checkpoints before sessions, the least recently used first, and restores them when they are used again;
 * that costs time and nothing else.  On a processor spilling gains nothing: what does not fit is an error.
 */

struct session *session_new(struct engine *g, uint64_t seed);
void session_free(struct session *s); /* NULL is fine */
struct engine *session_engine(const struct session *s);

/* While *flag is non-zero, prefill, the vision tower and waiting for the engine give up with ERR_STOPPED, as
 * with engine_options.cancel.  Forks inherit the flag; NULL: none. */
void session_set_cancel(struct session *s, const volatile int *flag);

int64_t session_length(const struct session *s);        /* tokens, image tokens and pending ones included */
const int32_t *session_tokens(const struct session *s); /* [length], borrowed until the next append */

/* Appends text tokens: ids below the tokenizer's size, none of them the image token.  Refuses to exceed the
 * model's context length. */
int session_append(struct session *s, const int32_t *ids, int64_t n, struct err *e);

/* Appends <img>, one image token for each row of the projector, </img>.  Tiles whose pixels this engine has
 * seen come from the cache of the vision tower. */
int session_append_image(struct session *s, const struct image *im, struct err *e);

/* Prefix cache of a shared engine: copies the longest cached state that the pending tokens begin with,
 * and computes and caches the rest.  Call it after the system text, before anything of this session is
 * computed.  Fails only when it is stopped; without room or a hit the session goes on with its own
 * prefill. */
int session_reuse_prefix(struct session *s, struct err *e);

/* Prefill: computes all pending tokens. */
int session_prefill(struct session *s, struct err *e);

/* Prefill, then the logits after the last token. */
int session_compute_logits(struct session *s, struct err *e);

/* Logits [V] after the last token, computed when they are not yet; borrowed.  NULL for an empty session. */
const float *session_logits(const struct session *s);

/* Computes the logits after every token in ids[0..n), which continue the session, in prompt-sized batches: fn
 * gets row i, the prediction of the token after ids[i], for i = 0 .. n - 1; logits [V] are valid during the
 * call.  The session must have no pending image. */
typedef void session_row_fn(void *arg, int64_t i, const float *logits);
int session_score(struct session *s, const int32_t *ids, int64_t n, session_row_fn *fn, void *arg,
                  struct err *e);

/* Logits of n different sessions of one engine.  Sessions with one pending token are decoded in one batch,
 * each weight being read once for all of them; the bits are those of one session after the other. */
void session_decode_batch(struct session *const *s, int n);
int session_try_decode_batch(struct session *const *s, int n, struct err *e);

/* Samples the next token as `how` says, and does not append it.  On a device that can sample, the logits
 * stay there. The session must not be empty. */
int session_sample(struct session *s, const struct sampler *how, struct sampled *out, struct err *e);

/* The same for n different sessions of one engine, whose tokens are decoded in one batch: how[i] and out[i]
 * belong to s[i]. */
int session_sample_batch(struct session *const *s, int n, const struct sampler *how, struct sampled *out,
                         struct err *e);

/* Whether state memory has room for so many more tokens. */
bool session_fits(const struct session *s, int64_t more);

/* Counters since session_new: subtract two readings. */
struct session_stats {
    int64_t prefilled, decoded; /* tokens computed several at a time, one at a time */
    int64_t tiles_computed, tiles_cached;
    int64_t proposed, accepted; /* tokens that speculation guessed, and that were sampled then */
    int64_t reused;             /* tokens whose state came from the prefix cache */
    double vision_ms, prefill_ms, decode_ms, preprocess_ms;
};
struct session_stats session_stats(const struct session *s);

/* ---- going back and copying ------------------------------------------------------------------ */

/* A copy of the state after the last token; the KV cache is shared with the session, so that a checkpoint
 * has the size of the recurrent states.  It can be rewound to until the session is rewound to before it.  A
 * session whose prefill was stopped inside a chunk has to be rewound. */
struct checkpoint *session_checkpoint(struct session *s);
struct checkpoint *session_try_checkpoint(struct session *s, struct err *e);
int session_rewind(struct session *s, const struct checkpoint *c, struct err *e);
int64_t checkpoint_length(const struct checkpoint *c); /* tokens */
void checkpoint_free(struct checkpoint *c);            /* NULL is fine */

/* An independent copy of the session, or of what it was at c: s stays as it is, and its checkpoints stay
 * valid. */
struct session *session_fork(const struct session *s);
struct session *session_try_fork(const struct session *s, struct err *e);
struct session *session_try_branch(const struct session *s, const struct checkpoint *c, struct err *e);

/* A session as a file.  Loading refuses files of other models and storage types. */
int session_save(const struct session *s, const char *path, struct err *e);
struct session *session_load(struct engine *g, const char *path, struct err *e);

/* The random number generator is part of the state: a rewind repeats its numbers. */
double session_uniform(struct session *s); /* [0, 1) */
uint64_t session_rng(const struct session *s);
void session_set_rng(struct session *s, uint64_t rng);

#endif
