/* session_impl.h - inside of a session; private to src/model.  Users include session.h.
 *
 * tokens[0 .. state.length) have been through the model, tokens[state.length .. n) wait.  Each token
 * remembers the epoch it was written in; a rewind begins a new epoch.  A checkpoint is still on the line
 * of the session when its last token is of the epoch it was then: a position that was given up and
 * written again has a later one.
 *
 * State and images that wait are a tenant of the engine's room: they may be away whenever nobody holds the session.
 */
#ifndef HOLORUN_SESSION_SESSION_IMPL_H
#define HOLORUN_SESSION_SESSION_IMPL_H

#include "session/engine_impl.h"

struct session {
    struct engine *engine;
    struct scheduler_client client; /* of the engine's turns; its stop: session_set_cancel */
    uint64_t id;                    /* a checkpoint belongs to one session */
    struct pool_entry entry;
    struct lm_state state;
    int32_t *tokens;
    uint32_t *epochs; /* beside tokens */
    int64_t n, cap;
    uint32_t epoch;
    struct image_rows *images; /* that wait; `at` counts from the first token of the session */
    int n_images;
    bool torn; /* reading was cancelled between two layers: only a rewind helps */
    float *logits;
    int64_t logits_at; /* length they belong to; 0: none */
    uint64_t random;
    struct session_stats stats;
};

enum { CHECKPOINT_RANK, SESSION_RANK }; /* who leaves the room first */

/* Serves what sessions of a shared engine want together: a scheduler_serve, its argument an engine. */
void session_serve(void *arg, struct scheduler_request *requests);

/* Lets other threads of a shared engine have their turns while this session, a struct session *, encodes an image. */
void session_yield(void *session);

/* It wants no further token soon. */
void session_idle(struct session *s);

/* Whether this is a session of threads that take turns. */
bool session_shared(const struct session *s);

/* Between the two its state is here, with room for `more` tokens behind those that it has, waiting ones included. */
int session_pin(struct session *s, int64_t more, struct err *e);
void session_unpin(struct session *s);

/* The next LANGUAGE_ROWS tokens of those that wait, or all of them if there are fewer, go through the model; together
 * they leave the bits of session_read.  -1: no room. */
int session_prefill_chunk(struct session *s, struct err *e);
int64_t session_pending(const struct session *s);

/* A token more, and images that wait forgotten. */
void session_push(struct session *s, int32_t id);
void session_drop_images(struct session *s);

/* Bytes of state memory that it has when there is room for `length` tokens, and whether session_pin with so many
 * more would find room. */
size_t session_need(const struct session *s, int64_t length);

/* -1, with what is said when it was stopped while others had their turns. */
int session_stopped(struct err *e);

/* Where there is one session, or a bound that was not asked for, no room is the end. */
void session_must(int rc, const struct err *e);

#endif
