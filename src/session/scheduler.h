/* scheduler.h - threads that share one engine take turns.
 *
 * What goes through the model goes there alone: scratch, caches and the memory of states have one user at a time.
 * There are two lines, each first come, first served:
 *
 *   - who wants the turn for itself, to read a piece of a prompt, keep a checkpoint, free a session: scheduler_acquire;
 *   - who wants something that costs little more for many than for one, the next token: scheduler_submit.  All of them who
 *     wait are served at once, by the first of them, and are woken when it is done.
 *
 * The lines take turns.  So who writes waits for one piece of somebody's prompt at most, and who is the n-th of those
 * who want the turn for themselves has it after n others and n + 1 batches at the latest.  Nobody is woken to find that
 * he has to wait on: each thread sleeps on a condition of its own, and the turn is handed over, not left lying.
 *
 * Who was served in a batch chooses a token and is back within some microseconds with the next wish.  Whoever is the
 * first of them waits a small part of the time that a batch takes for the others, so that one batch does not become
 * many small ones; not when somebody wants the turn for himself.
 */
#ifndef HOLORUN_SESSION_SCHEDULER_H
#define HOLORUN_SESSION_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

struct scheduler;

struct scheduler_client {     /* somebody who comes again and again: a session */
    const volatile int *stop; /* non-zero: it waits no longer; may be NULL */
    uint64_t served;          /* the last batch that it was in */
};

struct scheduler_request { /* what is served together; the first member of what the server knows */
    struct scheduler_request *next;
    int rows; /* for the statistics */
};

/* Serves all wishes of a list.  The calling thread has the turn. */
typedef void scheduler_serve(void *arg, struct scheduler_request *requests);

/* stop: of all members; may be NULL. */
struct scheduler *scheduler_new(scheduler_serve *serve, void *arg, const volatile int *stop);
void scheduler_free(struct scheduler *t); /* NULL is fine */

/* A thread that has the turn may take it again; it is given up with the last scheduler_release.  With `may_stop` -1 when the
 * member is stopped: then it has no turn.  m may be NULL. */
int scheduler_acquire(struct scheduler *t, struct scheduler_client *m, bool may_stop);
void scheduler_release(struct scheduler *t);

/* Lets others who wait have their turns in between, whatever the depth.  -1: the member was stopped meanwhile; it has
 * the turn all the same. */
int scheduler_yield(struct scheduler *t, struct scheduler_client *m);

/* The wish is served, here or by another thread; -1: stopped before. */
int scheduler_submit(struct scheduler *t, struct scheduler_client *m, struct scheduler_request *w);

/* The member will not be back soon: nobody needs to wait for it. */
void scheduler_idle(struct scheduler *t, struct scheduler_client *m);

struct scheduler_stats {
    int64_t exclusive;     /* that somebody had for itself */
    int64_t batches, rows; /* and together; rows of them all */
    int64_t most_waited;   /* turns and batches of others while one waited, at most */
    int waiting;           /* threads, now */
};
struct scheduler_stats scheduler_stats(struct scheduler *t);

#endif
