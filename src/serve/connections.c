/* connections.c - tracks open connections and closes those without a token; see connections.h.
 *
 * A connection is closed by shutting down its socket: its thread then reads the end of the stream and closes
 * the socket. */
#include "serve/connections.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNKNOWN_S = 10, LOOK_S = 1 };

struct connection {
    struct connection *prev, *next;
    int fd;
    uint64_t address; /* IPv4 address, or the network part of an IPv6 address */
    int64_t since;    /* clock_ns() when it was opened or its last reply ended */
    bool known, busy, cut;
};

struct connections {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t watcher;
    struct connection *first;
    int n, most; /* n: without those already shut down */
    bool over;
};

static void cut_off(struct connections *c, struct connection *x)
{
    shutdown(x->fd, SHUT_RDWR);
    x->cut = true;
    c->n--;
}

static void *watch(void *arg)
{
    struct connections *c = arg;
    LOCKED(&c->lock);
    while (!c->over) {
        struct timespec until;
        for (struct connection *x = c->first; x; x = x->next)
            if (!x->known && !x->cut && clock_ms_since(x->since) > 1000 * UNKNOWN_S)
                cut_off(c, x);
        until = clock_after(CLOCK_REALTIME, 1000.0 * LOOK_S);
        if (c->first)
            pthread_cond_timedwait(&c->changed, &c->lock, &until);
        else
            pthread_cond_wait(&c->changed, &c->lock);
    }
    return NULL;
}

struct connections *connections_new(int most)
{
    struct connections *c = xcalloc(1, sizeof *c);
    c->most = most;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (pthread_create(&c->watcher, NULL, watch, c))
        die(ERR_ENV, "cannot start the thread that monitors connections");
    return c;
}

void connections_free(struct connections *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->over = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->watcher, NULL);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- choosing a connection to close ------------------------------------------------------------------ */

static int unknown_from(const struct connections *c, uint64_t address)
{
    int n = 0;
    for (const struct connection *x = c->first; x; x = x->next)
        n += !x->known && !x->cut && x->address == address;
    return n;
}

/* Finds the oldest unauthenticated connection from the address with the most of them. The list is sorted by
 * age, newest first. */
static struct connection *oldest_unknown(const struct connections *c, const struct connection *but)
{
    struct connection *found = NULL;
    uint64_t crowded = 0;
    int most = 0;
    for (struct connection *x = c->first; x; x = x->next) {
        if (x->known || x->cut || x == but)
            continue;
        int n = found && x->address == crowded ? most : unknown_from(c, x->address);
        if (n >= most) {
            most = n;
            crowded = x->address;
            found = x;
        }
    }
    return found;
}

static struct connection *longest_idle(const struct connections *c)
{
    struct connection *found = NULL;
    for (struct connection *x = c->first; x; x = x->next)
        if (x->known && !x->busy && !x->cut && (!found || x->since < found->since))
            found = x;
    return found;
}

static uint64_t address_of(const struct sockaddr *a)
{
    uint64_t network = 0;
    if (a && a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
    if (a && a->sa_family == AF_INET6)
        memcpy(&network, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, sizeof network);
    return network;
}

/* ---- the connections ----------------------------------------------------------------------------------- */

struct connection *connection_open(struct connections *c, int fd, const struct sockaddr *from)
{
    struct connection *x = xcalloc(1, sizeof *x);
    x->fd = fd;
    x->address = address_of(from);
    x->since = clock_ns();
    LOCKED(&c->lock);
    x->next = c->first;
    if (x->next)
        x->next->prev = x;
    c->first = x;
    if (++c->n > c->most) {
        struct connection *leaves = oldest_unknown(c, x);
        leaves = leaves ? leaves : longest_idle(c);
        if (leaves)
            cut_off(c, leaves);
    }
    pthread_cond_signal(&c->changed);
    return x;
}

void connection_close(struct connections *c, struct connection *x)
{
    pthread_mutex_lock(&c->lock);
    *(x->prev ? &x->prev->next : &c->first) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    c->n -= !x->cut;
    pthread_mutex_unlock(&c->lock);
    free(x);
}

void connection_begin(struct connections *c, struct connection *x, bool known)
{
    LOCKED(&c->lock);
    x->busy = true;
    x->known = known;
}

void connection_rest(struct connections *c, struct connection *x)
{
    LOCKED(&c->lock);
    x->busy = false;
    x->since = clock_ns();
}
