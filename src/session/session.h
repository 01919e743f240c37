/* session.h - the two main types: the engine (a loaded model) and the session (a conversation).
 *
 * An engine is a loaded model: config, tokenizer, weights and backend (llama.cpp's llama_model). It does
 * not change after engine_open(), and any number of sessions share it.
 *
 * A session is one conversation and all of its state (llama.cpp's llama_context with one sequence): its
 * tokens, the SSM and convolution states of the Mamba layers, the KV cache of the attention layers, the
 * random number generator, and the logits after the last token. It can grow or be rewound to a checkpoint;
 * it cannot drop tokens otherwise, because a recurrent state cannot be truncated.
 *
 *     struct engine *g = engine_open(&(struct engine_options){.dir = "model"}, &e);
 *     struct session *s = session_new(g, 42);                random seed
 *     session_append(s, ids, n, &e);                         tokens are pending, nothing is computed
 *     struct checkpoint *c = session_try_checkpoint(s, &e);  prefill, then a copy of the state
 *     generate(s, &how, &out, &e);                           generate.h: sampling, logit mask, stop tokens
 *     session_rewind(s, c, &e);                              removes the reply, keeps the prompt
 *
 * Threads: one thread at a time may use an engine, its sessions and checkpoints. With
 * engine_options.shared any number of threads may use the engine, but each session and its checkpoints
 * only one at a time. The scheduler (scheduler.h) interleaves prefill chunks and decodes one token of all
 * waiting sessions in one batch (continuous batching). Results are bit-identical to those of a session
 * that runs alone.
 *
 * Errors: functions with a struct err return -1 or NULL and leave the session unchanged; the others end
 * the program on failure. Formulas and rounding: model/language.h and model/vision.h. */
#pragma once

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

/* Loads the model in o->dir. Returns NULL with e on failure. */
struct engine *engine_open(const struct engine_options *o, struct err *e);
void engine_close(struct engine *g); /* after its sessions and checkpoints; NULL is allowed */

const char *engine_dir(const struct engine *g);
const struct model_config *engine_config(const struct engine *g);
const struct tokenizer *engine_tokenizer(const struct engine *g);
const struct chat_template *engine_chat(const struct engine *g);
int engine_vocab(const struct engine *g); /* V: rows of the embedding, number of logits */
/* Returns the number of matrices whose products round activations to 8 bits. */
int engine_rounded_matrices(const struct engine *g);
const char *engine_isa(const struct engine *g); /* name of the backend: "avx512", "cuda", ... */
int engine_threads(const struct engine *g);

/* Returns the mean bytes per weight of the language model's matrices, including the scales of quantized
 * ones. */
double engine_bytes_per_weight(const struct engine *g);
enum kv_storage engine_kv_storage(const struct engine *g);
enum state_storage engine_state_storage(const struct engine *g);
const struct drift *engine_drift(const struct engine *g); /* f16 against f32 states, measured by
                                                           * engine_open() */

/* Returns whether generation ends with this token: an eos token of the model or one that ends a turn. */
bool engine_is_stop(const struct engine *g, int32_t id);

/* Returns the number of image tokens of a w x h pixel screenshot, and its tile grid in *cols and *rows
 * (may be NULL). */
int engine_image_tokens(const struct engine *g, int w, int h, int *cols, int *rows);

/* Limits images to `most` pixels from now on by scaling larger ones down, for models that accept any image
 * size. */
int engine_limit_pixels(struct engine *g, int most, struct err *e);

/* Returns the hash of config.json, the tensor table and the first 256 bytes of each tensor. A saved
 * session loads only into an engine with the same hash. */
uint64_t engine_hash(const struct engine *g);

/* Hashes config.json, the tensor table and every byte of the weights in `dir`, for the record of a run.
 * Takes as long as reading them. Returns 1 without setting *hash if they have more than `most` bytes, -1
 * with e. */
enum { MODEL_HASH_MOST = 1 << 30 };
int model_hash_weights(const char *dir, size_t most, uint64_t *hash, struct err *e);

/* Checks that config, tokenizer and an embedding of `vocab` rows agree: every id has a row, and the tags
 * around an image are tokens. engine_open() rejects a model that fails this. */
int engine_check_tokenizer(const struct model_config *c, int vocab, const struct tokenizer *t, struct err *e);

/* Memory of the states of sessions and checkpoints, in bytes. */
struct state_memory {
    size_t bound, used, peak;  /* bound 0: unlimited */
    int64_t spilled, restored; /* entries moved to host memory and back */
};
struct state_memory engine_state_memory(const struct engine *g);

/* Returns the bytes of device memory available to this engine, including free memory in its pool; 0 if
 * states are in host memory. */
size_t engine_memory_left(const struct engine *g);

/* Draft tokens of all sessions so far, proposed and accepted. */
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

/* Returns the scheduler's counters; zeros if the engine is not shared. */
struct scheduler_stats engine_scheduler_stats(const struct engine *g);

/* ---- session ------------------------------------------------------------------------------
 *
 * Appended tokens stay pending until logits, a checkpoint or a copy need them, so that all parts of a turn
 * go through the model in one prefill. Images go through the vision encoder when they are appended.
 *
 * States are limited to engine_options.state_memory. When it is full, a GPU spills idle states to host
 * memory (checkpoints before sessions, least recently used first) and restores them on the next use. On a
 * CPU spilling would free nothing, so running out of state memory is an error. */

struct session *session_new(struct engine *g, uint64_t seed);
void session_free(struct session *s); /* NULL is allowed */
struct engine *session_engine(const struct session *s);

/* Sets the cancel flag: while *flag is non-zero, prefill, image encoding and waiting for the engine fail
 * with ERR_STOPPED, as with engine_options.cancel. Forks inherit it; NULL: none. */
void session_set_cancel(struct session *s, const volatile int *flag);

int64_t session_length(const struct session *s);        /* tokens, including image and pending tokens */
const int32_t *session_tokens(const struct session *s); /* [length], borrowed until the next append */

/* Appends text tokens: ids below the tokenizer's size, not the image token. Fails with ERR_MODEL beyond
 * the model's context length. */
int session_append(struct session *s, const int32_t *ids, int64_t n, struct err *e);

/* Appends <img>, one image token for each row of the projector, and </img>. Tiles with pixels that this
 * engine has already encoded come from the tile cache. */
int session_append_image(struct session *s, const struct image *im, struct err *e);

/* Uses the prefix cache of a shared engine: copies the longest cached state that is a prefix of the
 * pending tokens, and computes and caches the rest. Call after appending the system text, before anything
 * of this session is computed. Returns -1 only if cancelled; if memory is short, the session does its own
 * prefill. */
int session_reuse_prefix(struct session *s, struct err *e);

/* Computes all pending tokens. */
int session_prefill(struct session *s, struct err *e);

/* Computes all pending tokens and the logits after the last one. */
int session_compute_logits(struct session *s, struct err *e);

/* Returns the logits [V] after the last token, computing them if needed; borrowed. NULL for an empty
 * session. */
const float *session_logits(const struct session *s);

/* Appends ids[0..n) and computes the logits after each of them, in prompt-sized batches. fn gets row i,
 * the prediction of the token after ids[i], for i = 0 .. n - 1; logits [V] are valid during the call. The
 * session must not have a pending image. */
typedef void session_row_fn(void *arg, int64_t i, const float *logits);
int session_score(struct session *s, const int32_t *ids, int64_t n, session_row_fn *fn, void *arg,
                  struct err *e);

/* Computes the logits of n different sessions of one engine. Sessions with one pending token are decoded
 * in one batch, so that each weight is read once; results are bit-identical to decoding one session at a
 * time. */
void session_decode_batch(struct session *const *s, int n);
int session_try_decode_batch(struct session *const *s, int n, struct err *e);

/* Samples the next token according to `how` without appending it. If the device can sample, the logits
 * stay there. The session must not be empty. */
int session_sample(struct session *s, const struct sampler *how, struct sampled *out, struct err *e);

/* Samples the next token of n different sessions of one engine, decoded in one batch; how[i] and out[i]
 * belong to s[i]. */
int session_sample_batch(struct session *const *s, int n, const struct sampler *how, struct sampled *out,
                         struct err *e);

/* Returns whether state memory suffices for `more` further tokens. */
bool session_fits(const struct session *s, int64_t more);

/* Counters since session_new(): subtract two readings. */
struct session_stats {
    int64_t prefilled, decoded; /* tokens computed several at a time, one at a time */
    int64_t tiles_computed, tiles_cached;
    int64_t proposed, accepted; /* draft tokens proposed, accepted */
    int64_t reused;             /* tokens whose state came from the prefix cache */
    double vision_ms, prefill_ms, decode_ms, preprocess_ms;
};
struct session_stats session_stats(const struct session *s);

/* ---- checkpoints and copies ------------------------------------------------------------------ */

/* Copies the state after the last token. The KV cache is shared with the session, so a checkpoint has only
 * the size of the recurrent states. The session can be rewound to it until it is rewound to an earlier
 * position. A session whose prefill was stopped inside a chunk has to be rewound. */
struct checkpoint *session_checkpoint(struct session *s);
struct checkpoint *session_try_checkpoint(struct session *s, struct err *e);
/* Does the same without computing the pending tokens, which are pending again after a rewind: the prefill
 * that follows is divided into the same chunks, and its results have the same bits, as without the rewind. */
struct checkpoint *session_try_bookmark(struct session *s, struct err *e);
int session_rewind(struct session *s, const struct checkpoint *c, struct err *e);
int64_t checkpoint_length(const struct checkpoint *c); /* tokens */
void checkpoint_free(struct checkpoint *c);            /* NULL is allowed */

/* Create an independent copy of the session, or of its state at c. s and its checkpoints are unchanged. */
struct session *session_fork(const struct session *s);
struct session *session_try_fork(const struct session *s, struct err *e);
struct session *session_try_branch(const struct session *s, const struct checkpoint *c, struct err *e);

/* Save a session to a file and load it. Loading rejects files of other models and storage types. */
int session_save(const struct session *s, const char *path, struct err *e);
struct session *session_load(struct engine *g, const char *path, struct err *e);

/* Return and set the random number generator. It is part of the state: a rewind repeats its numbers. */
double session_uniform(struct session *s); /* [0, 1) */
uint64_t session_rng(const struct session *s);
void session_set_rng(struct session *s, uint64_t rng);
