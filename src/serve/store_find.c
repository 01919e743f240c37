/* store_find.c - finds the cached session with which a request continues (store.h). */
#include "serve/store_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct match {
    struct cached_session *k;
    int n;     /* matched cut */
    int mark;  /* checkpoint; -1: the end of the session */
    bool used; /* in use by another request, which must create a branch */
};

static void consider(struct match *best, struct cached_session *k, int n, int mark, bool used)
{
    /* among equal lengths an end is better than a checkpoint, and idle better than in use */
    int rank = n * 4 + (used ? 0 : mark < 0 ? 3 : 2);
    int best_rank = best->k ? best->n * 4 + (best->used ? 0 : best->mark < 0 ? 3 : 2) : 3;
    if (rank > best_rank)
        *best = (struct match){k, n, mark, used};
}

static struct match find(struct store *s, const struct weights_set *w, const struct prefix_hash *hashes,
                         int end)
{
    struct match best = {0};
    for (struct cached_session *k = s->first; k; k = k->next)
        for (int n = end; k->weights == w && !k->paused && n > 0 && n >= best.n; n--) {
            if ((!k->used || k->temporary) && prefix_hash_equal(k->end, hashes[n]))
                consider(&best, k, n, -1, k->used);
            for (int i = 0; i < STORE_POINTS; i++)
                if (k->marks[i].state && prefix_hash_equal(k->marks[i].at, hashes[n]))
                    consider(&best, k, n, i, k->used);
            if (k->used && n == end && prefix_hash_equal(k->target, hashes[n]))
                consider(&best, k, n, STORE_BEFORE_REPLY, true);
        }
    return best;
}

/* Adds an entry in use. The caller holds the lock since its search, so of several identical concurrent
 * requests only the first prefills and the others find its entry. session may be NULL: the caller sets it
 * without the lock. */
static struct cached_session *cached_new(struct store *s, struct weights_set *w, struct session *session,
                                         struct prefix_hash target)
{
    struct cached_session *k = xcalloc(1, sizeof *k);
    k->weights = weights_share(s->slot, w);
    k->session = session;
    k->target = target;
    k->used = true;
    store_link(s, k);
    return k;
}

/* Branches an idle session that is marked as used, and serves branches requested meanwhile. */
static struct session *branch_idle(struct store *s, struct cached_session *k, int mark)
{
    struct err e = ERR_INIT;
    struct session *b = session_try_branch(k->session, k->marks[mark].state, &e);
    store_serve(s, k);
    LOCKED(&s->lock);
    k->used = k->temporary = false;
    store_wake_waiters(s, k);
    return b;
}

/* Restores the session of an entry from its file if necessary. Returns whether it has a session. */
static bool restore(struct store *s, struct cached_session *k)
{
    struct err e = ERR_INIT;
    if (k->session)
        return true;
    k->session = session_load(k->weights->engine, k->file, &e);
    unlink(k->file);
    free(k->file);
    k->file = NULL;
    if (!k->session)
        warn("cannot restore a session, its conversation is prefilled again: %s", e.text);
    pthread_mutex_lock(&s->lock);
    s->counts.restored += k->session != NULL;
    pthread_mutex_unlock(&s->lock);
    return k->session != NULL;
}

static void wait_briefly(struct store *s)
{
    struct timespec until = clock_after(CLOCK_REALTIME, 20);
    pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

/* Asks the user of k for a branch and waits for it. The caller holds the lock. Returns NULL if none was
 * created. */
static struct session *await_branch(struct store *s, struct cached_session *k, struct prefix_hash at,
                                    const volatile int *stop)
{
    struct waiter w = {.next = k->waiters, .at = at};
    /* cppcheck-suppress autoVariables ; it is off the list before this returns */
    k->waiters = &w;
    atomic_fetch_add(&k->n_waiters, 1);
    while (!w.done && !flag_up(stop))
        wait_briefly(s);
    if (!w.done)
        store_unlink_waiter(k, &w); /* k exists as long as it has waiters */
    return w.got;
}

/* Returns a branch of k, created by its user, or here if k is idle; NULL: none, search again. The new entry
 * is listed before the branch exists, so that requests with the same prompt wait for it; each waits only for
 * older entries. The caller holds the lock, which is released. */
static struct cached_session *cached_branch(struct store *s, const struct match *m, struct weights_set *w,
                                            const struct prefix_hash *hashes, int n, const volatile int *stop)
{
    bool same = m->used && m->n == n; /* the others must wait for k then */
    struct prefix_hash target = {0};
    if (!same)
        target = hashes[n];
    struct cached_session *b = cached_new(s, w, NULL, target);
    if (m->used) {
        b->session = await_branch(s, m->k, hashes[m->n], stop);
        pthread_mutex_unlock(&s->lock);
    } else {
        m->k->used = m->k->temporary = true;
        pthread_mutex_unlock(&s->lock);
        b->session = branch_idle(s, m->k, m->mark);
    }
    if (!b->session) {
        store_discard(s, b);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->counts.branched++;
    b->target = hashes[n];
    pthread_mutex_unlock(&s->lock);
    return b;
}

/* Takes the idle session of k itself. The caller holds the lock, which is released. */
static struct cached_session *cached_continue(struct store *s, struct cached_session *k,
                                              struct prefix_hash target)
{
    k->used = true;
    k->target = target;
    pthread_mutex_unlock(&s->lock);
    if (!restore(s, k)) {
        store_discard(s, k);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->counts.continued++;
    pthread_mutex_unlock(&s->lock);
    return k;
}

/* Begins a new session. The caller holds the lock, which is released. */
static struct cached_session *cached_begin(struct store *s, struct weights_set *w, struct prefix_hash target)
{
    s->counts.begun++;
    struct cached_session *k = cached_new(s, w, NULL, target);
    pthread_mutex_unlock(&s->lock);
    k->session = session_new(w->engine, 0);
    return k;
}

struct cached_session *store_acquire(struct store *s, struct weights_set *w, const struct prefix_hash *hashes,
                                     int n, int *matched, const volatile int *stop)
{
    enum { TRIES = 16 }; /* the match may be gone when it is acquired */
    struct cached_session *k = NULL;
    for (int i = 0; !k && !flag_up(stop); i++) {
        pthread_mutex_lock(&s->lock);
        struct match m = i < TRIES ? find(s, w, hashes, n) : (struct match){0};
        k = !m.k                    ? cached_begin(s, w, hashes[n])
            : !m.used && m.mark < 0 ? cached_continue(s, m.k, hashes[n])
                                    : cached_branch(s, &m, w, hashes, n, stop);
        *matched = m.n;
    }
    if (k)
        session_set_cancel(k->session, stop);
    else
        *matched = 0;
    return k;
}
