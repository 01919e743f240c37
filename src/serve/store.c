/* store.c - see store.h.
 *
 * One lock guards the list and what it is searched by.  A session is touched by its user alone; an idle one
 * that is branched, saved or freed is marked as used meanwhile, and that happens without the lock, because
 * it waits for the engine.
 */
#include "serve/store_impl.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/flag.h"

#include <pthread.h>
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

/* ---- the list; the caller has the lock ----------------------------------------------------------- */

void store_link(struct store *s, struct kept *k)
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

void store_dismiss(struct store *s, struct kept *k)
{
    for (struct waiter *w = k->waiters; w; w = w->next)
        w->done = true;
    k->waiters = NULL;
    atomic_store(&k->n_waiters, 0);
    pthread_cond_broadcast(&s->changed);
}

void store_forget(struct kept *k, const struct waiter *w)
{
    for (struct waiter **p = &k->waiters; *p; p = &(*p)->next)
        if (*p == w) {
            *p = w->next;
            atomic_fetch_sub(&k->n_waiters, 1);
            return;
        }
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
    for (int i = 0; i < STORE_POINTS; i++)
        if (k->marks[i].state)
            return true;
    return false;
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
        oldest->used = oldest->lent = true;
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
    k->used = k->lent = false;
    if (!stays)
        unlink_kept(s, k);
    store_dismiss(s, k);
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
            store_forget(k, w);
            pthread_cond_broadcast(&s->changed);
        }
        pthread_mutex_unlock(&s->lock);
        if (!w)
            session_free(b);
    }
}

void store_rest(struct store *s, struct kept *k, bool rests)
{
    pthread_mutex_lock(&s->lock);
    k->rests = rests;
    if (rests)
        store_dismiss(s, k);
    pthread_mutex_unlock(&s->lock);
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
    store_dismiss(s, k);
    pthread_mutex_unlock(&s->lock);
    hold_bounds(s, g);
    weights_release(s->slot, w);
}

void store_drop(struct store *s, struct kept *k)
{
    pthread_mutex_lock(&s->lock);
    unlink_kept(s, k);
    store_dismiss(s, k);
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
