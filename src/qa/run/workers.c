/* workers.c - runs the tests of a suite on worker threads. */
#include "qa/run/workers.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"
#include "qa/run/ahead.h"
#include "qa/run/kept.h"
#include "qa/run/room.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS_MAX = 256, TICK_MS = 250, ROOM_MS = 50 };

static const char fail_fast[] = "--fail-fast: an earlier test did not pass";

struct queue { /* shared by the workers; its state is protected by `lock` */
    const struct suite_run *run;
    const struct workers_options *o;
    struct results *r;
    pthread_mutex_t lock;
    pthread_cond_t worker_done;
    bool *shares; /* [r->n] the test uses what others use, too: see shares() */
    bool sharing; /* such a test runs; at most one does */
    int next[2];  /* first row of a test that has not begun and does not, or does, share; r->n: none */
    int workers;  /* number of workers started */
    int working;  /* number of workers that have not ended */
    int tests;    /* number of tests that run now */
    struct room room;
    struct ahead *ahead; /* NULL: no desktop is opened ahead */
    struct kept *kept;   /* NULL: each test opens its own program */
    const char *stopped; /* why no further test starts; or NULL */
    int64_t start;
};

struct worker {
    struct queue *queue;
    int number;
    pthread_t thread;
};

static double since_start(const struct queue *q)
{
    return clock_ms_since(q->start) / 1000;
}

/* Returns whether a test uses an existing display, or without --jobs a port, so that it cannot run beside
 * another such test. */
static bool shares(const struct queue *q, const struct test *t)
{
    return !test_owns_desktop(t) || (q->o->paced && room_shares_port(t));
}

/* Returns the first row that has not begun; with `sharing`, of a test that shares nothing; r->n: none. The
 * caller holds the lock. */
static int next_row(struct queue *q, bool sharing)
{
    for (int kind = 0; kind < 2; kind++) {
        int *i = &q->next[kind];
        while (*i < q->r->n && (q->shares[*i] != kind || q->r->results[*i].n))
            ++*i; /* also passes tests decided in the run that this one continues */
    }
    return sharing || q->next[0] < q->next[1] ? q->next[0] : q->next[1];
}

/* Returns whether no further test starts, and keeps the reason. The caller holds the lock. */
static bool is_over(struct queue *q)
{
    if (next_row(q, false) >= q->r->n)
        return true;
    if (q->o->seconds > 0 && since_start(q) >= q->o->seconds) {
        q->stopped = "--max-time exceeded";
        q->r->time_over = true;
    }
    if (flag_up(screen_stop_flag(NULL))) {
        q->stopped = "stopped before it started";
        q->r->stopped = true;
    }
    return q->stopped != NULL;
}

/* Returns the row of the next test, and waits until it can start; NULL: no further test starts. */
static struct result *next_test(struct queue *q)
{
    struct result *out = NULL;
    pthread_mutex_lock(&q->lock);
    while (!is_over(q)) {
        int i = next_row(q, q->sharing);
        if (i < q->r->n && (!q->o->paced || !q->tests || room_left(&q->room))) {
            q->next[q->shares[i]] = i + 1;
            q->sharing = q->sharing || q->shares[i];
            q->tests++;
            out = &q->r->results[i];
            break;
        }
        pthread_mutex_unlock(&q->lock);
        clock_sleep_ms(ROOM_MS);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return out;
}

/* A program that is kept open between tests would begin a further attempt with what the failed one left. */
static int attempts_of(const struct queue *q, const struct test *t)
{
    if (t->reuse == REUSE_PROGRAM)
        return 1;
    int n = t->attempts ? t->attempts : q->o->attempts;
    return n > 0 ? n : 1;
}

static bool should_retry(const struct queue *q, const struct result *r)
{
    int retries = r->test->reuse == REUSE_PROGRAM ? 0
                  : r->test->retries >= 0         ? r->test->retries
                                                  : q->o->retries;
    return r->n < attempts_of(q, r->test) + retries && !flag_up(screen_stop_flag(NULL)) &&
           (r->outcome == OUTCOME_FAILED || r->outcome == OUTCOME_ERROR ||
            r->outcome == OUTCOME_INCONCLUSIVE);
}

/* Opens the desktop of the test that will probably be next. It begins under the lock: another worker that
 * takes this test afterwards finds the desktop. */
static void open_next(void *arg)
{
    struct queue *q = arg;
    LOCKED(&q->lock);
    if (!is_over(q)) {
        int i = next_row(q, q->sharing && q->workers > 1);
        ahead_begin(q->ahead, q->r->results[i < q->r->n ? i : next_row(q, false)].test);
    }
}

/* Runs a test with its retries. sample: 0, or the number of one of several runs of this test, which have
 * distinct random seeds. */
static void run_test(struct queue *q, const struct suite_run *run, uint64_t sample, struct result *r)
{
    do {
        r->attempts = xrealloc(r->attempts, (unsigned long)r->n + 1, sizeof *r->attempts);
        struct attempt *a = &r->attempts[r->n];
        /* Attempts get different random seeds. A retry uses the test's own seed, so that only the program can
         * differ. */
        uint64_t seed_offset = r->n < attempts_of(q, r->test) ? (uint64_t)r->n : 0;
        struct attempt_order order = {
            .number = ++r->n, .seed_offset = seed_offset + (sample << 20), .kept = q->kept};
        if (q->ahead) {
            order.desk = r->n == 1 ? ahead_take(q->ahead, r->test) : NULL;
            order.started = open_next;
            order.arg = q;
        }
        attempt_run(run, r->test, &order, a);
        result_outcome(r->test, a, &r->judged);
        r->outcome = a->outcome;
    } while (should_retry(q, r));
    const struct attempt *a = &r->attempts[r->n - 1], *before = r->n > 1 ? a - 1 : NULL;
    if (before && r->outcome == OUTCOME_PASSED && r->n > attempts_of(q, r->test))
        r->flaky = flaky_cause(before->run_dir, a->run_dir, &r->flaky_where);
}

/* Returns the line of the sentence whose written steps lack an element; 0: none. */
static int missing_of(const struct test *t, const struct attempt *a)
{
    const struct step_result *step = attempt_failed_step(a);
    const struct test_step *s = step ? &t->script[step - a->script] : NULL;
    return s && s->of && s->plain >= 0 && step->end == STEP_NOT_FOUND ? s->of_line : 0;
}

static const struct attempt *freeze_attempt(const struct suite_run *run, struct result *r, int again,
                                            const struct attempt *planned)
{
    const struct attempt_order order = {
        .number = r->n + 1, .freezes = true, .again = again, .planned = planned};
    struct attempt a;
    attempt_run(run, r->test, &order, &a);
    r->attempts = xrealloc(r->attempts, (unsigned long)r->n + 1, sizeof *r->attempts);
    r->attempts[r->n] = a;
    r->outcome = a.outcome;
    result_outcome(r->test, &r->attempts[r->n], &r->judged);
    return &r->attempts[r->n++];
}

/* Plans the sentences of a test, also one whose steps lack an element, and runs it again with these steps. */
static void freeze_test(const struct suite_run *run, struct result *r)
{
    const struct attempt *a = freeze_attempt(run, r, 0, NULL);
    int again = missing_of(r->test, a);
    if (again)
        a = freeze_attempt(run, r, again, NULL);
    if (a->outcome == OUTCOME_PASSED)
        freeze_attempt(run, r, again, a);
}

/* Stores a complete row at once, so that results saved meanwhile have no partial row. */
static void store_result(struct queue *q, struct result *row, const struct result *done)
{
    LOCKED(&q->lock);
    q->tests--;
    if (q->shares[row - q->r->results])
        q->sharing = false;
    *row = *done;
    enum ci ci = results_ci(q->r, row);
    if (q->o->fail_fast && (ci == CI_FAILURE || ci == CI_ERROR) && !q->stopped)
        q->stopped = fail_fast;
    q->r->seconds = since_start(q);
    if (q->o->saved)
        q->o->saved(q->o->arg, q->r);
}

static void take_test(struct queue *q, const struct suite_run *run, uint64_t sample, struct result *r)
{
    r->began = since_start(q);
    progress_start(q->o->progress, r->test, r->worker);
    if (run->freezes)
        freeze_test(run, r);
    else
        run_test(q, run, sample, r);
    r->seconds = since_start(q) - r->began;
    progress_end(q->o->progress, r);
}

/* Waits until no test runs that shares something, so that a requested one can. */
static void claim(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->sharing) {
        pthread_mutex_unlock(&q->lock);
        clock_sleep_ms(ROOM_MS);
        pthread_mutex_lock(&q->lock);
    }
    q->sharing = true;
    pthread_mutex_unlock(&q->lock);
}

static void release(struct queue *q)
{
    LOCKED(&q->lock);
    q->sharing = false;
}

static void work_on_feed(struct queue *q, int number)
{
    struct feed_request f;
    while (feed_next(q->o->feed, &f)) {
        struct result r = {.test = f.test, .worker = number};
        struct suite_run run = *q->run;
        bool shared = shares(q, f.test);
        run.dir = f.dir;
        if (shared)
            claim(q);
        take_test(q, &run, f.sample, &r);
        if (shared)
            release(q);
        feed_done(q->o->feed, &f, &r);
    }
}

static void *worker_main(void *arg)
{
    struct worker *me = arg;
    struct queue *q = me->queue;
    struct result *row;
    if (q->o->feed)
        work_on_feed(q, me->number);
    while (!q->o->feed && (row = next_test(q))) {
        struct result r = {.test = row->test, .worker = me->number};
        take_test(q, q->run, 0, &r);
        store_result(q, row, &r);
    }
    LOCKED(&q->lock);
    q->working--;
    pthread_cond_signal(&q->worker_done);
    return NULL;
}

/* Starts the workers. They block signals, so that the main thread gets them. Returns the number started. */
static int start_workers(struct queue *q, struct worker *workers, int n)
{
    sigset_t all, old;
    int started = 0;
    sigfillset(&all);
    LOCKED(&q->lock);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (; started < n; started++) {
        workers[started] = (struct worker){.queue = q, .number = started};
        q->working++;
        q->workers++;
        if (pthread_create(&workers[started].thread, NULL, worker_main, &workers[started])) {
            q->working--;
            q->workers--;
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

/* Updates the progress display until all workers are done. */
static void wait_for_workers(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->working) {
        struct timespec until = clock_after(CLOCK_REALTIME, TICK_MS);
        pthread_cond_timedwait(&q->worker_done, &q->lock, &until);
        pthread_mutex_unlock(&q->lock);
        progress_tick(q->o->progress);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
}

void workers_run(const struct suite_run *run, const struct workers_options *o, struct results *r)
{
    struct worker workers[WORKERS_MAX];
    struct queue q = {.run = run, .o = o, .r = r, .start = clock_ns()};
    pthread_mutex_init(&q.lock, NULL);
    pthread_cond_init(&q.worker_done, NULL);
    q.shares = xcalloc((unsigned long)r->n + 1, sizeof *q.shares);
    for (int i = 0; i < r->n; i++)
        q.shares[i] = shares(&q, r->results[i].test);
    q.ahead = o->feed || run->freezes ? NULL : ahead_new(run);
    int n = o->feed || o->jobs < r->n ? o->jobs : r->n;
    q.kept = o->feed || run->freezes ? NULL : kept_new(n, r);
    n = start_workers(&q, workers, n < WORKERS_MAX ? n : WORKERS_MAX);
    if (n == 0 && r->n)
        die(ERR_ENV, "cannot start a worker thread");
    wait_for_workers(&q);
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < r->n; i++)
        if (r->results[i].n == 0) {
            r->results[i].reason = q.stopped;
            r->results[i].excused = q.stopped == fail_fast;
        }
    if (q.ahead)
        ahead_free(q.ahead);
    if (q.kept)
        kept_free(q.kept);
    r->seconds = since_start(&q);
    pthread_mutex_destroy(&q.lock);
    free(q.shares);
    pthread_cond_destroy(&q.worker_done);
}
