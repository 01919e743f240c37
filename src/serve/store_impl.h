/* store_impl.h - inside of the store; private to src/serve. */
#ifndef HOLORUN_SERVE_STORE_IMPL_H
#define HOLORUN_SERVE_STORE_IMPL_H

#include "serve/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct mark {
    struct chain at;
    struct checkpoint *state; /* NULL: none */
};

struct waiter { /* on the stack of a thread that wants a branch */
    struct waiter *next;
    struct chain at;
    struct session *got;
    bool done;
};

struct kept {
    struct kept *prev, *next;
    struct weights_set *weights;
    struct session *session; /* NULL: in the file */
    char *file;
    struct chain end;    /* of an idle one: where it stands */
    struct chain coming; /* of one in use: where its prompt will end */
    struct mark marks[STORE_POINTS];
    bool used;  /* by a request */
    bool lent;  /* used, while it is branched or saved: then it is idle again where it stood, or gone */
    bool rests; /* used by a request that is frozen: nobody waits for it */
    uint64_t last;
    struct waiter *waiters;
    atomic_int n_waiters;
};

struct store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weights_slot *slot;
    struct store_options o;
    struct kept *first;
    uint64_t clock, files;
    struct store_counts counts;
};

/* The caller has the lock. */
void store_link(struct store *s, struct kept *k);
void store_dismiss(struct store *s, struct kept *k); /* whoever waits for a branch of k looks again */
void store_forget(struct kept *k, const struct waiter *w);

#endif
