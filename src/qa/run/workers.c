/* workers.c - see workers.h. */
#include "qa/run/workers.h"

#include "base/clock.h"
#include "base/flag.h"
#include "qa/run/flaky.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS_MAX = 256, TICK_NS = 250000000 };

struct work { /* shared by the threads, under `lock` */
    const struct workers *workers;
    const struct workers_options *o;
    struct results *r;
    pthread_mutex_t lock, desktop; /* desktop: a display that is not ours takes one test at a time */
    pthread_cond_t ended;
    int next, working; /* working: threads */
    const char *over;  /* why no new test begins; NULL: they do */
    int64_t start;
};

struct worker {
    struct work *work;
    int number;
    pthread_t thread;
};

static double since_start(const struct work *w)
{
    return clock_ms_since(w->start) / 1000;
}

/* The next test; NULL: there is none for now, nor later. */
static struct result *take(struct work *w)
{
    struct result *out = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->o->seconds > 0 && since_start(w) >= w->o->seconds && w->next < w->r->n) {
        w->over = "the time of --max-time is over";
        w->r->time_over = true;
    }
    if (flag_up(screen_stop_flag(NULL)))
        w->over = "stopped before it began";
    if (!w->over && w->next < w->r->n)
        out = &w->r->results[w->next++];
    pthread_mutex_unlock(&w->lock);
    return out;
}

static int attempts_of(const struct work *w, const struct test *t)
{
    int n = t->attempts ? t->attempts : w->o->attempts;
    return n > 0 ? n : 1;
}

static bool again(const struct work *w, const struct result *r)
{
    int retries = r->test->retries >= 0 ? r->test->retries : w->o->retries;
    return r->n < attempts_of(w, r->test) + retries && !flag_up(screen_stop_flag(NULL)) &&
           (r->outcome == OUTCOME_FAILED || r->outcome == OUTCOME_ERROR ||
            r->outcome == OUTCOME_INCONCLUSIVE);
}

static void do_test(struct work *w, struct result *r)
{
    do {
        r->attempts = xrealloc(r->attempts, (unsigned long)r->n + 1, sizeof *r->attempts);
        struct attempt *a = &r->attempts[r->n];
        /* Fresh attempts throw other dice; a retry throws the same, so that what differs is the program. */
        uint64_t rng = r->n < attempts_of(w, r->test) ? (uint64_t)r->n : 0;
        attempt_run(w->workers, r->test, ++r->n, rng, a);
        result_verdict(r->test, a, &r->judged);
        r->outcome = a->outcome;
    } while (again(w, r));
    const struct attempt *a = &r->attempts[r->n - 1], *before = r->n > 1 ? a - 1 : NULL;
    if (before && r->outcome == OUTCOME_PASSED && r->n > attempts_of(w, r->test))
        r->flaky = flaky_why(before->run_dir, a->run_dir, &r->flaky_where);
}

/* Its row is filled when it has ended: whoever saves the results in the middle sees nothing half done. */
static void put_away(struct work *w, struct result *row, const struct result *done)
{
    pthread_mutex_lock(&w->lock);
    *row = *done;
    if (w->o->fail_fast && (row->outcome == OUTCOME_FAILED || row->outcome == OUTCOME_ERROR))
        w->over = "--fail-fast: a test before it has failed";
    w->r->seconds = since_start(w);
    if (w->o->saved)
        w->o->saved(w->o->arg, w->r);
    pthread_mutex_unlock(&w->lock);
}

static void *work_on(void *arg)
{
    struct worker *me = arg;
    struct work *w = me->work;
    struct result *row;
    while ((row = take(w))) {
        struct result r = {.test = row->test, .worker = me->number};
        bool ours = test_owns_desktop(r.test);
        if (!ours)
            pthread_mutex_lock(&w->desktop);
        r.began = since_start(w);
        live_start(w->o->live, r.test, me->number);
        do_test(w, &r);
        r.seconds = since_start(w) - r.began;
        live_end(w->o->live, &r);
        if (!ours)
            pthread_mutex_unlock(&w->desktop);
        put_away(w, row, &r);
    }
    pthread_mutex_lock(&w->lock);
    w->working--;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the main thread: the others are born with them blocked. */
static int start_workers(struct work *w, struct worker *workers, int n)
{
    sigset_t all, old;
    int started = 0;
    sigfillset(&all);
    pthread_mutex_lock(&w->lock);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (; started < n; started++) {
        workers[started] = (struct worker){.work = w, .number = started};
        w->working++; /* before it can end */
        if (pthread_create(&workers[started].thread, NULL, work_on, &workers[started])) {
            w->working--;
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_mutex_unlock(&w->lock);
    return started;
}

/* Shows that time goes on until all have ended. */
static void wait_for(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->working) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TICK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&w->ended, &w->lock, &until);
        pthread_mutex_unlock(&w->lock);
        live_tick(w->o->live);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

void workers_run(const struct workers *c, const struct workers_options *o, struct results *r)
{
    struct worker workers[WORKERS_MAX];
    struct work w = {.workers = c, .o = o, .r = r, .start = clock_ns()};
    pthread_mutex_init(&w.lock, NULL);
    pthread_mutex_init(&w.desktop, NULL);
    pthread_cond_init(&w.ended, NULL);
    int n = o->jobs < r->n ? o->jobs : r->n;
    n = start_workers(&w, workers, n < WORKERS_MAX ? n : WORKERS_MAX);
    if (n == 0 && r->n)
        die(ERR_ENV, "cannot start a thread for a test");
    wait_for(&w);
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < r->n; i++)
        if (r->results[i].n == 0)
            r->results[i].reason = w.over;
    r->seconds = since_start(&w);
    pthread_mutex_destroy(&w.lock);
    pthread_mutex_destroy(&w.desktop);
    pthread_cond_destroy(&w.ended);
}
