/* store.c - see store.h.
 *
 * One lock guards the list and what it is searched by.  A session is touched by its user alone; an idle one
 * that is branched, saved or freed is marked as used meanwhile, and that happens without the lock, because
 * it waits for the engine.
 */
#include "serve/store.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/flag.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct mark {
    struct chain at;
    struct checkpoint *state; /* NULL: none */
};

struct waiter { /* on the stack of a thread that wants a branch */
    struct waiter *next;
    struct chain at;
    struct session *got;
    bool done;
};

struct kept {
    struct kept *prev, *next;
    struct weights_set *weights;
    struct session *session; /* NULL: in the file */
    char *file;
    struct chain end;    /* of an idle one: where it stands */
    struct chain coming; /* of one in use: where its prompt will end */
    struct mark marks[STORE_POINTS];
    bool used;
    uint64_t last;
    struct waiter *waiters;
    atomic_int n_waiters;
};

struct store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct weights_slot *slot;
    struct store_options o;
    struct kept *first;
    uint64_t clock, files;
    struct store_counts counts;
};

struct store *store_new(struct weights_slot *w, const struct store_options *o)
{
    struct store *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->slot = w;
    s->o = *o;
    return s;
}

/* ---- the list; the caller has the lock ----------------------------------------------------------- */

static void link_kept(struct store *s, struct kept *k)
{
    k->prev = NULL;
    k->next = s->first;
    if (s->first)
        s->first->prev = k;
    s->first = k;
}

static void unlink_kept(struct store *s, struct kept *k)
{
    *(k->prev ? &k->prev->next : &s->first) = k->next;
    if (k->next)
        k->next->prev = k->prev;
}

/* Whoever still waits looks again. */
static void dismiss_waiters(struct store *s, struct kept *k)
{
    for (struct waiter *w = k->waiters; w; w = w->next)
        w->done = true;
    k->waiters = NULL;
    atomic_store(&k->n_waiters, 0);
    pthread_cond_broadcast(&s->changed);
}

/* ---- giving up; without the lock ----------------------------------------------------------------- */

static bool drop_marks(struct store *s, struct kept *k)
{
    struct checkpoint *states[STORE_POINTS];
    bool any = false;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < STORE_POINTS; i++) {
        states[i] = k->marks[i].state;
        k->marks[i].state = NULL;
        any = any || states[i];
    }
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < STORE_POINTS; i++)
        checkpoint_free(states[i]);
    return any;
}

/* An unlinked one. */
static void free_kept(struct store *s, struct kept *k)
{
    drop_marks(s, k);
    session_free(k->session);
    if (k->file)
        unlink(k->file);
    free(k->file);
    weights_release(s->slot, k->weights);
    free(k);
}

void store_flush(struct store *s)
{
    for (;;) {
        pthread_mutex_lock(&s->lock);
        struct kept *k = s->first;
        while (k && k->used)
            k = k->next;
        if (k)
            unlink_kept(s, k);
        pthread_mutex_unlock(&s->lock);
        if (!k)
            return;
        free_kept(s, k);
    }
}

void store_free(struct store *s)
{
    if (!s)
        return;
    store_flush(s);
    if (s->first)
        bug("a conversation in use at the end");
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool has_marks(const struct kept *k)
{
    return k->marks[0].state || k->marks[1].state;
}

enum victim { VICTIM_MARKS, VICTIM_SESSION, VICTIM_FILE };

/* The least recently used idle one that has what is wanted, marked as used; the caller has the lock. */
static struct kept *pick_victim(struct store *s, enum victim what)
{
    struct kept *oldest = NULL;
    for (struct kept *k = s->first; k; k = k->next) {
        bool has = what == VICTIM_FILE ? !k->session : k->session && (what == VICTIM_SESSION || has_marks(k));
        if (!k->used && has && (!oldest || k->last < oldest->last))
            oldest = k;
    }
    if (oldest)
        oldest->used = true;
    return oldest;
}

/* Saves an idle session, which has no marks then; -1: it could not be saved. */
static int spill(struct store *s, struct kept *k)
{
    struct err e = ERR_INIT;
    if (!s->o.spill)
        return -1;
    pthread_mutex_lock(&s->lock);
    char *file = xasprintf("%s/%d-%llu.state", s->o.spill, (int)getpid(), (unsigned long long)++s->files);
    pthread_mutex_unlock(&s->lock);
    if (session_save(k->session, file, &e)) {
        warn("a conversation cannot be spilled: %s", e.text);
        free(file);
        return -1;
    }
    session_free(k->session);
    k->session = NULL;
    k->file = file;
    return 0;
}

/* Gives up one thing; false: there was none. */
static bool evict(struct store *s, enum victim what)
{
    pthread_mutex_lock(&s->lock);
    struct kept *k = pick_victim(s, what);
    pthread_mutex_unlock(&s->lock);
    if (!k)
        return false;
    drop_marks(s, k);
    bool stays = what == VICTIM_MARKS || (what == VICTIM_SESSION && spill(s, k) == 0);
    pthread_mutex_lock(&s->lock);
    s->counts.spilled += stays && what == VICTIM_SESSION;
    s->counts.evicted += !stays;
    k->used = false;
    if (!stays)
        unlink_kept(s, k);
    dismiss_waiters(s, k);
    pthread_mutex_unlock(&s->lock);
    if (!stays)
        free_kept(s, k);
    return true;
}

static bool evict_any(struct store *s)
{
    return evict(s, VICTIM_MARKS) || evict(s, VICTIM_SESSION);
}

static void count_idle(struct store *s, int *sessions, int *files)
{
    pthread_mutex_lock(&s->lock);
    *sessions = *files = 0;
    for (const struct kept *k = s->first; k; k = k->next)
        *(k->session ? sessions : files) += !k->used;
    pthread_mutex_unlock(&s->lock);
}

/* After one more has become idle. */
static void hold_bounds(struct store *s, struct engine *g)
{
    int sessions, files;
    for (count_idle(s, &sessions, &files); sessions > s->o.most; count_idle(s, &sessions, &files))
        if (!evict(s, VICTIM_SESSION))
            break;
    while (s->o.bytes && engine_state_memory(g).used > s->o.bytes && evict_any(s))
        ;
    for (count_idle(s, &sessions, &files); files > s->o.most_files; count_idle(s, &sessions, &files))
        if (!evict(s, VICTIM_FILE))
            break;
}

int store_room(struct store *s, struct kept *k, int64_t tokens, struct err *e)
{
    while (!session_fits(k->session, tokens))
        if (!evict_any(s) && !drop_marks(s, k))
            return err_set(e, ERR_ENV, "no memory for the state of %lld more tokens", (long long)tokens);
    return 0;
}

/* ---- finding --------------------------------------------------------------------------------------- */

struct match {
    struct kept *k;
    int n;     /* messages */
    int mark;  /* -1: the end */
    bool used; /* by another request, which has to be asked for a branch */
};

/* Results of tools share a turn: it cannot be cut between two of them. */
static bool can_stand_at(const struct conversation *v, int n)
{
    return n == v->chat.n || n == 0 || v->chat.messages[n].role != CHAT_TOOL ||
           v->chat.messages[n - 1].role != CHAT_TOOL;
}

static void consider(struct match *best, struct kept *k, int n, int mark, bool used)
{
    /* of equal lengths an end is better than a mark, and an idle one better than one in use */
    int rank = n * 4 + (used ? 0 : mark < 0 ? 3 : 2);
    int best_rank = best->k ? best->n * 4 + (best->used ? 0 : best->mark < 0 ? 3 : 2) : 3;
    if (rank > best_rank)
        *best = (struct match){k, n, mark, used};
}

static struct match find(struct store *s, const struct weights_set *w, const struct conversation *v,
                         const struct chain *chain)
{
    struct match best = {0};
    for (struct kept *k = s->first; k; k = k->next)
        for (int n = v->chat.n; k->weights == w && n > 0 && n >= best.n; n--) {
            if (!can_stand_at(v, n))
                continue;
            if (!k->used && chain_equal(k->end, chain[n]))
                consider(&best, k, n, -1, false);
            for (int i = 0; i < STORE_POINTS; i++)
                if (k->marks[i].state && chain_equal(k->marks[i].at, chain[n]))
                    consider(&best, k, n, i, k->used);
            if (k->used && n == v->chat.n && chain_equal(k->coming, chain[n]))
                consider(&best, k, n, STORE_BEFORE_REPLY, true);
        }
    return best;
}

static struct kept *kept_new(struct store *s, struct weights_set *w, struct session *session,
                             struct chain coming)
{
    struct kept *k = xcalloc(1, sizeof *k);
    k->weights = weights_share(s->slot, w);
    k->session = session;
    k->coming = coming;
    k->used = true;
    pthread_mutex_lock(&s->lock);
    link_kept(s, k);
    pthread_mutex_unlock(&s->lock);
    return k;
}

/* A branch of an idle session, which was marked as used. */
static struct session *branch_idle(struct store *s, struct kept *k, int mark)
{
    struct err e = ERR_INIT;
    struct session *b = session_try_branch(k->session, k->marks[mark].state, &e);
    pthread_mutex_lock(&s->lock);
    k->used = false;
    dismiss_waiters(s, k);
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
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

static void forget_waiter(struct kept *k, const struct waiter *w)
{
    for (struct waiter **p = &k->waiters; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            atomic_fetch_sub(&k->n_waiters, 1);
            return;
        }
}

/* Asks the user of k for a branch; the caller has the lock.  NULL: none was given. */
static struct session *await_branch(struct store *s, struct kept *k, struct chain at,
                                    const volatile int *stop)
{
    struct waiter w = {.next = k->waiters, .at = at};
    k->waiters = &w;
    atomic_fetch_add(&k->n_waiters, 1);
    while (!w.done && !flag_up(stop))
        wait_briefly(s);
    if (!w.done)
        forget_waiter(k, &w); /* k lives as long as it has waiters */
    return w.got;
}

static void count_take(struct store *s, int64_t *counter)
{
    pthread_mutex_lock(&s->lock);
    ++*counter;
    pthread_mutex_unlock(&s->lock);
}

/* Takes what was found; NULL: look again. */
static struct kept *take_match(struct store *s, const struct match *m, struct weights_set *w,
                               const struct chain *chain, int n, const volatile int *stop)
{
    struct session *b;
    if (m->used) {
        b = await_branch(s, m->k, chain[m->n], stop);
        pthread_mutex_unlock(&s->lock);
    } else {
        m->k->used = true;
        pthread_mutex_unlock(&s->lock);
        if (m->mark < 0) {
            m->k->coming = chain[n];
            if (restore(s, m->k)) {
                count_take(s, &s->counts.continued);
                return m->k;
            }
            store_drop(s, m->k);
            return NULL;
        }
        b = branch_idle(s, m->k, m->mark);
    }
    if (!b)
        return NULL;
    count_take(s, &s->counts.branched);
    return kept_new(s, w, b, chain[n]);
}

struct kept *store_take(struct store *s, struct weights_set *w, const struct conversation *v,
                        const struct chain *chain, int *matched, const volatile int *stop)
{
    enum { TRIES = 4 };
    for (int i = 0; i < TRIES && !flag_up(stop); i++) {
        pthread_mutex_lock(&s->lock);
        struct match m = find(s, w, v, chain);
        if (!m.k) {
            pthread_mutex_unlock(&s->lock);
            break;
        }
        struct kept *k = take_match(s, &m, w, chain, v->chat.n, stop);
        *matched = m.n;
        if (k) {
            session_set_cancel(k->session, stop);
            return k;
        }
    }
    *matched = 0;
    if (flag_up(stop))
        return NULL;
    count_take(s, &s->counts.begun);
    struct kept *k = kept_new(s, w, session_new(w->engine, 0), chain[v->chat.n]);
    session_set_cancel(k->session, stop);
    return k;
}

struct session *kept_session(const struct kept *k)
{
    return k->session;
}

/* ---- in use ------------------------------------------------------------------------------------------ */

int store_mark(struct store *s, struct kept *k, enum store_point which, struct chain at, struct err *e)
{
    struct err full = ERR_INIT;
    struct checkpoint *state, *old;
    if (session_prefill(k->session, e))
        return -1;
    while (!(state = session_try_checkpoint(k->session, &full)))
        if (full.kind == ERR_STOPPED || !evict_any(s))
            break;
    if (!state && full.kind == ERR_STOPPED)
        return err_set(e, full.kind, "%s", full.text);
    pthread_mutex_lock(&s->lock);
    old = k->marks[which].state;
    k->marks[which] = (struct mark){at, state};
    pthread_mutex_unlock(&s->lock);
    checkpoint_free(old);
    return 0;
}

int store_rewind(struct kept *k, enum store_point which, struct chain *at, struct err *e)
{
    if (!k->marks[which].state)
        return err_set(e, ERR_ENV, "there is no checkpoint to go back to");
    *at = k->marks[which].at;
    return session_rewind(k->session, k->marks[which].state, e);
}

/* The first waiter that a mark of k serves, taken off its list; the caller has the lock. */
static struct waiter *next_waiter(struct kept *k, struct checkpoint **state)
{
    for (struct waiter *w = k->waiters; w; w = w->next)
        for (int i = 0; i < STORE_POINTS; i++)
            if (k->marks[i].state && chain_equal(k->marks[i].at, w->at)) {
                *state = k->marks[i].state;
                return w;
            }
    return NULL;
}

void store_serve(struct store *s, struct kept *k)
{
    if (!atomic_load(&k->n_waiters))
        return;
    for (;;) {
        struct checkpoint *state;
        struct err e = ERR_INIT;
        pthread_mutex_lock(&s->lock);
        struct waiter *w = next_waiter(k, &state);
        struct chain at = w ? w->at : (struct chain){0};
        pthread_mutex_unlock(&s->lock);
        if (!w)
            return;
        struct session *b = session_try_branch(k->session, state, &e);
        pthread_mutex_lock(&s->lock);
        w = NULL; /* it may have gone meanwhile */
        for (struct waiter *x = k->waiters; x && !w; x = x->next)
            w = chain_equal(x->at, at) ? x : NULL;
        if (w) {
            w->got = b;
            w->done = true;
            forget_waiter(k, w);
            pthread_cond_broadcast(&s->changed);
        }
        pthread_mutex_unlock(&s->lock);
        if (!w)
            session_free(b);
    }
}

void store_keep(struct store *s, struct kept *k, struct chain end)
{
    if (weights_version(s->slot) != k->weights->version) {
        store_drop(s, k);
        return;
    }
    struct engine *g = k->weights->engine;
    struct weights_set *w = weights_share(s->slot, k->weights);
    session_set_cancel(k->session, NULL);
    store_serve(s, k);
    pthread_mutex_lock(&s->lock);
    k->end = end;
    k->coming = (struct chain){0};
    k->last = ++s->clock;
    k->used = false;
    dismiss_waiters(s, k);
    pthread_mutex_unlock(&s->lock);
    hold_bounds(s, g);
    weights_release(s->slot, w);
}

void store_drop(struct store *s, struct kept *k)
{
    pthread_mutex_lock(&s->lock);
    unlink_kept(s, k);
    dismiss_waiters(s, k);
    pthread_mutex_unlock(&s->lock);
    if (k->session)
        session_set_cancel(k->session, NULL);
    free_kept(s, k);
}

struct store_counts store_counts(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    struct store_counts c = s->counts;
    c.idle = c.used = c.files = 0;
    for (const struct kept *k = s->first; k; k = k->next)
        ++*(k->used ? &c.used : k->session ? &c.idle : &c.files);
    pthread_mutex_unlock(&s->lock);
    return c;
}
