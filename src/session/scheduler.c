/* scheduler.c - queues and batches of a shared engine (scheduler.h). */
#include "session/scheduler.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/flag.h"
#include "base/lock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    POLL_MS = 10,        /* interval in which a waiting thread checks its stop flag */
    LINGER_PART = 4,     /* a batch lingers for the duration of the last batch divided by this */
    LINGER_MOST = 20000, /* maximum linger time in microseconds */
};

enum waiter_state { WAITER_QUEUED, WAITER_OWNS, WAITER_IN_BATCH, WAITER_DONE };

struct waiter { /* lives on the stack of a waiting thread */
    pthread_cond_t wake;
    struct waiter *prev, *next;
    struct scheduler_client *client;   /* or NULL */
    struct scheduler_request *request; /* NULL: exclusive use */
    enum waiter_state state;
    int64_t arrived; /* number of grants when it started to wait */
};

struct queue {
    struct waiter *first, *last;
    int n;
};

struct scheduler {
    scheduler_serve *serve;
    void *arg;
    const volatile int *stop;
    pthread_mutex_t lock;
    pthread_condattr_t clock;
    atomic_uintptr_t owner; /* the thread that computes; 0: none, or it has not woken up yet */
    int depth;              /* nested calls of scheduler_acquire */
    bool taken;
    bool last_batched; /* the last grant went to the batched queue */
    struct queue exclusive, batched;
    struct waiter *lingering; /* has the engine and waits for clients of the last batch */
    uint64_t batch;           /* number of the last batch */
    int expected;             /* its clients that have not returned yet */
    int batch_size;           /* requests in it */
    int64_t batch_ns;         /* its duration */
    int64_t grants;           /* number of grants so far */
    struct scheduler_stats counts;
};

/* ---- queues ---------------------------------------------------------------------------------- */

static void queue_push(struct queue *q, struct waiter *w)
{
    w->prev = q->last;
    w->next = NULL;
    *(q->last ? &q->last->next : &q->first) = w;
    q->last = w;
    q->n++;
}

static void queue_remove(struct queue *q, struct waiter *w)
{
    *(w->prev ? &w->prev->next : &q->first) = w->next;
    *(w->next ? &w->next->prev : &q->last) = w->prev;
    q->n--;
}

static void queue_push_front(struct queue *q, struct waiter *w)
{
    queue_remove(q, w);
    w->prev = NULL;
    w->next = q->first;
    *(q->first ? &q->first->prev : &q->last) = w;
    q->first = w;
    q->n++;
}

/* ---- the owner ---------------------------------------------------------------------------------------- */

static uintptr_t myself(void)
{
    static _Thread_local char me;
    return (uintptr_t)&me;
}

static bool is_owner(struct scheduler *t)
{
    return atomic_load_explicit(&t->owner, memory_order_relaxed) == myself();
}

static void set_owner(struct scheduler *t, int depth)
{
    t->depth = depth;
    atomic_store_explicit(&t->owner, myself(), memory_order_relaxed);
}

static void clear_owner(struct scheduler *t)
{
    t->depth = 0;
    atomic_store_explicit(&t->owner, 0, memory_order_relaxed);
}

static bool stopped(const struct scheduler *t, const struct scheduler_client *c)
{
    return flag_up(t->stop) || (c && flag_up(c->stop));
}

static void count_waited(struct scheduler *t, const struct waiter *w)
{
    int64_t others = t->grants - w->arrived;
    if (others > t->counts.most_waited)
        t->counts.most_waited = others;
}

static void grant(struct scheduler *t, struct waiter *w)
{
    count_waited(t, w);
    t->taken = true;
    t->last_batched = w->request != NULL;
    t->grants++;
    w->state = WAITER_OWNS;
}

/* Hands the engine to the next waiter, if any; the two queues alternate. */
static void hand_over(struct scheduler *t)
{
    struct queue *q =
        t->batched.first && (!t->exclusive.first || !t->last_batched) ? &t->batched : &t->exclusive;
    struct waiter *w = q->first;
    t->taken = false;
    if (!w)
        return;
    queue_remove(q, w);
    grant(t, w);
    pthread_cond_signal(&w->wake);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void waiter_init(struct scheduler *t, struct waiter *w, struct scheduler_client *c,
                        struct scheduler_request *r)
{
    *w = (struct waiter){.client = c, .request = r, .arrived = t->grants};
    pthread_cond_init(&w->wake, &t->clock);
}

/* Records that a client of the last batch has returned. */
static void client_back(struct scheduler *t, struct scheduler_client *c)
{
    if (c && c->batch == t->batch && t->expected > 0) {
        c->batch = 0;
        t->expected--;
    }
}

static void sleep_until_woken(struct scheduler *t, struct waiter *w)
{
    if (!t->stop && !(w->client && w->client->stop)) {
        pthread_cond_wait(&w->wake, &t->lock);
        return;
    }
    struct timespec until = timespec_of(clock_ns() + POLL_MS * 1000000ll);
    pthread_cond_timedwait(&w->wake, &t->lock, &until);
}

/* Waits until w owns the engine or its request is computed. Returns -1 if it was stopped: with `stays`, w
 * moves to the front of its queue and the function still returns only with the engine; otherwise w leaves
 * the queue. */
static int wait_in_queue(struct scheduler *t, struct queue *q, struct waiter *w, bool may_stop, bool stays)
{
    int rc = 0;
    if (!t->taken) {
        grant(t, w);
        return 0;
    }
    queue_push(q, w);
    if (t->lingering && (q == &t->exclusive || t->expected == 0))
        pthread_cond_signal(&t->lingering->wake);
    while (w->state == WAITER_QUEUED || w->state == WAITER_IN_BATCH) {
        sleep_until_woken(t, w);
        if (w->state != WAITER_QUEUED || !may_stop || rc || !stopped(t, w->client))
            continue;
        rc = -1;
        if (stays) {
            queue_push_front(q, w);
        } else {
            queue_remove(q, w);
            break;
        }
    }
    return rc;
}

int scheduler_acquire(struct scheduler *t, struct scheduler_client *c, bool may_stop)
{
    if (may_stop && stopped(t, c))
        return -1;
    if (is_owner(t)) {
        t->depth++;
        return 0;
    }
    struct waiter w;
    pthread_mutex_lock(&t->lock);
    waiter_init(t, &w, c, NULL);
    client_back(t, c);
    int rc = wait_in_queue(t, &t->exclusive, &w, may_stop, false);
    if (rc == 0) {
        t->counts.exclusive++;
        set_owner(t, 1);
    }
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&w.wake);
    return rc;
}

void scheduler_release(struct scheduler *t)
{
    if (!is_owner(t))
        bug("a thread releases an engine that it does not have");
    if (--t->depth)
        return;
    LOCKED(&t->lock);
    clear_owner(t);
    hand_over(t);
}

int scheduler_yield(struct scheduler *t, struct scheduler_client *c)
{
    if (!is_owner(t))
        bug("a thread yields an engine that it does not have");
    int rc = stopped(t, c) ? -1 : 0, depth = t->depth;
    struct waiter w;
    LOCKED(&t->lock);
    if (rc == 0 && (t->exclusive.first || t->batched.first)) {
        waiter_init(t, &w, c, NULL);
        clear_owner(t);
        hand_over(t);
        rc = wait_in_queue(t, &t->exclusive, &w, true, true);
        t->counts.exclusive++;
        set_owner(t, depth);
        pthread_cond_destroy(&w.wake);
    }
    return rc;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Waits for the other clients of the last batch, unless a thread requests exclusive use. */
static void linger(struct scheduler *t, struct waiter *w)
{
    int64_t most = t->batch_ns / LINGER_PART;
    struct timespec until =
        timespec_of(clock_ns() + (most < LINGER_MOST * 1000ll ? most : LINGER_MOST * 1000ll));
    t->lingering = w;
    while (t->expected > 0 && !t->exclusive.first && !pthread_cond_timedwait(&w->wake, &t->lock, &until))
        ;
    t->lingering = NULL;
}

/* Combines the request of the leader and those of all waiters of the queue into one batch; returns the
 * waiters. */
static struct queue gather_batch(struct scheduler *t, struct waiter *leader)
{
    struct queue in = t->batched;
    t->batched = (struct queue){0};
    for (struct waiter *w = in.first; w; w = w->next) {
        count_waited(t, w);
        w->state = WAITER_IN_BATCH;
        w->request->next = w->next ? w->next->request : NULL;
        t->counts.rows += w->request->rows;
    }
    leader->request->next = in.first ? in.first->request : NULL;
    t->counts.rows += leader->request->rows;
    t->counts.batches++;
    return in;
}

static void expect_client(struct scheduler *t, struct waiter *w)
{
    if (w->client)
        w->client->batch = t->batch;
    t->expected += w->client != NULL;
}

static void run_batch(struct scheduler *t, struct waiter *leader)
{
    linger(t, leader);
    struct queue in = gather_batch(t, leader);
    set_owner(t, 1);
    pthread_mutex_unlock(&t->lock);
    int64_t start = clock_ns();
    t->serve(t->arg, leader->request);
    int64_t took = clock_ns() - start;
    pthread_mutex_lock(&t->lock);
    clear_owner(t);
    t->batch_ns = took;
    t->batch_size = in.n + 1;
    t->batch++;
    t->expected = 0;
    expect_client(t, leader);
    for (struct waiter *w = in.first; w; w = w->next) { /* they run once the lock is free */
        expect_client(t, w);
        w->state = WAITER_DONE;
        pthread_cond_signal(&w->wake);
    }
    hand_over(t);
}

int scheduler_submit(struct scheduler *t, struct scheduler_client *c, struct scheduler_request *r)
{
    r->next = NULL;
    if (stopped(t, c))
        return -1;
    if (is_owner(t)) {
        t->serve(t->arg, r);
        return 0;
    }
    struct waiter w;
    pthread_mutex_lock(&t->lock);
    waiter_init(t, &w, c, r);
    client_back(t, c);
    int rc = wait_in_queue(t, &t->batched, &w, true, false);
    if (rc == 0 && w.state == WAITER_OWNS)
        run_batch(t, &w);
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&w.wake);
    return rc;
}

int scheduler_batch_size(struct scheduler *t)
{
    LOCKED(&t->lock);
    return t->batch_size;
}

void scheduler_idle(struct scheduler *t, struct scheduler_client *c)
{
    LOCKED(&t->lock);
    client_back(t, c);
    if (t->lingering && t->expected == 0)
        pthread_cond_signal(&t->lingering->wake);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct scheduler *scheduler_new(scheduler_serve *serve, void *arg, const volatile int *stop)
{
    struct scheduler *t = xcalloc(1, sizeof *t);
    *t = (struct scheduler){.serve = serve, .arg = arg, .stop = stop, .batch = 1};
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&t->clock);
    pthread_condattr_setclock(&t->clock, CLOCK_MONOTONIC);
    return t;
}

void scheduler_free(struct scheduler *t)
{
    if (!t)
        return;
    pthread_condattr_destroy(&t->clock);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct scheduler_stats scheduler_stats(struct scheduler *t)
{
    LOCKED(&t->lock);
    struct scheduler_stats c = t->counts;
    c.waiting = t->exclusive.n + t->batched.n;
    return c;
}
