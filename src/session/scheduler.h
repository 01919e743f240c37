/* scheduler.h - which thread uses a shared engine next.
 *
 * One thread at a time computes: scratch memory, caches and the state pool have one user.  There are two
 * queues, each first come, first served:
 *
 *   - exclusive use, for a prefill chunk, a checkpoint, freeing a session: scheduler_acquire;
 *   - work that costs little more for many than for one, decoding a token: scheduler_submit.  The first
 *     thread of the queue computes the requests of all of them as one batch and wakes the others.
 *
 * The queues alternate.  So decoding waits for one prefill chunk at most, and the n-th thread that waits
 * for exclusive use gets it after n others and n + 1 batches at the latest.  Each thread sleeps on a
 * condition variable of its own, and the engine is handed over: no thread wakes only to wait again.
 *
 * A thread whose token was decoded samples, and is back within microseconds with its next request.  The
 * first one back lingers for a small part of the duration of a batch until the others of that batch are
 * back, so that one batch does not fall apart into many small ones; not while a thread waits for exclusive
 * use.
 */
#ifndef HOLORUN_SESSION_SCHEDULER_H
#define HOLORUN_SESSION_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

struct scheduler;

struct scheduler_client {     /* a session */
    const volatile int *stop; /* non-zero: it stops waiting; may be NULL */
    uint64_t batch;           /* the last batch that it was in */
};

struct scheduler_request { /* first member of the server's own struct */
    struct scheduler_request *next;
    int rows; /* for the statistics */
};

/* Computes all requests of a list; the calling thread has the engine. */
typedef void scheduler_serve(void *arg, struct scheduler_request *requests);

/* stop: stops waiting clients, all of them; may be NULL. */
struct scheduler *scheduler_new(scheduler_serve *serve, void *arg, const volatile int *stop);
void scheduler_free(struct scheduler *t); /* NULL is fine */

/* Exclusive use; calls of one thread nest.  may_stop: -1, without the engine, when the client is stopped.
 * c may be NULL. */
int scheduler_acquire(struct scheduler *t, struct scheduler_client *c, bool may_stop);
void scheduler_release(struct scheduler *t);

/* Lets waiting threads run and takes the engine back, whatever the depth of nesting.  -1: the client was
 * stopped meanwhile; the thread has the engine all the same. */
int scheduler_yield(struct scheduler *t, struct scheduler_client *c);

/* Returns when the request has been computed, by this or another thread; -1: stopped before. */
int scheduler_submit(struct scheduler *t, struct scheduler_client *c, struct scheduler_request *r);

/* How many requests the last batch had; 0: there was none. */
int scheduler_batch_size(struct scheduler *t);

/* The client submits nothing soon: no batch waits for it. */
void scheduler_idle(struct scheduler *t, struct scheduler_client *c);

struct scheduler_stats {
    int64_t exclusive;     /* times of exclusive use */
    int64_t batches, rows; /* batches, and the rows of all of them */
    int64_t most_waited;   /* exclusive uses and batches of others while one thread waited, at most */
    int waiting;           /* threads, now */
};
struct scheduler_stats scheduler_stats(struct scheduler *t);

#endif
