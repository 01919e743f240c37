/* scheduler.h - threads that share one engine take turns.
 *
 * What goes through the model goes there alone: scratch, caches and the memory of states have one user at a time.
 * There are two lines, each first come, first served:
 *
 *   - who wants the turn for itself, to read a piece of a prompt, keep a checkpoint, free a session: turns_take;
 *   - who wants something that costs little more for many than for one, the next token: turns_join.  All of them who
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

struct turns;

struct turn_member {          /* somebody who comes again and again: a session */
    const volatile int *stop; /* non-zero: it waits no longer; may be NULL */
    uint64_t served;          /* the last batch that it was in */
};

struct turn_wish { /* what is served together; the first member of what the server knows */
    struct turn_wish *next;
    int rows; /* for the statistics */
};

/* Serves all wishes of a list.  The calling thread has the turn. */
typedef void turn_serve(void *arg, struct turn_wish *wishes);

/* stop: of all members; may be NULL. */
struct turns *turns_new(turn_serve *serve, void *arg, const volatile int *stop);
void turns_free(struct turns *t); /* NULL is fine */

/* A thread that has the turn may take it again; it is given up with the last turns_give.  With `may_stop` -1 when the
 * member is stopped: then it has no turn.  m may be NULL. */
int turns_take(struct turns *t, struct turn_member *m, bool may_stop);
void turns_give(struct turns *t);

/* Lets others who wait have their turns in between, whatever the depth.  -1: the member was stopped meanwhile; it has
 * the turn all the same. */
int turns_yield(struct turns *t, struct turn_member *m);

/* The wish is served, here or by another thread; -1: stopped before. */
int turns_join(struct turns *t, struct turn_member *m, struct turn_wish *w);

/* The member will not be back soon: nobody needs to wait for it. */
void turns_rest(struct turns *t, struct turn_member *m);

struct turn_counts {
    int64_t turns;         /* that somebody had for itself */
    int64_t batches, rows; /* and together; rows of them all */
    int64_t most_waited;   /* turns and batches of others while one waited, at most */
    int waiting;           /* threads, now */
};
struct turn_counts turns_counts(struct turns *t);

#endif
