/* weights.c - reference-counted sets of weights and their replacement; see weights.h. */
#include "serve/weights.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"

#include <stdlib.h>
#include <time.h>

struct weights_slot {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weights_set *now;
    bool paused;
};

static struct weights_set *set_new(struct engine *g, int version)
{
    struct weights_set *s = xcalloc(1, sizeof *s);
    *s = (struct weights_set){g, version, 1};
    return s;
}

struct weights_slot *weights_slot_new(struct engine *g)
{
    struct weights_slot *w = xcalloc(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->now = set_new(g, 1);
    return w;
}

/* Removes a user. Returns the engine if it was the last one; the caller closes it without holding the
 * lock. */
static struct engine *drop_user(struct weights_set *s)
{
    if (--s->users)
        return NULL;
    struct engine *g = s->engine;
    free(s);
    return g;
}

void weights_slot_free(struct weights_slot *w)
{
    if (!w)
        return;
    engine_close(drop_user(w->now));
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Waits at most 20 ms, so that *stop is checked at that interval. */
static void wait_20ms(struct weights_slot *w)
{
    struct timespec until = clock_after(CLOCK_REALTIME, 20);
    pthread_cond_timedwait(&w->changed, &w->lock, &until);
}

struct weights_set *weights_acquire(struct weights_slot *w, const volatile int *stop)
{
    struct weights_set *s = NULL;
    LOCKED(&w->lock);
    while (w->paused && !flag_up(stop))
        wait_20ms(w);
    if (!w->paused) {
        s = w->now;
        s->users++;
    }
    return s;
}

struct weights_set *weights_share(struct weights_slot *w, struct weights_set *s)
{
    LOCKED(&w->lock);
    s->users++;
    return s;
}

void weights_release(struct weights_slot *w, struct weights_set *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&w->lock);
    struct engine *unused = drop_user(s);
    pthread_mutex_unlock(&w->lock);
    engine_close(unused);
}

static void set_paused(struct weights_slot *w, bool to)
{
    LOCKED(&w->lock);
    w->paused = to;
    pthread_cond_broadcast(&w->changed);
}

void weights_pause(struct weights_slot *w)
{
    set_paused(w, true);
}

void weights_resume(struct weights_slot *w)
{
    set_paused(w, false);
}

bool weights_paused(struct weights_slot *w)
{
    LOCKED(&w->lock);
    return w->paused;
}

void weights_replace(struct weights_slot *w, struct engine *g)
{
    pthread_mutex_lock(&w->lock);
    struct weights_set *old = w->now;
    w->now = set_new(g, old->version + 1);
    struct engine *unused = drop_user(old);
    pthread_mutex_unlock(&w->lock);
    engine_close(unused);
}

int weights_version(struct weights_slot *w)
{
    LOCKED(&w->lock);
    return w->now->version;
}
