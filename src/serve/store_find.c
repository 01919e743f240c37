/* store_find.c - the kept session that a request goes on in (store.h). */
#include "serve/store_impl.h"

#include "base/clock.h"
#include "base/flag.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct match {
    struct kept *k;
    int n;     /* the cut */
    int mark;  /* -1: the end */
    bool used; /* by another request, which has to be asked for a branch */
};

static void consider(struct match *best, struct kept *k, int n, int mark, bool used)
{
    /* of equal lengths an end is better than a mark, and an idle one better than one in use */
    int rank = n * 4 + (used ? 0 : mark < 0 ? 3 : 2);
    int best_rank = best->k ? best->n * 4 + (best->used ? 0 : best->mark < 0 ? 3 : 2) : 3;
    if (rank > best_rank)
        *best = (struct match){k, n, mark, used};
}

static struct match find(struct store *s, const struct weights_set *w, const struct chain *chain, int end)
{
    struct match best = {0};
    for (struct kept *k = s->first; k; k = k->next)
        for (int n = end; k->weights == w && !k->rests && n > 0 && n >= best.n; n--) {
            if ((!k->used || k->lent) && chain_equal(k->end, chain[n]))
                consider(&best, k, n, -1, k->used);
            for (int i = 0; i < STORE_POINTS; i++)
                if (k->marks[i].state && chain_equal(k->marks[i].at, chain[n]))
                    consider(&best, k, n, i, k->used);
            if (k->used && n == end && chain_equal(k->coming, chain[n]))
                consider(&best, k, n, STORE_BEFORE_REPLY, true);
        }
    return best;
}

/* The caller has the lock, since it looked for another one: of equal requests at once the first reads, and
 * the others find it.  session NULL: the caller gives it one, without the lock. */
static struct kept *kept_new(struct store *s, struct weights_set *w, struct session *session,
                             struct chain coming)
{
    struct kept *k = xcalloc(1, sizeof *k);
    k->weights = weights_share(s->slot, w);
    k->session = session;
    k->coming = coming;
    k->used = true;
    store_link(s, k);
    return k;
}

/* A branch of an idle session, which was marked as used, and those that others asked for meanwhile. */
static struct session *branch_idle(struct store *s, struct kept *k, int mark)
{
    struct err e = ERR_INIT;
    struct session *b = session_try_branch(k->session, k->marks[mark].state, &e);
    store_serve(s, k);
    pthread_mutex_lock(&s->lock);
    k->used = k->lent = false;
    store_dismiss(s, k);
    pthread_mutex_unlock(&s->lock);
    return b;
}

/* The session itself, read back from its file if it is there. */
static bool restore(struct store *s, struct kept *k)
{
    struct err e = ERR_INIT;
    if (k->session)
        return true;
    k->session = session_load(k->weights->engine, k->file, &e);
    unlink(k->file);
    free(k->file);
    k->file = NULL;
    if (!k->session)
        warn("a spilled conversation is read anew: %s", e.text);
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

/* Asks the user of k for a branch; the caller has the lock.  NULL: none was given. */
static struct session *await_branch(struct store *s, struct kept *k, struct chain at,
                                    const volatile int *stop)
{
    struct waiter w = {.next = k->waiters, .at = at};
    /* cppcheck-suppress autoVariables ; it is off the list before this returns */
    k->waiters = &w;
    atomic_fetch_add(&k->n_waiters, 1);
    while (!w.done && !flag_up(stop))
        wait_briefly(s);
    if (!w.done)
        store_forget(k, &w); /* k lives as long as it has waiters */
    return w.got;
}

/* A branch of k, asked of its user or made here when it is idle; NULL: there is none, look again.  It is
 * in the list before it is made, so that whoever has the same prompt waits for it; each waits for one that
 * was there before its own.  The caller has the lock, which is given back. */
static struct kept *kept_branch(struct store *s, const struct match *m, struct weights_set *w,
                                const struct chain *chain, int n, const volatile int *stop)
{
    bool same = m->used && m->n == n; /* then k is what others are to wait for */
    struct chain coming = {0};
    if (!same)
        coming = chain[n];
    struct kept *b = kept_new(s, w, NULL, coming);
    if (m->used) {
        b->session = await_branch(s, m->k, chain[m->n], stop);
        pthread_mutex_unlock(&s->lock);
    } else {
        m->k->used = m->k->lent = true;
        pthread_mutex_unlock(&s->lock);
        b->session = branch_idle(s, m->k, m->mark);
    }
    if (!b->session) {
        store_drop(s, b);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->counts.branched++;
    b->coming = chain[n];
    pthread_mutex_unlock(&s->lock);
    return b;
}

/* The session of k itself, which is idle.  The caller has the lock, which is given back. */
static struct kept *kept_go_on(struct store *s, struct kept *k, struct chain coming)
{
    k->used = true;
    k->coming = coming;
    pthread_mutex_unlock(&s->lock);
    if (!restore(s, k)) {
        store_drop(s, k);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->counts.continued++;
    pthread_mutex_unlock(&s->lock);
    return k;
}

/* The caller has the lock, which is given back. */
static struct kept *kept_begin(struct store *s, struct weights_set *w, struct chain coming)
{
    s->counts.begun++;
    struct kept *k = kept_new(s, w, NULL, coming);
    pthread_mutex_unlock(&s->lock);
    k->session = session_new(w->engine, 0);
    return k;
}

struct kept *store_take(struct store *s, struct weights_set *w, const struct chain *chain, int n,
                        int *matched, const volatile int *stop)
{
    enum { TRIES = 16 }; /* what was found may have gone when it is taken */
    struct kept *k = NULL;
    for (int i = 0; !k && !flag_up(stop); i++) {
        pthread_mutex_lock(&s->lock);
        struct match m = i < TRIES ? find(s, w, chain, n) : (struct match){0};
        k = !m.k                    ? kept_begin(s, w, chain[n])
            : !m.used && m.mark < 0 ? kept_go_on(s, m.k, chain[n])
                                    : kept_branch(s, &m, w, chain, n, stop);
        *matched = m.n;
    }
    if (k)
        session_set_cancel(k->session, stop);
    else
        *matched = 0;
    return k;
}
