/* ahead.c - opens the desktop of the next test while the current one runs; see workers.h. */
#include "qa/run/ahead.h"

#include "base/lock.h"

#include "capacity/memory.h"
#include "qa/run/attempt_impl.h"

#include <stdlib.h>

static const size_t least_memory = (size_t)1 << 30;

struct opening {
    const struct suite_run *run;
    const struct test *test;
    pthread_t thread;
    struct desk *desk; /* NULL: it could not be opened */
};

struct ahead {
    const struct suite_run *run;
    pthread_mutex_t lock;
    struct opening *opening; /* or NULL */
};

static void *open_thread(void *arg)
{
    struct opening *o = arg;
    o->desk = attempt_open_desk(o->run, o->test, NULL); /* the test itself reports a failure */
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
    if (!test_owns_desktop(t) || t->home || t->reuse == REUSE_PROGRAM || memory_available() < least_memory)
        return;
    LOCKED(&a->lock);
    if (!a->opening) {
        struct opening *o = xcalloc(1, sizeof *o);
        *o = (struct opening){.run = a->run, .test = t};
        if (pthread_create(&o->thread, NULL, open_thread, o))
            free(o); /* the test opens its desktop itself */
        else
            a->opening = o;
    }
}

/* Waits for the desktop. It may take 20 seconds, so the caller does not hold the lock. */
static struct desk *opened(struct opening *o)
{
    pthread_join(o->thread, NULL);
    struct desk *d = o->desk;
    free(o);
    return d;
}

struct desk *ahead_take(struct ahead *a, const struct test *t)
{
    struct opening *o = NULL;
    pthread_mutex_lock(&a->lock);
    if (a->opening && a->opening->test == t) {
        o = a->opening;
        a->opening = NULL;
    }
    pthread_mutex_unlock(&a->lock);
    return o ? opened(o) : NULL;
}

void ahead_free(struct ahead *a)
{
    if (a->opening)
        desk_close(opened(a->opening));
    pthread_mutex_destroy(&a->lock);
    free(a);
}
