/* pool.c - thread pool (pool.h).
 *
 * A loop is published by storing its description and then a ticket: the number of its ranges that are not
 * taken yet. Any free thread, including the caller, takes the next range. A thread that is preempted
 * therefore delays at most its own range, and no thread waits for one that has not started. The upper half
 * of the ticket counts loops, so that a late thread cannot take a range of a loop it has not seen; for a
 * thread that has taken a range, the description stays valid until it is done.
 *
 * Workers spin for some tens of microseconds, because the loops of a forward pass follow each other
 * closely, and then sleep on a condition variable. */
#include "base/pool.h"

#include "base/err.h"
#include "base/lock.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, SPIN = 4000, RANGES = 8 /* per thread */ };

struct pool {
    int threads; /* including the caller */
    pthread_t *ids;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool quit;
    atomic_int asleep; /* workers waiting on the condition variable */
    pool_fn *fn;       /* the loop */
    void *arg;
    int64_t n, ranges;
    _Alignas(64) atomic_uint_least64_t ticket; /* number of loops in the upper half, ranges left in the
                                                * lower */
    _Alignas(64) atomic_int_least64_t done;    /* ranges finished */
};

struct worker {
    struct pool *pool;
    int index;
};

int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *), void *arg)
{
    pthread_attr_t how;
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_init(&how);
    if (stack)
        pthread_attr_setstacksize(&how, stack);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* a thread inherits its creator's mask */
    int rc = pthread_create(thread, &how, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&how);
    return rc;
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool has_ranges(struct pool *p)
{
    return (uint32_t)atomic_load(&p->ticket) > 0;
}

/* Takes one range and runs it. Returns false if none is left. */
static bool run_next(struct pool *p, int thread)
{
    uint64_t now = atomic_load_explicit(&p->ticket, memory_order_acquire);
    do {
        if (!(uint32_t)now)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&p->ticket, &now, now - 1, memory_order_acq_rel,
                                                    memory_order_acquire));
    int64_t i = p->ranges - (int64_t)(uint32_t)now;
    p->fn(p->arg, p->n * i / p->ranges, p->n * (i + 1) / p->ranges, thread);
    atomic_fetch_add_explicit(&p->done, 1, memory_order_release);
    return true;
}

static void wait_for_loop(struct pool *p)
{
    for (int i = 0; i < SPIN; i++) {
        if (has_ranges(p) || atomic_load_explicit(&p->quit, memory_order_relaxed))
            return;
        pause_cpu();
    }
    LOCKED(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while (!has_ranges(p) && !atomic_load(&p->quit))
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
}

static void *worker_main(void *arg)
{
    struct worker w = *(struct worker *)arg;
    free(arg);
    while (!atomic_load(&w.pool->quit))
        if (!run_next(w.pool, w.index))
            wait_for_loop(w.pool);
    return NULL;
}

static void wake_sleepers(struct pool *p)
{
    if (atomic_load(&p->asleep)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
    }
}

static int usable_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}

struct pool *pool_new(int threads)
{
    if (threads <= 0)
        threads = usable_cores();
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    struct pool *p = NULL; /* for its aligned members */
    if (posix_memalign((void **)&p, _Alignof(struct pool), sizeof *p))
        die(ERR_ENV, "out of memory: %zu bytes requested", sizeof *p);
    memset(p, 0, sizeof *p);
    p->threads = 1;
    p->ids = xcalloc((unsigned long)threads, sizeof *p->ids);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 1; i < threads; i++) {
        struct worker *w = xmalloc(1, sizeof *w);
        *w = (struct worker){p, i};
        if (pthread_create(&p->ids[i], NULL, worker_main, w)) { /* fewer threads are only slower */
            free(w);
            break;
        }
        p->threads++;
    }
    return p;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    atomic_store(&p->quit, true);
    wake_sleepers(p);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->ids[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->ids);
    free(p);
}

int pool_threads(const struct pool *p)
{
    return p ? p->threads : 1;
}

void pool_for(struct pool *p, int64_t n, int64_t grain, pool_fn *fn, void *arg)
{
    if (n <= 0)
        return;
    int64_t ranges = grain > 0 ? n / grain : n, most = (int64_t)pool_threads(p) * RANGES;
    ranges = ranges > most ? most : ranges;
    if (ranges <= 1 || pool_threads(p) == 1) {
        fn(arg, 0, n, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    p->ranges = ranges;
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    uint64_t loops = (atomic_load(&p->ticket) >> 32) + 1;
    atomic_store(&p->ticket, loops << 32 | (uint64_t)ranges);
    wake_sleepers(p);
    while (run_next(p, 0))
        ;
    for (int i = 0; atomic_load_explicit(&p->done, memory_order_acquire) < ranges; i++) {
        if (i < SPIN)
            pause_cpu();
        else
            sched_yield(); /* a worker has been preempted */
    }
}
