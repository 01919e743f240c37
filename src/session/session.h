/* session.h - the two public nouns: an engine and a session.
 *
 * An engine is a loaded model: config, tokenizer, weights, backend.  It never changes after
 * engine_open and may be shared by any number of sessions.  One thread at a time may use it and them; or, with
 * engine_options.shared, each session and its checkpoints one thread at a time, and any number of threads the engine:
 * they take turns (scheduler.h), and come to the bits that each would come to alone.
 *
 * A session is one timeline: the tokens so far, the SSM and conv states, the KV cache, the random
 * number generator, the logits of the last position.  It only grows, or goes back to a checkpoint.
 * Everything the agent does with memory of the past is one of: append, checkpoint, rewind, fork,
 * save, load.
 *
 * Equations and rounding points: see language.h and vision.h.
 */
#ifndef HOLORUN_SESSION_SESSION_H
#define HOLORUN_SESSION_SESSION_H

#include "base/err.h"
#include "base/image.h"
#include "model/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct session;
struct checkpoint;
struct tokenizer;
struct model_config;
struct drift;
struct choosing;
struct choice;
struct scheduler_stats; /* scheduler.h */

/* ---- engine ------------------------------------------------------------------------------- */

/* Whether the ids of config and tokenizer have rows in an embedding of `vocab` rows, and the marks around an image are
 * tokens: engine_open refuses a directory in which they do not agree. */
int engine_check_tokenizer(const struct model_config *c, int vocab, const struct tokenizer *t, struct err *e);

struct engine *engine_open(const struct engine_options *o, struct err *e); /* NULL on failure */
void engine_close(struct engine *g); /* after its sessions and checkpoints have been freed */
const struct model_config *engine_config(const struct engine *g);
const struct tokenizer *engine_tokenizer(const struct engine *g);
const char *engine_isa(const struct engine *g);
const char *engine_dir(const struct engine *g);
int engine_threads(const struct engine *g);
double engine_number_bytes(const struct engine *g); /* of a number in the matrices of its language model */
enum kv_storage engine_kv(const struct engine *g);
int engine_vocab(const struct engine *g);   /* V: length of a logits row */
bool engine_mapped(const struct engine *g); /* its weights are read from the files, which must not change */
/* Of config.json, the tensor table and the first 256 bytes of each tensor: what a saved session must match. */
uint64_t engine_hash(const struct engine *g);

/* The same of every byte of the weights.  It takes as long as reading them: 1 when they are more than `most` bytes.
 * The record of a run has it of weights up to MODEL_HASHED. */
enum { MODEL_HASHED = 1 << 30 };
int model_hash_weights(const char *dir, size_t most, uint64_t *hash, struct err *e);

/* How the threads of a shared engine have come along; zeros where it is not shared. */
struct scheduler_stats engine_scheduler_stats(const struct engine *g);

/* Memory of sessions and checkpoints. */
struct state_memory {
    size_t bound, used, most; /* bytes; bound 0: none */
    int64_t spilled, restored;
};
struct state_memory engine_state_memory(const struct engine *g);

/* How states are held, and what was measured of that at the start (drift.h). */
enum state_storage engine_state(const struct engine *g);
const struct drift *engine_drift(const struct engine *g);

/* Image tokens that a screenshot of this size costs, and its tile grid. */
int engine_image_tokens(const struct engine *g, int w, int h, int *cols, int *rows);

/* Generation ends with this token: the eos list of the model and the marks that end a turn. */
bool engine_is_stop(const struct engine *g, int32_t id);

/* ---- session ------------------------------------------------------------------------------
 *
 * Appending is lazy: tokens wait until somebody asks for logits or a checkpoint, so that the pieces of a
 * turn go through the model together.  Images go through the vision tower when they are appended.
 *
 * States and checkpoints live within engine_options.state_memory.  On a device those that are idle are sent to the
 * host's memory when others want theirs, and come back when they are used: to the caller nothing changes but the
 * time it takes.  Where that gains nothing, or not enough, there is no room: functions with a struct err say so and
 * leave the session as it was; those without end the program.
 */

struct session *session_new(struct engine *g, uint64_t seed);
void session_free(struct session *s);

/* Non-zero in *flag: what reads a prompt or a picture for this session, or waits for its turn to, gives up with ERR_STOPPED,
 * as with engine_options.cancel; functions without a struct err end the program.  Copies of the session have the same flag.
 * NULL: none. */
void session_set_cancel(struct session *s, const volatile int *flag);

int64_t session_length(const struct session *s);        /* tokens so far, image tokens included */
const int32_t *session_tokens(const struct session *s); /* [length], borrowed until the next append */
const float *
session_logits(const struct session *s); /* [V] after the last token, borrowed; NULL when empty */

/* What waits goes through the model; afterwards no token waits.  session_compute: so that session_logits costs nothing
 * and cannot fail, too. */
int session_read(struct session *s, struct err *e);
int session_compute(struct session *s, struct err *e);

/* Afterwards session_logits of each of n different sessions of one engine costs nothing.  Those with one token
 * that waits go through the model together, the weights being read once for all of them; logits and states have
 * the same bits as one after the other. */
void session_decode_batch(struct session *const *s, int n);
int session_try_decode_batch(struct session *const *s, int n,
                             struct err *e); /* stopped, or no room: of any of them */

/* The next token of each of n different sessions of one engine, none of them empty, as how[i] says (ops.h): where the
 * logits are, so that of a device's nothing but the choice comes to the host.  Nothing is appended. */
void session_choose(struct session *const *s, int n, const struct choosing *how, struct choice *out);
int session_try_choose(struct session *s, const struct choosing *how, struct choice *out, struct err *e);

struct engine *session_engine(const struct session *s);

/* Counters since session_new; the caller subtracts two readings. */
struct session_stats {
    int64_t prefilled, decoded; /* tokens computed many at a time / one at a time */
    int64_t tiles_computed, tiles_cached;
    int64_t reused; /* tokens that others had computed: session_reuse */
    double vision_ms, prefill_ms, decode_ms, preprocess_ms;
};
struct session_stats session_stats(const struct session *s);

/* ids must be text tokens (< tokenizer size, not the image token).  Refuses what would make the
 * conversation longer than the model was made for, and leaves the session as it was. */
int session_append(struct session *s, const int32_t *ids, int64_t n, struct err *e);

/* Of a shared engine.  What many sessions begin with is computed once: when nothing was computed yet, the state of what
 * waits is, as far as others began with the same, a copy of theirs, and what is new is computed and kept for those who
 * come.  The session goes on with the bits that it would have had without.  Call it behind the system text.  -1: stopped. */
int session_reuse(struct session *s, struct err *e);

/* Appends <img>, one image token for each projector row, </img>.  Tiles whose pixels were seen
 * before (by this engine) are taken from the cache. */
int session_append_image(struct session *s, const struct image *im, struct err *e);

/* There is state memory for so many more tokens. */
bool session_fits(const struct session *s, int64_t more);

/* A checkpoint is the state at one position: cheap to go back to, valid for the session it was
 * taken from as long as that session has not been rewound to before it.  A session whose reading was cancelled
 * within a piece of its tokens reads on only after a rewind. */
struct checkpoint *session_checkpoint(struct session *s);
struct checkpoint *session_try_checkpoint(struct session *s, struct err *e); /* NULL where there is no room */
int session_rewind(struct session *s, const struct checkpoint *c, struct err *e);
int64_t checkpoint_length(const struct checkpoint *c);
void checkpoint_free(struct checkpoint *c);

struct session *session_fork(const struct session *s); /* an independent copy */
struct session *session_try_fork(const struct session *s, struct err *e);
/* A copy of what s was at c, which stays as it is: both go on, and checkpoints of s remain good.  NULL: no room, or c is
 * not on its line. */
struct session *session_try_branch(const struct session *s, const struct checkpoint *c, struct err *e);
int session_save(const struct session *s, const char *path, struct err *e);
struct session *session_load(struct engine *g, const char *path, struct err *e); /* refuses other models */

/* Random numbers of this session: part of its state, so that a rewind repeats them. */
double session_uniform(struct session *s);     /* [0, 1) */
uint64_t session_rng(const struct session *s); /* which numbers come next */
void session_set_rng(struct session *s, uint64_t rng);

#endif
