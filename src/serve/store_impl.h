/* store_impl.h - entries of the session cache; private to src/serve. */
#pragma once

#include "serve/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct mark {
    struct prefix_hash at;
    struct checkpoint *state; /* NULL: none */
};

struct waiter { /* on the stack of a thread that waits for a branch */
    struct waiter *next;
    struct prefix_hash at;
    struct session *got;
    bool done;
};

struct cached_session {
    struct cached_session *prev, *next;
    struct weights_set *weights;
    struct session *session; /* NULL: saved to the file */
    char *file;
    struct prefix_hash end;    /* hash at the end of an idle session */
    struct prefix_hash target; /* hash at the end of the prompt of a session in use */
    struct mark marks[STORE_POINTS];
    bool used;      /* held by a request, or temporarily in use */
    bool temporary; /* in use for branching or saving; afterwards idle at the same position, or evicted */
    bool paused;    /* held by a paused request; not matched */
    uint64_t last;
    struct waiter *waiters;
    atomic_int n_waiters;
};

struct store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weights_slot *slot;
    struct store_options o;
    struct cached_session *first;
    uint64_t clock, files;
    struct store_counts counts;
};

/* Links k at the head of the list. The caller holds the lock, also for the following functions. */
void store_link(struct store *s, struct cached_session *k);
/* Makes all waiters for a branch of k search again. */
void store_wake_waiters(struct store *s, struct cached_session *k);
void store_unlink_waiter(struct cached_session *k, const struct waiter *w);
