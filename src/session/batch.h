/* batch.h - many sessions of one engine that read prompts and generate, within its state memory.
 *
 *     struct batch *b = batch_new(g, 0);
 *     for (int i = 0; i < n; i++)
 *         batch_add(b, &jobs[i]);         each {.session = s, .limit = 100, ...}
 *     batch_run(b);                       jobs[i].generated, or jobs[i].err
 *
 * Work goes in rounds.  In each, all sessions that have read what they were given take one token together, the
 * weights being read once for all of them; and beside that those that are still reading read a bounded number of
 * tokens, taking turns, so that nobody who writes waits for somebody's long prompt.
 *
 * A job begins when there is room for all that its session will have at its end, so that none has to stop in the
 * middle.  Until then it waits, first come, first served; idle sessions and checkpoints make room (state_pool.h).  What
 * could never begin gets an error, and the others go on.
 *
 * What a session gets depends on nobody else: the same tokens go through the same operations in the same pieces as
 * alone.  Logits have the same bits where a row's bits do not depend on how many rows there are, as on a processor.
 */
#ifndef HOLORUN_SESSION_BATCH_H
#define HOLORUN_SESSION_BATCH_H

#include "ops/ops.h"
#include "session/session.h"

enum batch_state { BATCH_WAITS, BATCH_READS, BATCH_WRITES, BATCH_ENDED };

struct batch_job { /* the caller's; stays where it is until it has ended */
    struct session *session;
    int64_t limit; /* tokens to generate at most; a stop token ends the reply, and is part of it */

    /* The next token: by what is put into `how` (which comes with the largest logit of all tokens), or, when there is
     * `pick`, by looking at the logits: -1 ends the reply.  Both may be NULL. */
    void (*choose)(struct batch_job *j, struct choosing *how);
    int32_t (*pick)(struct batch_job *j, const float *logits);
    void (*wrote)(struct batch_job *j, int32_t id); /* after each token; may be NULL */
    void (*ended)(struct batch_job *j);             /* may free the session, and add jobs; may be NULL */
    void *arg;

    /* filled in */
    enum batch_state state;
    int64_t generated;
    struct err err;         /* kind ERR_NONE: none */
    int64_t began, done_at; /* rounds, from 1 */
    struct batch_job *next; /* in the queue, or among those at work */
};

/* prefill: tokens that are read in one round, in pieces of LANGUAGE_ROWS; 0: one piece. */
struct batch *batch_new(struct engine *g, int64_t prefill);
void batch_free(struct batch *b); /* jobs that have not ended stay as they are */

void batch_add(struct batch *b, struct batch_job *j);
bool batch_round(struct batch *b); /* false: all have ended */
void batch_run(struct batch *b);

#endif
