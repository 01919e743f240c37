/* state_pool.h - the memory of states, within a bound.
 *
 * Who keeps tensors here is a tenant: a session with its state and the rows of images that wait, or a checkpoint.
 * A tenant is here with all of its tensors or away with all of them: what it had then lies in the host's memory,
 * and its tensors have their shapes, and no data.  One that is used comes back by itself; one that is in use stays.
 *
 * Who wants more than the bound leaves pushes idle tenants out, checkpoints first, then sessions, each time the
 * one that has been idle for longest.  Where tensors lie in the host's memory anyway nothing would be gained by
 * that: there, as where all others are in use, the answer is an error, and nothing has changed.
 */
#ifndef HOLORUN_MODEL_STATE_POOL_H
#define HOLORUN_MODEL_STATE_POOL_H

#include "ops/ops.h"

typedef void pool_entry_visit(void *arg, struct tensor *t);

struct pool_entry_kind {
    int rank;                                                   /* the lower goes first */
    void (*each)(void *owner, pool_entry_visit *fn, void *arg); /* its tensors, always in one order */
    void (*back)(void *owner); /* it is here again, somewhere else; may be NULL */
};

struct pool_entry {
    const struct pool_entry_kind *kind;
    void *owner;
    struct state_pool *pool;
    struct pool_entry *prev, *next;
    uint64_t used; /* when it was last, by the room's clock */
    int pins;      /* how often it is in use */
    bool spilled;
    char *host; /* while it is away: what it had; NULL for zeros */
};

struct state_pool {
    struct backend *backend;
    size_t bound; /* bytes; 0: as many as there are */
    size_t used, most;
    int64_t spilled, restored; /* how often */
    uint64_t clock;
    struct pool_entry *first;
};

/* A tenant begins away, with zeros in the shapes that its tensors have. */
void pool_entry_init(struct pool_entry *t, struct state_pool *r, const struct pool_entry_kind *kind,
                     void *owner);
void pool_entry_free(struct pool_entry *t); /* with what it has, here or away */

/* Between the two it is here. */
int pool_entry_pin(struct pool_entry *t, struct err *e);
void pool_entry_unpin(struct pool_entry *t);

/* Sends it away, if that gains anything; -1 when not, or when it is in use. */
int pool_entry_spill(struct pool_entry *t);
size_t pool_entry_bytes(const struct pool_entry *t); /* of its tensors, here or away */

/* A tensor of t's shape, zeroed, for a tenant that is here and in use; and back.  -1: no room, t->data is NULL. */
int state_pool_alloc(struct state_pool *r, struct tensor *t, struct err *e);
void state_pool_free(struct state_pool *r, struct tensor *t);

/* Makes sure that so many bytes more may be asked for. */
int state_pool_reserve(struct state_pool *r, size_t bytes, struct err *e);

/* Bytes that nobody who is in use, or cannot be sent away, holds; SIZE_MAX without a bound. */
size_t state_pool_left(const struct state_pool *r);

#endif
