/* scheduler.c - see scheduler.h. */
#include "session/scheduler.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/flag.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    LOOK_MS = 10,        /* how often who waits looks whether it is stopped */
    LINGER_PART = 4,     /* of the time of a batch that its members are waited for */
    LINGER_MOST = 20000, /* microseconds */
};

enum seat_state { WAITER_WAITS, WAITER_HAS, WAITER_SERVED, WAITER_DONE };

struct waiter { /* of a thread that waits, on its stack */
    pthread_cond_t wake;
    struct waiter *prev, *next;
    struct scheduler_client *client;   /* or NULL */
    struct scheduler_request *request; /* NULL: it wants the turn for itself */
    enum seat_state state;
    int64_t came; /* turns given until then */
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
    atomic_uintptr_t owner; /* the thread that has the turn; 0: nobody, or it does not work yet */
    int depth;              /* how often it has taken it */
    bool taken;
    bool last_together; /* whose line had the last turn */
    struct queue alone, together;
    struct waiter *lingers; /* has the turn, and waits for members of the last batch */
    uint64_t batch;         /* its number */
    int expected;           /* its members that have not come back */
    int64_t batch_ns;       /* how long it took */
    int64_t given;          /* turns so far */
    struct scheduler_stats counts;
};

/* ---- lines -------------------------------------------------------------------------------------------------- */

static void line_put(struct queue *l, struct waiter *s)
{
    s->prev = l->last;
    s->next = NULL;
    *(l->last ? &l->last->next : &l->first) = s;
    l->last = s;
    l->n++;
}

static void line_leave(struct queue *l, struct waiter *s)
{
    *(s->prev ? &s->prev->next : &l->first) = s->next;
    *(s->next ? &s->next->prev : &l->last) = s->prev;
    l->n--;
}

static void line_jump(struct queue *l, struct waiter *s)
{
    line_leave(l, s);
    s->prev = NULL;
    s->next = l->first;
    *(l->first ? &l->first->prev : &l->last) = s;
    l->first = s;
    l->n++;
}

/* ---- who has the turn ---------------------------------------------------------------------------------------- */

static uintptr_t myself(void)
{
    static _Thread_local char me;
    return (uintptr_t)&me;
}

static bool mine(struct scheduler *t)
{
    return atomic_load_explicit(&t->owner, memory_order_relaxed) == myself();
}

static void begin(struct scheduler *t, int depth)
{
    t->depth = depth;
    atomic_store_explicit(&t->owner, myself(), memory_order_relaxed);
}

static void end(struct scheduler *t)
{
    t->depth = 0;
    atomic_store_explicit(&t->owner, 0, memory_order_relaxed);
}

static bool stopped(const struct scheduler *t, const struct scheduler_client *m)
{
    return flag_up(t->stop) || (m && flag_up(m->stop));
}

static void note_waited(struct scheduler *t, const struct waiter *s)
{
    int64_t others = t->given - s->came;
    if (others > t->counts.most_waited)
        t->counts.most_waited = others;
}

/* The turn is this one's. */
static void grant(struct scheduler *t, struct waiter *s)
{
    note_waited(t, s);
    t->taken = true;
    t->last_together = s->request != NULL;
    t->given++;
    s->state = WAITER_HAS;
}

/* The turn goes to whoever is next, or lies free. */
static void pass_on(struct scheduler *t)
{
    struct queue *l = t->together.first && (!t->alone.first || !t->last_together) ? &t->together : &t->alone;
    struct waiter *s = l->first;
    t->taken = false;
    if (!s)
        return;
    line_leave(l, s);
    grant(t, s);
    pthread_cond_signal(&s->wake);
}

/* ---- waiting -------------------------------------------------------------------------------------------------- */

static struct timespec at_ns(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void waiter_init(struct scheduler *t, struct waiter *s, struct scheduler_client *m,
                        struct scheduler_request *w)
{
    *s = (struct waiter){.client = m, .request = w, .came = t->given};
    pthread_cond_init(&s->wake, &t->clock);
}

/* A member of the last batch is back. */
static void back(struct scheduler *t, struct scheduler_client *m)
{
    if (m && m->served == t->batch && t->expected > 0) {
        m->served = 0;
        t->expected--;
    }
}

static void sleep_in(struct scheduler *t, struct waiter *s)
{
    if (!t->stop && !(s->client && s->client->stop)) {
        pthread_cond_wait(&s->wake, &t->lock);
        return;
    }
    struct timespec until = at_ns(clock_ns() + LOOK_MS * 1000000ll);
    pthread_cond_timedwait(&s->wake, &t->lock, &until);
}

/* Until it has the turn, or its wish is granted.  -1: it was stopped; one that `stays` is the next to have the turn then,
 * and has it. */
static int wait_in(struct scheduler *t, struct queue *l, struct waiter *s, bool may_stop, bool stays)
{
    int rc = 0;
    if (!t->taken) {
        grant(t, s);
        return 0;
    }
    line_put(l, s);
    if (t->lingers && (l == &t->alone || t->expected == 0))
        pthread_cond_signal(&t->lingers->wake);
    while (s->state == WAITER_WAITS || s->state == WAITER_SERVED) {
        sleep_in(t, s);
        if (s->state != WAITER_WAITS || !may_stop || rc || !stopped(t, s->client))
            continue;
        rc = -1;
        if (stays) {
            line_jump(l, s);
        } else {
            line_leave(l, s);
            break;
        }
    }
    return rc;
}

int scheduler_acquire(struct scheduler *t, struct scheduler_client *m, bool may_stop)
{
    if (may_stop && stopped(t, m))
        return -1;
    if (mine(t)) {
        t->depth++;
        return 0;
    }
    struct waiter s;
    pthread_mutex_lock(&t->lock);
    waiter_init(t, &s, m, NULL);
    back(t, m);
    int rc = wait_in(t, &t->alone, &s, may_stop, false);
    if (rc == 0) {
        t->counts.exclusive++;
        begin(t, 1);
    }
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&s.wake);
    return rc;
}

void scheduler_release(struct scheduler *t)
{
    if (!mine(t))
        bug("a turn is given up by a thread that does not have it");
    if (--t->depth)
        return;
    pthread_mutex_lock(&t->lock);
    end(t);
    pass_on(t);
    pthread_mutex_unlock(&t->lock);
}

int scheduler_yield(struct scheduler *t, struct scheduler_client *m)
{
    if (!mine(t))
        bug("a turn is given up by a thread that does not have it");
    int rc = stopped(t, m) ? -1 : 0, depth = t->depth;
    struct waiter s;
    pthread_mutex_lock(&t->lock);
    if (rc == 0 && (t->alone.first || t->together.first)) {
        waiter_init(t, &s, m, NULL);
        end(t);
        pass_on(t);
        rc = wait_in(t, &t->alone, &s, true, true);
        t->counts.exclusive++;
        begin(t, depth);
        pthread_cond_destroy(&s.wake);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

/* ---- together ------------------------------------------------------------------------------------------------- */

/* The rest of the last batch is about to come. */
static void linger(struct scheduler *t, struct waiter *s)
{
    int64_t most = t->batch_ns / LINGER_PART;
    struct timespec until = at_ns(clock_ns() + (most < LINGER_MOST * 1000ll ? most : LINGER_MOST * 1000ll));
    t->lingers = s;
    while (t->expected > 0 && !t->alone.first && !pthread_cond_timedwait(&s->wake, &t->lock, &until))
        ;
    t->lingers = NULL;
}

/* Who leads and all who wait are in it; their seats in a list of their own. */
static struct queue gather(struct scheduler *t, struct waiter *leader)
{
    struct queue in = t->together;
    t->together = (struct queue){0};
    for (struct waiter *s = in.first; s; s = s->next) {
        note_waited(t, s);
        s->state = WAITER_SERVED;
        s->request->next = s->next ? s->next->request : NULL;
        t->counts.rows += s->request->rows;
    }
    leader->request->next = in.first ? in.first->request : NULL;
    t->counts.rows += leader->request->rows;
    t->counts.batches++;
    return in;
}

static void served(struct scheduler *t, struct waiter *s)
{
    if (s->client)
        s->client->served = t->batch;
    t->expected += s->client != NULL;
}

static void lead(struct scheduler *t, struct waiter *leader)
{
    linger(t, leader);
    struct queue in = gather(t, leader);
    begin(t, 1);
    pthread_mutex_unlock(&t->lock);
    int64_t start = clock_ns();
    t->serve(t->arg, leader->request);
    int64_t took = clock_ns() - start;
    pthread_mutex_lock(&t->lock);
    end(t);
    t->batch_ns = took;
    t->batch++;
    t->expected = 0;
    served(t, leader);
    for (struct waiter *s = in.first; s; s = s->next) { /* none of them goes on before the lock is free */
        served(t, s);
        s->state = WAITER_DONE;
        pthread_cond_signal(&s->wake);
    }
    pass_on(t);
}

int scheduler_submit(struct scheduler *t, struct scheduler_client *m, struct scheduler_request *w)
{
    w->next = NULL;
    if (stopped(t, m))
        return -1;
    if (mine(t)) {
        t->serve(t->arg, w);
        return 0;
    }
    struct waiter s;
    pthread_mutex_lock(&t->lock);
    waiter_init(t, &s, m, w);
    back(t, m);
    int rc = wait_in(t, &t->together, &s, true, false);
    if (rc == 0 && s.state == WAITER_HAS)
        lead(t, &s);
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&s.wake);
    return rc;
}

void scheduler_idle(struct scheduler *t, struct scheduler_client *m)
{
    pthread_mutex_lock(&t->lock);
    back(t, m);
    if (t->lingers && t->expected == 0)
        pthread_cond_signal(&t->lingers->wake);
    pthread_mutex_unlock(&t->lock);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

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
    pthread_mutex_lock(&t->lock);
    struct scheduler_stats c = t->counts;
    c.waiting = t->alone.n + t->together.n;
    pthread_mutex_unlock(&t->lock);
    return c;
}
