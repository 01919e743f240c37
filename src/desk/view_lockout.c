/* view_lockout.c - wrong passwords of viewers, counted for each user of the machine and in total.
 *
 * A viewer's process counts a try before it compares the password, in memory that all viewers share;
 * concurrent tries and connections that are closed early therefore give no advantage.  After FREE wrong
 * passwords in a row, passwords of that user are rejected for 1 s, after each further one for twice as long,
 * up to 64 s; after FREE_TOTAL of all users, only the owner's are accepted.  The count restarts only after a
 * right password or 15 minutes without a wrong one. */
#include "desk/view_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FREE = 3, FREE_TOTAL = 10, DOUBLINGS = 6, FORGET_S = 900 };

void lockout_init(struct lockout *l)
{
    pthread_mutexattr_t a;
    memset(l, 0, sizeof *l);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); /* a viewer may die while it holds the lock */
    pthread_mutex_init(&l->lock, &a);
    pthread_mutexattr_destroy(&a);
}

static void take(struct lockout *l)
{
    if (pthread_mutex_lock(&l->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&l->lock);
}

/* Returns the count of a user; a new count replaces that of the user whose last failure is the oldest. */
static struct lockout_count *count_of(struct lockout *l, uid_t user)
{
    struct lockout_count *oldest = &l->users[0];
    for (int i = 0; i < LOCKOUT_USERS; i++) {
        struct lockout_count *c = &l->users[i];
        if (c->last && c->user == user)
            return c;
        oldest = c->last < oldest->last ? c : oldest;
    }
    *oldest = (struct lockout_count){.user = user};
    return oldest;
}

static int seconds_of(const struct lockout_count *c, int allowed)
{
    int more = c->wrong - allowed;
    return more < 0 ? 0 : 1 << (more < DOUBLINGS ? more : DOUBLINGS);
}

static bool is_locked(const struct lockout_count *c, int allowed)
{
    return c->last && clock_ms_since(c->last) < 1000.0 * seconds_of(c, allowed);
}

static void count_wrong(struct lockout_count *c)
{
    if (c->last && clock_ms_since(c->last) > 1000.0 * FORGET_S)
        c->wrong = c->reported = 0;
    c->wrong++;
    c->last = clock_ns();
}

static bool locked(struct lockout *l, uid_t user)
{
    return is_locked(count_of(l, user), FREE) || (user != getuid() && is_locked(&l->total, FREE_TOTAL));
}

bool lockout_locked(struct lockout *l, uid_t user)
{
    take(l);
    bool is = locked(l, user);
    pthread_mutex_unlock(&l->lock);
    return is;
}

bool lockout_try(struct lockout *l, uid_t user)
{
    take(l);
    bool may = !locked(l, user);
    if (may) {
        count_wrong(count_of(l, user));
        count_wrong(&l->total);
    }
    pthread_mutex_unlock(&l->lock);
    return may;
}

void lockout_right(struct lockout *l, uid_t user)
{
    take(l);
    *count_of(l, user) = (struct lockout_count){0};
    l->total.wrong--;
    pthread_mutex_unlock(&l->lock);
}

void lockout_report(struct lockout *l, uid_t user)
{
    take(l);
    struct lockout_count *c = count_of(l, user);
    int wrong = c->wrong, seconds = wrong > c->reported ? seconds_of(c, FREE) : 0;
    c->reported = wrong;
    pthread_mutex_unlock(&l->lock);
    if (seconds)
        warn("%d wrong passwords of viewers in a row: no more are accepted for %d s", wrong, seconds);
}

/* ---- user of a connection ------------------------------------------------------------------------------ */

/* Returns the port of an IPv4 or IPv6 address, which is at the same offset in both. */
static int port_of(const struct sockaddr_storage *a)
{
    in_port_t port = 0;
    memcpy(&port, (const char *)a + offsetof(struct sockaddr_in, sin_port), sizeof port);
    return ntohs(port);
}

/* Returns the owner of the socket of this machine that is bound to `port` and connected to `to`, or
 * LOCKOUT_UNKNOWN. */
static uid_t owner_of(const char *list, int port, int to)
{
    FILE *f = fopen(list, "re");
    char line[512];
    uid_t found = LOCKOUT_UNKNOWN;
    while (f && found == LOCKOUT_UNKNOWN && fgets(line, sizeof line, f)) {
        unsigned from, peer, uid;
        static const char row[] = " %*d: %*32[0-9A-F]:%x %*32[0-9A-F]:%x %*x %*s %*s %*s %u";
        int n = sscanf(line, row, &from, &peer, &uid);
        if (n == 3 && from == (unsigned)port && peer == (unsigned)to)
            found = uid;
    }
    if (f)
        fclose(f);
    return found;
}

uid_t lockout_user(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t n = sizeof here, m = sizeof there;
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockname(fd, (struct sockaddr *)&here, &n) || getpeername(fd, (struct sockaddr *)&there, &m))
        return LOCKOUT_UNKNOWN;
    if (here.ss_family == AF_UNIX)
        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) ? LOCKOUT_UNKNOWN : who.uid;
    return owner_of(here.ss_family == AF_INET6 ? "/proc/net/tcp6" : "/proc/net/tcp", port_of(&there),
                    port_of(&here));
}
