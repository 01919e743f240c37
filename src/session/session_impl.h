/* session_impl.h - struct session; private to src/session and its tests.
 *
 * tokens[0 .. state.length) have been computed, tokens[state.length .. n) are pending. Each token has the
 * epoch in which it was appended, and a rewind begins a new epoch. A checkpoint is reachable as long as
 * its last token still has the epoch recorded in the checkpoint: a position that was discarded and written
 * again has a later one.
 *
 * The state and the rows of pending images are one entry of the engine's state pool and may be spilled
 * whenever the session is not pinned. */
#pragma once

#include "session/engine_impl.h"

struct session {
    struct engine *engine;
    struct scheduler_client client; /* `stop` is the flag of session_set_cancel() */
    uint64_t id;                    /* identifies the session of a checkpoint */
    struct pool_entry entry;
    struct lm_state state;
    int32_t *tokens;
    uint32_t *epochs; /* [n], one per token */
    int64_t n, cap;
    uint32_t epoch;
    struct image_rows *images; /* pending; `at` counts from the first token of the session */
    int n_images;
    bool interrupted; /* prefill was stopped between two layers; the session must be rewound */
    float *logits;
    int64_t logits_at; /* length to which they belong; 0: none */
    uint64_t random;
    struct session_stats stats;
};

static inline const struct lm_config *session_lm(const struct session *s)
{
    return &s->engine->config.lm;
}

static inline struct backend *session_backend(const struct session *s)
{
    return s->engine->backend;
}

enum { CHECKPOINT_RANK, SESSION_RANK }; /* the lower rank is spilled first */

/* Computes the requests of one batch: a scheduler_serve whose argument is the engine. */
void session_serve(void *arg, struct scheduler_request *requests);

/* Lets other sessions of a shared engine run while `session` encodes an image (vision.between_tiles). */
void session_yield(void *session);

/* Informs the scheduler that this session decodes no further token soon. */
void session_idle(struct session *s);

/* Keeps the state resident until session_unpin(), with memory for `more` tokens after those it has,
 * including pending ones. Returns -1 with e if memory is short. */
int session_pin(struct session *s, int64_t more, struct err *e);
void session_unpin(struct session *s);

/* Computes the next prefill chunk (language_chunk). All chunks together are bit-identical to
 * session_prefill(). */
int session_prefill_chunk(struct session *s, struct err *e);
int64_t session_pending(const struct session *s); /* tokens */

/* Appends one token without a check. */
void session_push(struct session *s, int32_t id);
void session_drop_images(struct session *s);

/* Sets ERR_STOPPED for a session that was cancelled while it waited for the engine; returns -1. */
int session_err_stopped(struct err *e);

/* Ends the program if rc is not 0; for functions without a struct err. */
void session_check(int rc, const struct err *e);
