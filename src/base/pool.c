/* pool.c - see pool.h.
 *
 * A loop is published by storing its description and raising `epoch`.  Workers wait for a new epoch:
 * they spin for a few tens of microseconds, because the loops of one forward pass follow each other
 * closely, then sleep on a futex-backed condition.  Range i belongs to thread i, so there is no
 * sharing of counters and the split depends on (n, grain, threads) only.
 */
#include "base/pool.h"

#include "base/err.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MAX_THREADS = 256, SPIN = 4000 };

struct pool {
    int threads; /* the caller's included */
    pthread_t *ids;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint epoch;  /* raised for each loop */
    atomic_int running; /* workers still in the loop */
    atomic_int asleep;  /* workers on the condition */
    atomic_bool quit;
    pool_fn *fn; /* the loop */
    void *arg;
    int64_t n;
    int ranges;
};

struct worker {
    struct pool *pool;
    int index;
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void run_range(struct pool *p, int i)
{
    int64_t begin = p->n * i / p->ranges, end = p->n * (i + 1) / p->ranges;
    if (i < p->ranges && begin < end)
        p->fn(p->arg, begin, end, i);
}

static unsigned wait_for_epoch(struct pool *p, unsigned seen)
{
    unsigned now;
    for (int i = 0; i < SPIN; i++) {
        if ((now = atomic_load_explicit(&p->epoch, memory_order_acquire)) != seen)
            return now;
        pause_cpu();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->asleep, 1);
    while ((now = atomic_load(&p->epoch)) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->lock);
    return now;
}

static void *work(void *arg)
{
    struct worker w = *(struct worker *)arg;
    free(arg);
    for (unsigned seen = 0;;) {
        seen = wait_for_epoch(w.pool, seen);
        if (atomic_load(&w.pool->quit))
            return NULL;
        run_range(w.pool, w.index);
        atomic_fetch_sub_explicit(&w.pool->running, 1, memory_order_release);
    }
}

static void raise_epoch(struct pool *p)
{
    atomic_fetch_add(&p->epoch, 1);
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
    struct pool *p = xcalloc(1, sizeof *p);
    p->threads = 1;
    p->ids = xcalloc((unsigned long)threads, sizeof *p->ids);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 1; i < threads; i++) {
        struct worker *w = xmalloc(1, sizeof *w);
        *w = (struct worker){p, i};
        if (pthread_create(&p->ids[i], NULL, work, w)) { /* fewer threads is only slower */
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
    raise_epoch(p);
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
    int64_t ranges = grain > 0 ? n / grain : n;
    if (ranges > pool_threads(p))
        ranges = pool_threads(p);
    if (ranges <= 1) {
        fn(arg, 0, n, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    p->ranges = (int)ranges;
    atomic_store(&p->running, p->threads - 1);
    raise_epoch(p);
    run_range(p, 0);
    for (int i = 0; atomic_load_explicit(&p->running, memory_order_acquire) > 0; i++) {
        if (i < SPIN)
            pause_cpu();
        else
            sched_yield(); /* a worker lost its core to somebody else */
    }
}
