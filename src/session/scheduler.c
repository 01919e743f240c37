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

enum seat_state { SEAT_WAITS, SEAT_HAS, SEAT_SERVED, SEAT_DONE };

struct seat { /* of a thread that waits, on its stack */
    pthread_cond_t wake;
    struct seat *prev, *next;
    struct turn_member *member; /* or NULL */
    struct turn_wish *wish;     /* NULL: it wants the turn for itself */
    enum seat_state state;
    int64_t came; /* turns given until then */
};

struct line {
    struct seat *first, *last;
    int n;
};

struct turns {
    turn_serve *serve;
    void *arg;
    const volatile int *stop;
    pthread_mutex_t lock;
    pthread_condattr_t clock;
    atomic_uintptr_t owner; /* the thread that has the turn; 0: nobody, or it does not work yet */
    int depth;              /* how often it has taken it */
    bool taken;
    bool last_together; /* whose line had the last turn */
    struct line alone, together;
    struct seat *lingers; /* has the turn, and waits for members of the last batch */
    uint64_t batch;       /* its number */
    int away;             /* its members that have not come back */
    int64_t batch_ns;     /* how long it took */
    int64_t given;        /* turns so far */
    struct turn_counts counts;
};

/* ---- lines -------------------------------------------------------------------------------------------------- */

static void line_put(struct line *l, struct seat *s)
{
    s->prev = l->last;
    s->next = NULL;
    *(l->last ? &l->last->next : &l->first) = s;
    l->last = s;
    l->n++;
}

static void line_leave(struct line *l, struct seat *s)
{
    *(s->prev ? &s->prev->next : &l->first) = s->next;
    *(s->next ? &s->next->prev : &l->last) = s->prev;
    l->n--;
}

static void line_jump(struct line *l, struct seat *s)
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

static bool mine(struct turns *t)
{
    return atomic_load_explicit(&t->owner, memory_order_relaxed) == myself();
}

static void begin(struct turns *t, int depth)
{
    t->depth = depth;
    atomic_store_explicit(&t->owner, myself(), memory_order_relaxed);
}

static void end(struct turns *t)
{
    t->depth = 0;
    atomic_store_explicit(&t->owner, 0, memory_order_relaxed);
}

static bool stopped(const struct turns *t, const struct turn_member *m)
{
    return flag_up(t->stop) || (m && flag_up(m->stop));
}

static void note_waited(struct turns *t, const struct seat *s)
{
    int64_t others = t->given - s->came;
    if (others > t->counts.most_waited)
        t->counts.most_waited = others;
}

/* The turn is this one's. */
static void grant(struct turns *t, struct seat *s)
{
    note_waited(t, s);
    t->taken = true;
    t->last_together = s->wish != NULL;
    t->given++;
    s->state = SEAT_HAS;
}

/* The turn goes to whoever is next, or lies free. */
static void pass_on(struct turns *t)
{
    struct line *l = t->together.first && (!t->alone.first || !t->last_together) ? &t->together : &t->alone;
    struct seat *s = l->first;
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

static void seat_init(struct turns *t, struct seat *s, struct turn_member *m, struct turn_wish *w)
{
    *s = (struct seat){.member = m, .wish = w, .came = t->given};
    pthread_cond_init(&s->wake, &t->clock);
}

/* A member of the last batch is back. */
static void back(struct turns *t, struct turn_member *m)
{
    if (m && m->served == t->batch && t->away > 0) {
        m->served = 0;
        t->away--;
    }
}

static void sleep_in(struct turns *t, struct seat *s)
{
    if (!t->stop && !(s->member && s->member->stop)) {
        pthread_cond_wait(&s->wake, &t->lock);
        return;
    }
    struct timespec until = at_ns(clock_ns() + LOOK_MS * 1000000ll);
    pthread_cond_timedwait(&s->wake, &t->lock, &until);
}

/* Until it has the turn, or its wish is granted.  -1: it was stopped; one that `stays` is the next to have the turn then,
 * and has it. */
static int wait_in(struct turns *t, struct line *l, struct seat *s, bool may_stop, bool stays)
{
    int rc = 0;
    if (!t->taken) {
        grant(t, s);
        return 0;
    }
    line_put(l, s);
    if (t->lingers && (l == &t->alone || t->away == 0))
        pthread_cond_signal(&t->lingers->wake);
    while (s->state == SEAT_WAITS || s->state == SEAT_SERVED) {
        sleep_in(t, s);
        if (s->state != SEAT_WAITS || !may_stop || rc || !stopped(t, s->member))
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

int turns_take(struct turns *t, struct turn_member *m, bool may_stop)
{
    if (may_stop && stopped(t, m))
        return -1;
    if (mine(t)) {
        t->depth++;
        return 0;
    }
    struct seat s;
    pthread_mutex_lock(&t->lock);
    seat_init(t, &s, m, NULL);
    back(t, m);
    int rc = wait_in(t, &t->alone, &s, may_stop, false);
    if (rc == 0) {
        t->counts.turns++;
        begin(t, 1);
    }
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&s.wake);
    return rc;
}

void turns_give(struct turns *t)
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

int turns_yield(struct turns *t, struct turn_member *m)
{
    if (!mine(t))
        bug("a turn is given up by a thread that does not have it");
    int rc = stopped(t, m) ? -1 : 0, depth = t->depth;
    struct seat s;
    pthread_mutex_lock(&t->lock);
    if (rc == 0 && (t->alone.first || t->together.first)) {
        seat_init(t, &s, m, NULL);
        end(t);
        pass_on(t);
        rc = wait_in(t, &t->alone, &s, true, true);
        t->counts.turns++;
        begin(t, depth);
        pthread_cond_destroy(&s.wake);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

/* ---- together ------------------------------------------------------------------------------------------------- */

/* The rest of the last batch is about to come. */
static void linger(struct turns *t, struct seat *s)
{
    int64_t most = t->batch_ns / LINGER_PART;
    struct timespec until = at_ns(clock_ns() + (most < LINGER_MOST * 1000ll ? most : LINGER_MOST * 1000ll));
    t->lingers = s;
    while (t->away > 0 && !t->alone.first && !pthread_cond_timedwait(&s->wake, &t->lock, &until))
        ;
    t->lingers = NULL;
}

/* Who leads and all who wait are in it; their seats in a list of their own. */
static struct line gather(struct turns *t, struct seat *leader)
{
    struct line in = t->together;
    t->together = (struct line){0};
    for (struct seat *s = in.first; s; s = s->next) {
        note_waited(t, s);
        s->state = SEAT_SERVED;
        s->wish->next = s->next ? s->next->wish : NULL;
        t->counts.rows += s->wish->rows;
    }
    leader->wish->next = in.first ? in.first->wish : NULL;
    t->counts.rows += leader->wish->rows;
    t->counts.batches++;
    return in;
}

static void served(struct turns *t, struct seat *s)
{
    if (s->member)
        s->member->served = t->batch;
    t->away += s->member != NULL;
}

static void lead(struct turns *t, struct seat *leader)
{
    linger(t, leader);
    struct line in = gather(t, leader);
    begin(t, 1);
    pthread_mutex_unlock(&t->lock);
    int64_t start = clock_ns();
    t->serve(t->arg, leader->wish);
    int64_t took = clock_ns() - start;
    pthread_mutex_lock(&t->lock);
    end(t);
    t->batch_ns = took;
    t->batch++;
    t->away = 0;
    served(t, leader);
    for (struct seat *s = in.first; s; s = s->next) { /* none of them goes on before the lock is free */
        served(t, s);
        s->state = SEAT_DONE;
        pthread_cond_signal(&s->wake);
    }
    pass_on(t);
}

int turns_join(struct turns *t, struct turn_member *m, struct turn_wish *w)
{
    w->next = NULL;
    if (stopped(t, m))
        return -1;
    if (mine(t)) {
        t->serve(t->arg, w);
        return 0;
    }
    struct seat s;
    pthread_mutex_lock(&t->lock);
    seat_init(t, &s, m, w);
    back(t, m);
    int rc = wait_in(t, &t->together, &s, true, false);
    if (rc == 0 && s.state == SEAT_HAS)
        lead(t, &s);
    pthread_mutex_unlock(&t->lock);
    pthread_cond_destroy(&s.wake);
    return rc;
}

void turns_rest(struct turns *t, struct turn_member *m)
{
    pthread_mutex_lock(&t->lock);
    back(t, m);
    if (t->lingers && t->away == 0)
        pthread_cond_signal(&t->lingers->wake);
    pthread_mutex_unlock(&t->lock);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

struct turns *turns_new(turn_serve *serve, void *arg, const volatile int *stop)
{
    struct turns *t = xcalloc(1, sizeof *t);
    *t = (struct turns){.serve = serve, .arg = arg, .stop = stop, .batch = 1};
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&t->clock);
    pthread_condattr_setclock(&t->clock, CLOCK_MONOTONIC);
    return t;
}

void turns_free(struct turns *t)
{
    if (!t)
        return;
    pthread_condattr_destroy(&t->clock);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct turn_counts turns_counts(struct turns *t)
{
    pthread_mutex_lock(&t->lock);
    struct turn_counts c = t->counts;
    c.waiting = t->alone.n + t->together.n;
    pthread_mutex_unlock(&t->lock);
    return c;
}
