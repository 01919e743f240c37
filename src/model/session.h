/* session.h - inside of a session; private to src/model.  Users include model.h.
 *
 * tokens[0 .. state.length) have been through the model, tokens[state.length .. n) wait.  Each token
 * remembers the epoch it was written in; a rewind begins a new epoch.  A checkpoint is still on the line
 * of the session when its last token is of the epoch it was then: a position that was given up and
 * written again has a later one.
 */
#ifndef HOLORUN_MODEL_SESSION_H
#define HOLORUN_MODEL_SESSION_H

#include "model/engine.h"

struct session {
    struct engine *engine;
    uint64_t id; /* a checkpoint belongs to one session */
    struct lm_state state;
    int32_t *tokens;
    uint32_t *epochs; /* beside tokens */
    int64_t n, cap;
    uint32_t epoch;
    struct image_rows *images; /* that wait; `at` counts from the first token of the session */
    int n_images;
    float *logits;
    int64_t logits_at; /* length they belong to; 0: none */
    uint64_t random;
    struct session_stats stats;
};

/* Everything that waits goes through the model. */
void session_flush(struct session *s);

#endif
