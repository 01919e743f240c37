/* budget.c - a memory budget with blocking reservations; see budget.h. */
#include "serve/budget.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/flag.h"
#include "base/lock.h"

#include <stdlib.h>
#include <time.h>

enum { LOOK_MS = 20 };

struct budget {
    pthread_mutex_t lock;
    pthread_cond_t given;
    size_t used, most;
};

struct budget *budget_new(size_t most)
{
    struct budget *b = xcalloc(1, sizeof *b);
    b->most = most;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->given, NULL);
    return b;
}

void budget_free(struct budget *b)
{
    if (!b)
        return;
    pthread_cond_destroy(&b->given);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static bool reserve(struct budget *b, size_t bytes)
{
    bool fits = !b->used || (b->used <= b->most && bytes <= b->most - b->used);
    b->used += fits ? bytes : 0;
    return fits;
}

bool budget_try(struct budget *b, size_t bytes)
{
    LOCKED(&b->lock);
    return reserve(b, bytes);
}

bool budget_wait(struct budget *b, size_t bytes, const volatile int *cancel)
{
    bool fits = false;
    LOCKED(&b->lock);
    while (!flag_up(cancel) && !(fits = reserve(b, bytes))) {
        struct timespec until = clock_after(CLOCK_REALTIME, LOOK_MS);
        pthread_cond_timedwait(&b->given, &b->lock, &until);
    }
    return fits;
}

void budget_release(struct budget *b, size_t bytes)
{
    LOCKED(&b->lock);
    b->used -= bytes;
    pthread_cond_broadcast(&b->given);
}

size_t budget_used(struct budget *b)
{
    LOCKED(&b->lock);
    return b->used;
}
