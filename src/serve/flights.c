/* flights.c - see flights.h. */
#include "serve/flights.h"

#include "base/clock.h"
#include "base/flag.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { LOOK_MS = 20 };

struct flights {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t watcher;
    struct flight *first;
    int n, most;
    bool closed, over;
};

/* Whether the other side has closed its connection. */
static bool hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void *watch(void *arg)
{
    struct flights *f = arg;
    pthread_mutex_lock(&f->lock);
    while (!f->over) {
        struct timespec until;
        for (struct flight *x = f->first; x; x = x->next)
            if (!flag_up(&x->c->gone) && hung_up(x->fd))
                completion_gone(x->c);
        until = clock_after(CLOCK_REALTIME, LOOK_MS);
        if (f->first)
            pthread_cond_timedwait(&f->changed, &f->lock, &until);
        else
            pthread_cond_wait(&f->changed, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

struct flights *flights_new(int most)
{
    struct flights *f = xcalloc(1, sizeof *f);
    f->most = most;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    if (pthread_create(&f->watcher, NULL, watch, f))
        die(ERR_ENV, "cannot start a thread");
    return f;
}

void flights_free(struct flights *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->over = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->watcher, NULL);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

bool flights_add(struct flights *f, struct flight *x, struct completion *c, int fd)
{
    pthread_mutex_lock(&f->lock);
    bool fits = !f->closed && f->n < f->most;
    if (fits) {
        *x = (struct flight){.next = f->first, .c = c, .fd = fd};
        if (f->first)
            f->first->prev = x;
        f->first = x;
        f->n++;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return fits;
}

void flights_remove(struct flights *f, struct flight *x)
{
    pthread_mutex_lock(&f->lock);
    *(x->prev ? &x->prev->next : &f->first) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    f->n--;
    pthread_mutex_unlock(&f->lock);
}

void flights_move(struct flights *f, struct flight *from, struct flight *to)
{
    pthread_mutex_lock(&f->lock);
    *to = *from;
    *(to->prev ? &to->prev->next : &f->first) = to;
    if (to->next)
        to->next->prev = to;
    pthread_mutex_unlock(&f->lock);
}

void flights_close(struct flights *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = true;
    pthread_mutex_unlock(&f->lock);
}

bool flights_closed(struct flights *f)
{
    pthread_mutex_lock(&f->lock);
    bool closed = f->closed;
    pthread_mutex_unlock(&f->lock);
    return closed;
}

int flights_count(struct flights *f)
{
    pthread_mutex_lock(&f->lock);
    int n = f->n;
    pthread_mutex_unlock(&f->lock);
    return n;
}

int flights_resting(struct flights *f)
{
    int n = 0;
    pthread_mutex_lock(&f->lock);
    for (struct flight *x = f->first; x; x = x->next)
        n += flag_value(&x->c->resting);
    pthread_mutex_unlock(&f->lock);
    return n;
}

int flights_end(struct flights *f, enum flights_end how)
{
    pthread_mutex_lock(&f->lock);
    for (struct flight *x = f->first; x; x = x->next) {
        if (how == FLIGHTS_FREEZE) {
            completion_freeze(x->c);
            continue;
        }
        x->c->aborted = x->c->aborted || how == FLIGHTS_ABORT;
        completion_gone(x->c);
    }
    int n = f->n;
    pthread_mutex_unlock(&f->lock);
    return n;
}
