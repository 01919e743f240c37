/* state_pool.h - memory of session states and checkpoints, with a limit.
 *
 * An entry is a session (its state and pending image rows) or a checkpoint. Either all tensors of an entry
 * are resident or all are spilled: their contents are then in host memory, and the tensors keep their
 * shapes without data. Pinning an entry restores it; a pinned entry stays resident.
 *
 * When the pool is full, the least recently used idle entry is spilled to host memory, checkpoints before
 * sessions. If tensors are in host memory anyway, spilling would free nothing; in that case, or if all
 * other entries are pinned, the allocation fails and nothing changes. */
#pragma once

#include "ops/ops.h"

typedef void pool_entry_visit(void *arg, struct tensor *t);

struct pool_entry_kind {
    int rank;                                                    /* lower ranks are spilled first */
    void (*visit)(void *owner, pool_entry_visit *fn, void *arg); /* visits its tensors, always in the same
                                                                  * order */
    void (*restored)(void *owner); /* called after a restore, when its tensors have moved; may be NULL */
};

struct pool_entry {
    const struct pool_entry_kind *kind;
    void *owner;
    struct state_pool *pool;
    struct pool_entry *prev, *next;
    uint64_t used; /* time of last use, by the pool's clock */
    int pins;      /* 0: idle */
    bool spilled;
    char *host; /* contents while spilled; NULL: zeros */
};

struct state_pool {
    struct backend *backend;
    size_t bound; /* bytes; 0: unlimited */
    size_t used, most;
    int64_t spilled, restored; /* counters */
    uint64_t clock;
    struct pool_entry *first;
};

/* Initializes an entry as spilled; restoring it gives zeroed tensors. */
void pool_entry_init(struct pool_entry *t, struct state_pool *r, const struct pool_entry_kind *kind,
                     void *owner);
void pool_entry_free(struct pool_entry *t); /* frees its memory, too, resident or spilled */

/* Keeps an entry resident until pool_entry_unpin(), restoring it if needed. Returns -1 with e. */
int pool_entry_pin(struct pool_entry *t, struct err *e);
void pool_entry_unpin(struct pool_entry *t);

/* Spills an entry. Returns -1 if it is pinned, already spilled, or if spilling would free nothing. */
int pool_entry_spill(struct pool_entry *t);
size_t pool_entry_bytes(const struct pool_entry *t); /* size of its tensors */

/* Allocates t's shape, zeroed, for a pinned entry. Returns -1 with e and t->data NULL if memory is short. */
int state_pool_alloc(struct state_pool *r, struct tensor *t, struct err *e);
void state_pool_free(struct state_pool *r, struct tensor *t);

/* Spills idle entries until `bytes` more fit. Returns -1 with e. */
int state_pool_reserve(struct state_pool *r, size_t bytes, struct err *e);

/* Returns the bytes not held by pinned or unspillable entries; SIZE_MAX without a limit. */
size_t state_pool_left(const struct state_pool *r);
