/* store.c - the cache of sessions; see store.h.
 *
 * One lock guards the list and the lookup keys. A session is accessed only by its user. An idle session that
 * is branched, saved or freed is marked as used meanwhile, and this is done without the lock, because it
 * waits for the engine. */
#include "serve/store_impl.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/lock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct store *store_new(struct weights_slot *w, const struct store_options *o)
{
    struct store *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->slot = w;
    s->o = *o;
    return s;
}

/* ---- the list; the caller holds the lock ------------------------------------------------------------- */

void store_link(struct store *s, struct cached_session *k)
{
    k->prev = NULL;
    k->next = s->first;
    if (s->first)
        s->first->prev = k;
    s->first = k;
}

static void store_unlink(struct store *s, struct cached_session *k)
{
    *(k->prev ? &k->prev->next : &s->first) = k->next;
    if (k->next)
        k->next->prev = k->prev;
}

void store_wake_waiters(struct store *s, struct cached_session *k)
{
    for (struct waiter *w = k->waiters; w; w = w->next)
        w->done = true;
    k->waiters = NULL;
    atomic_store(&k->n_waiters, 0);
    pthread_cond_broadcast(&s->changed);
}

void store_unlink_waiter(struct cached_session *k, const struct waiter *w)
{
    for (struct waiter **p = &k->waiters; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            atomic_fetch_sub(&k->n_waiters, 1);
            return;
        }
}

/* ---- eviction; without the lock ---------------------------------------------------------------------- */

static bool free_marks(struct store *s, struct cached_session *k)
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

/* Frees an unlinked session and its file. */
static void cached_free(struct store *s, struct cached_session *k)
{
    free_marks(s, k);
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
        struct cached_session *k = s->first;
        while (k && k->used)
            k = k->next;
        if (k)
            store_unlink(s, k);
        pthread_mutex_unlock(&s->lock);
        if (!k)
            return;
        cached_free(s, k);
    }
}

void store_free(struct store *s)
{
    if (!s)
        return;
    store_flush(s);
    if (s->first)
        bug("a session is in use at the end");
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool has_marks(const struct cached_session *k)
{
    for (int i = 0; i < STORE_POINTS; i++)
        if (k->marks[i].state)
            return true;
    return false;
}

enum victim { VICTIM_MARKS, VICTIM_SESSION, VICTIM_FILE };

/* Returns the least recently used idle session with something to evict, marked as used. The caller holds the
 * lock. */
static struct cached_session *pick_victim(struct store *s, enum victim what)
{
    struct cached_session *oldest = NULL;
    for (struct cached_session *k = s->first; k; k = k->next) {
        bool has = what == VICTIM_FILE ? !k->session : k->session && (what == VICTIM_SESSION || has_marks(k));
        if (!k->used && has && (!oldest || k->last < oldest->last))
            oldest = k;
    }
    if (oldest)
        oldest->used = oldest->temporary = true;
    return oldest;
}

/* Saves an idle session without checkpoints to a file. Returns -1 if that failed. */
static int spill(struct store *s, struct cached_session *k)
{
    struct err e = ERR_INIT;
    if (!s->o.spill)
        return -1;
    pthread_mutex_lock(&s->lock);
    char *file = xasprintf("%s/%d-%llu.state", s->o.spill, (int)getpid(), (unsigned long long)++s->files);
    pthread_mutex_unlock(&s->lock);
    if (session_save(k->session, file, &e)) {
        warn("cannot save an idle session to a file: %s", e.text);
        free(file);
        return -1;
    }
    session_free(k->session);
    k->session = NULL;
    k->file = file;
    return 0;
}

/* Evicts one item. Returns false if there was none. */
static bool evict(struct store *s, enum victim what)
{
    pthread_mutex_lock(&s->lock);
    struct cached_session *k = pick_victim(s, what);
    pthread_mutex_unlock(&s->lock);
    if (!k)
        return false;
    free_marks(s, k);
    bool stays = what == VICTIM_MARKS || (what == VICTIM_SESSION && spill(s, k) == 0);
    pthread_mutex_lock(&s->lock);
    s->counts.spilled += stays && what == VICTIM_SESSION;
    s->counts.evicted += !stays;
    k->used = k->temporary = false;
    if (!stays)
        store_unlink(s, k);
    store_wake_waiters(s, k);
    pthread_mutex_unlock(&s->lock);
    if (!stays)
        cached_free(s, k);
    return true;
}

static bool evict_any(struct store *s)
{
    return evict(s, VICTIM_MARKS) || evict(s, VICTIM_SESSION);
}

static void count_idle(struct store *s, int *sessions, int *files)
{
    LOCKED(&s->lock);
    *sessions = *files = 0;
    for (const struct cached_session *k = s->first; k; k = k->next)
        *(k->session ? sessions : files) += !k->used;
}

/* Enforces the limits after a session has become idle. */
static void enforce_limits(struct store *s, struct engine *g)
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

int store_reserve(struct store *s, struct cached_session *k, int64_t tokens, struct err *e)
{
    while (!session_fits(k->session, tokens))
        if (!evict_any(s) && !free_marks(s, k))
            return err_set(e, ERR_ENV, "out of memory for the state of %lld more tokens", (long long)tokens);
    return 0;
}

struct session *cached_session(const struct cached_session *k)
{
    return k->session;
}

/* ---- in use ------------------------------------------------------------------------------------------ */

int store_mark(struct store *s, struct cached_session *k, enum store_point which, struct prefix_hash at,
               struct err *e)
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

int store_rewind(struct cached_session *k, struct prefix_hash *at, struct err *e)
{
    const struct mark *m = &k->marks[STORE_BEFORE_REPLY];
    if (!m->state)
        return err_set(e, ERR_ENV, "cannot rewind: the session has no such checkpoint");
    *at = m->at;
    return session_rewind(k->session, m->state, e);
}

/* Returns the first waiter that a checkpoint of k matches, and its state. The caller holds the lock. */
static struct waiter *next_waiter(struct cached_session *k, struct checkpoint **state)
{
    for (struct waiter *w = k->waiters; w; w = w->next)
        for (int i = 0; i < STORE_POINTS; i++)
            if (k->marks[i].state && prefix_hash_equal(k->marks[i].at, w->at)) {
                *state = k->marks[i].state;
                return w;
            }
    return NULL;
}

void store_serve(struct store *s, struct cached_session *k)
{
    if (!atomic_load(&k->n_waiters))
        return;
    for (;;) {
        struct checkpoint *state;
        struct err e = ERR_INIT;
        pthread_mutex_lock(&s->lock);
        struct waiter *w = next_waiter(k, &state);
        struct prefix_hash at = w ? w->at : (struct prefix_hash){0};
        pthread_mutex_unlock(&s->lock);
        if (!w)
            return;
        struct session *b = session_try_branch(k->session, state, &e);
        pthread_mutex_lock(&s->lock);
        w = NULL; /* the waiter may have gone meanwhile */
        for (struct waiter *x = k->waiters; x && !w; x = x->next)
            w = prefix_hash_equal(x->at, at) ? x : NULL;
        if (w) {
            w->got = b;
            w->done = true;
            store_unlink_waiter(k, w);
            pthread_cond_broadcast(&s->changed);
        }
        pthread_mutex_unlock(&s->lock);
        if (!w)
            session_free(b);
    }
}

void store_pause(struct store *s, struct cached_session *k, bool paused)
{
    LOCKED(&s->lock);
    k->paused = paused;
    if (paused)
        store_wake_waiters(s, k);
}

void store_release(struct store *s, struct cached_session *k, struct prefix_hash end)
{
    if (weights_version(s->slot) != k->weights->version) {
        store_discard(s, k);
        return;
    }
    struct engine *g = k->weights->engine;
    struct weights_set *w = weights_share(s->slot, k->weights);
    session_set_cancel(k->session, NULL);
    store_serve(s, k);
    pthread_mutex_lock(&s->lock);
    k->end = end;
    k->target = (struct prefix_hash){0};
    k->last = ++s->clock;
    k->used = false;
    store_wake_waiters(s, k);
    pthread_mutex_unlock(&s->lock);
    enforce_limits(s, g);
    weights_release(s->slot, w);
}

void store_discard(struct store *s, struct cached_session *k)
{
    pthread_mutex_lock(&s->lock);
    store_unlink(s, k);
    store_wake_waiters(s, k);
    pthread_mutex_unlock(&s->lock);
    if (k->session)
        session_set_cancel(k->session, NULL);
    cached_free(s, k);
}

struct store_counts store_counts(struct store *s)
{
    LOCKED(&s->lock);
    struct store_counts c = s->counts;
    c.idle = c.used = c.files = 0;
    for (const struct cached_session *k = s->first; k; k = k->next)
        ++*(k->used ? &c.used : k->session ? &c.idle : &c.files);
    return c;
}
