/* ahead.c - opens the desktop of the next test while the current one runs; see workers.h. */
#include "qa/run/ahead.h"

#include "capacity/memory.h"
#include "qa/run/attempt_impl.h"

#include <pthread.h>
#include <stdlib.h>

static const size_t least_memory = (size_t)1 << 30;

struct ahead {
    const struct suite_run *run;
    pthread_mutex_t lock;
    const struct test *test; /* whose desktop is opened; NULL: none */
    struct desk *desk;       /* NULL: it could not be opened */
    pthread_t thread;
};

static void *open_thread(void *arg)
{
    struct ahead *a = arg;
    a->desk = attempt_open_desk(a->run, a->test, NULL); /* the test itself reports a failure */
    return NULL;
}

struct ahead *ahead_new(const struct suite_run *run)
{
    struct ahead *a = xcalloc(1, sizeof *a);
    a->run = run;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void ahead_begin(struct ahead *a, const struct test *t)
{
    if (!test_owns_desktop(t) || t->home || memory_available() < least_memory)
        return;
    pthread_mutex_lock(&a->lock);
    if (!a->test) {
        a->test = t;
        a->desk = NULL;
        if (pthread_create(&a->thread, NULL, open_thread, a))
            a->test = NULL; /* the test opens its desktop itself */
    }
    pthread_mutex_unlock(&a->lock);
}

/* Waits for the thread and empties the slot. The caller holds the lock. */
static struct desk *taken(struct ahead *a)
{
    pthread_join(a->thread, NULL);
    a->test = NULL;
    return a->desk;
}

struct desk *ahead_take(struct ahead *a, const struct test *t)
{
    struct desk *d = NULL;
    pthread_mutex_lock(&a->lock);
    if (a->test == t)
        d = taken(a);
    pthread_mutex_unlock(&a->lock);
    return d;
}

void ahead_free(struct ahead *a)
{
    if (a->test)
        desk_close(taken(a));
    pthread_mutex_destroy(&a->lock);
    free(a);
}
