/* in_flight.c - tracks requests in flight and detects disconnected clients; see in_flight.h. */
#include "serve/in_flight.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum { LOOK_MS = 20 };

struct in_flight {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t watcher;
    struct in_flight_request *first;
    int n, most;
    bool closed, over;
};

/* Returns whether the client has closed its connection. */
static bool hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void *watch(void *arg)
{
    struct in_flight *f = arg;
    LOCKED(&f->lock);
    while (!f->over) {
        struct timespec until;
        for (struct in_flight_request *x = f->first; x; x = x->next)
            if (!flag_up(&x->c->gone) && hung_up(x->fd))
                completion_gone(x->c);
        until = clock_after(CLOCK_REALTIME, LOOK_MS);
        if (f->first)
            pthread_cond_timedwait(&f->changed, &f->lock, &until);
        else
            pthread_cond_wait(&f->changed, &f->lock);
    }
    return NULL;
}

struct in_flight *in_flight_new(int most)
{
    struct in_flight *f = xcalloc(1, sizeof *f);
    f->most = most;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    if (pthread_create(&f->watcher, NULL, watch, f))
        die(ERR_ENV, "cannot start the thread that monitors clients");
    return f;
}

void in_flight_free(struct in_flight *f)
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

bool in_flight_add(struct in_flight *f, struct in_flight_request *x, struct completion *c, int fd)
{
    LOCKED(&f->lock);
    bool fits = !f->closed && f->n < f->most;
    if (fits) {
        *x = (struct in_flight_request){.next = f->first, .c = c, .fd = fd};
        if (f->first)
            f->first->prev = x;
        f->first = x;
        f->n++;
        pthread_cond_broadcast(&f->changed);
    }
    return fits;
}

void in_flight_remove(struct in_flight *f, struct in_flight_request *x)
{
    LOCKED(&f->lock);
    *(x->prev ? &x->prev->next : &f->first) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    f->n--;
}

void in_flight_move(struct in_flight *f, struct in_flight_request *from, struct in_flight_request *to)
{
    LOCKED(&f->lock);
    *to = *from;
    *(to->prev ? &to->prev->next : &f->first) = to;
    if (to->next)
        to->next->prev = to;
}

void in_flight_close(struct in_flight *f)
{
    LOCKED(&f->lock);
    f->closed = true;
}

bool in_flight_closed(struct in_flight *f)
{
    LOCKED(&f->lock);
    return f->closed;
}

int in_flight_count(struct in_flight *f)
{
    LOCKED(&f->lock);
    return f->n;
}

int in_flight_paused(struct in_flight *f)
{
    int n = 0;
    LOCKED(&f->lock);
    for (struct in_flight_request *x = f->first; x; x = x->next)
        n += flag_value(&x->c->waiting);
    return n;
}

int in_flight_end(struct in_flight *f, enum in_flight_end how)
{
    LOCKED(&f->lock);
    for (struct in_flight_request *x = f->first; x; x = x->next) {
        if (how == IN_FLIGHT_PAUSE) {
            completion_pause(x->c);
            continue;
        }
        x->c->aborted = x->c->aborted || how == IN_FLIGHT_ABORT;
        completion_gone(x->c);
    }
    return f->n;
}
