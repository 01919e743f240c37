/* state_pool.h - memory of session states and checkpoints, within a bound.
 *
 * An entry is a session (its state and pending image rows) or a checkpoint.  All tensors of an entry are
 * resident, or all are spilled: their contents then lie in host memory, and the tensors keep their
 * shapes without data.  Pinning an entry restores it; a pinned entry stays resident.
 *
 * When the pool is full, the least recently used idle entry is spilled to host memory, checkpoints
 * before sessions.  Where tensors live in host memory anyway spilling would gain nothing: there, and
 * where all other entries are pinned, the answer is an error and nothing has changed.
 */
#ifndef HOLORUN_MODEL_STATE_POOL_H
#define HOLORUN_MODEL_STATE_POOL_H

#include "ops/ops.h"

typedef void pool_entry_visit(void *arg, struct tensor *t);

struct pool_entry_kind {
    int rank;                                                    /* lower ranks are spilled first */
    void (*visit)(void *owner, pool_entry_visit *fn, void *arg); /* visits its tensors, always in one order */
    void (*restored)(void *owner); /* after a restore, when its tensors have moved; may be NULL */
};

struct pool_entry {
    const struct pool_entry_kind *kind;
    void *owner;
    struct state_pool *pool;
    struct pool_entry *prev, *next;
    uint64_t used; /* last use, by the pool's clock */
    int pins;      /* 0: idle */
    bool spilled;
    char *host; /* contents while spilled; NULL: zeros */
};

struct state_pool {
    struct backend *backend;
    size_t bound; /* bytes; 0: no bound */
    size_t used, most;
    int64_t spilled, restored; /* counters */
    uint64_t clock;
    struct pool_entry *first;
};

/* An entry begins spilled, with zeros in its tensors' shapes. */
void pool_entry_init(struct pool_entry *t, struct state_pool *r, const struct pool_entry_kind *kind,
                     void *owner);
void pool_entry_free(struct pool_entry *t); /* with its memory, resident or spilled */

/* Resident between the two. */
int pool_entry_pin(struct pool_entry *t, struct err *e);
void pool_entry_unpin(struct pool_entry *t);

/* Spills an entry; -1 when it is pinned, spilled already, or spilling gains nothing. */
int pool_entry_spill(struct pool_entry *t);
size_t pool_entry_bytes(const struct pool_entry *t); /* of its tensors */

/* Allocates t's shape, zeroed, for a pinned entry; -1: no memory, t->data is NULL. */
int state_pool_alloc(struct state_pool *r, struct tensor *t, struct err *e);
void state_pool_free(struct state_pool *r, struct tensor *t);

/* Spills idle entries until `bytes` more fit. */
int state_pool_reserve(struct state_pool *r, size_t bytes, struct err *e);

/* Bytes not held by pinned or unspillable entries; SIZE_MAX without a bound. */
size_t state_pool_left(const struct state_pool *r);

#endif
