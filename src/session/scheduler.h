/* scheduler.h - schedules the threads that share an engine: exclusive use and continuous batching.
 *
 * Only one thread computes at a time, because scratch memory, caches and the state pool have a single
 * user. There are two first-come, first-served queues:
 *
 *   - exclusive use, for a prefill chunk, a checkpoint or freeing a session: scheduler_acquire();
 *   - work that costs little more for many than for one, such as decoding a token: scheduler_submit(). The
 *     first thread of the queue computes the requests of all of them as one batch and wakes the others.
 *
 * The queues alternate. Decoding therefore waits for at most one prefill chunk, and the n-th thread that
 * waits for exclusive use gets it after at most n others and n + 1 batches. Each thread sleeps on its own
 * condition variable and the engine is handed over, so a thread never wakes up only to wait again.
 *
 * After decoding, a thread samples and returns within microseconds with its next request. The first one to
 * return lingers until the other clients of that batch are back, at most a quarter of the duration of a
 * batch and 20 ms, so that a batch does not split into many small ones. It does not linger while a thread
 * waits for exclusive use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scheduler;

struct scheduler_client {     /* one session */
    const volatile int *stop; /* non-zero: it stops waiting; may be NULL */
    uint64_t batch;           /* number of the last batch it took part in */
};

struct scheduler_request { /* first member of the server's own struct */
    struct scheduler_request *next;
    int rows; /* for the statistics */
};

/* Computes all requests of a list; the calling thread has the engine. */
typedef void scheduler_serve(void *arg, struct scheduler_request *requests);

/* Creates a scheduler. *stop non-zero stops all waiting clients; may be NULL. */
struct scheduler *scheduler_new(scheduler_serve *serve, void *arg, const volatile int *stop);
void scheduler_free(struct scheduler *t); /* NULL is fine */

/* Acquires the engine for exclusive use; calls of one thread nest. c may be NULL. may_stop: returns -1
 * without the engine if the client is stopped. */
int scheduler_acquire(struct scheduler *t, struct scheduler_client *c, bool may_stop);
void scheduler_release(struct scheduler *t);

/* Lets waiting threads run and takes the engine back, at any nesting depth. Returns -1 if the client was
 * stopped meanwhile; the thread has the engine in either case. */
int scheduler_yield(struct scheduler *t, struct scheduler_client *c);

/* Returns when the request has been computed by this or another thread, or -1 if the client was stopped
 * before. */
int scheduler_submit(struct scheduler *t, struct scheduler_client *c, struct scheduler_request *r);

/* Returns the number of requests in the last batch, 0 before the first. */
int scheduler_batch_size(struct scheduler *t);

/* Announces that the client submits nothing soon, so that no batch waits for it. */
void scheduler_idle(struct scheduler *t, struct scheduler_client *c);

struct scheduler_stats {
    int64_t exclusive;     /* number of exclusive uses */
    int64_t batches, rows; /* batches; total rows in them */
    int64_t most_waited;   /* maximum of exclusive uses and batches of other threads while one thread
                            * waited */
    int waiting;           /* threads waiting now */
};
struct scheduler_stats scheduler_stats(struct scheduler *t);
