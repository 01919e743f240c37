/* tree.c - the elements of the host's display, for errands and client-driven runs; see private.h. */
#include "host/private.h"

#include "base/lock.h"
#include "base/pool.h"
#include "gate/masked.h"
#include "run/place.h"

#include <stdlib.h>
#include <string.h>

enum { READ_MS = 1500 };

struct tree {
    struct host *host;
    pthread_mutex_t use; /* held between tree_read() and tree_done() */
    struct refs *refs;
    char *seen, *seen_window; /* what the client saw last, and its scope */
    bool seen_all;
    struct masked shown; /* the last read */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    pthread_t thread;
    bool started, closing;
    const struct elements_scope *wanted; /* scope to be read; NULL: nothing is to be done */
    const struct snapshot *got;
    struct err why;
};

struct tree *tree_new(struct host *h)
{
    struct tree *t = xcalloc(1, sizeof *t);
    t->host = h;
    t->refs = refs_new();
    pthread_mutex_init(&t->use, NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    return t;
}

void tree_free(struct tree *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->closing = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->started)
        pthread_join(t->thread, NULL);
    refs_free(t->refs);
    free(t->seen);
    free(t->seen_window);
    pthread_mutex_destroy(&t->use);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t);
}

/* ---- the reader's thread ------------------------------------------------------------------------------- */

/* Serves one read after the other.  A failed reader may start again at the next read: the bus may be back. */
static void *tree_main(void *arg)
{
    struct tree *t = arg;
    struct elements *x = elements_open(t->host->settings->display);
    pthread_mutex_lock(&t->lock);
    while (!t->closing) {
        if (!t->wanted || t->got || t->why.kind) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        const struct elements_scope *s = t->wanted;
        const struct snapshot *got = NULL;
        struct err why = ERR_INIT;
        pthread_mutex_unlock(&t->lock);
        if (elements_snapshot(x, s, READ_MS, &got, &why)) {
            got = NULL;
            elements_retry(x);
        }
        pthread_mutex_lock(&t->lock);
        t->got = got;
        t->why = why;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    elements_close(x);
    return NULL;
}

/* Has the thread read a scope.  Returns NULL with e. */
static const struct snapshot *read_scope(struct tree *t, const struct elements_scope *s, struct err *e)
{
    int rc = 0;
    LOCKED(&t->lock);
    if (!t->started)
        rc = thread_start(&t->thread, 0, tree_main, t);
    t->started = t->started || rc == 0;
    t->got = NULL;
    t->why = (struct err)ERR_INIT;
    t->wanted = s;
    pthread_cond_broadcast(&t->changed);
    while (rc == 0 && !t->got && !t->why.kind)
        pthread_cond_wait(&t->changed, &t->lock);
    t->wanted = NULL;
    const struct snapshot *got = t->got;
    if (rc)
        err_set(e, ERR_ENV, "cannot start a thread: %s", strerror(rc));
    else if (!got)
        err_set(e, t->why.kind, "%s", t->why.text);
    return got;
}

static char *mask_text(const void *host, const char *text)
{
    return host_mask(host, text);
}

/* Copies the last read to t->shown, without secrets and hidden zones.  Returns -1 with e. */
static int mask(struct tree *t, const struct snapshot *s, struct screen *screen, struct err *e)
{
    const struct masked_by by = {.mask = t->host->n_secrets ? mask_text : NULL,
                                 .arg = t->host,
                                 .hide = t->host->settings->hide,
                                 .root = screen_root(screen)};
    return masked_copy(&t->shown, s, &by, e);
}

/* ---- the interface ------------------------------------------------------------------------------------- */

const struct snapshot *tree_read(struct tree *t, const struct elements_scope *s, struct screen *screen,
                                 struct err *e)
{
    if (!t->host->settings || !t->host->settings->elements) {
        err_set(e, ERR_USAGE, "this server reads no elements (--no-elements): use screenshot");
        return NULL;
    }
    pthread_mutex_lock(&t->use);
    const struct elements_scope seen = {.window = t->seen_window, .all = t->seen_all};
    const struct snapshot *got = read_scope(t, s ? s : &seen, e);
    if (got && mask(t, got, screen, e) == 0)
        return &t->shown.s;
    masked_free(&t->shown);
    pthread_mutex_unlock(&t->use);
    return NULL;
}

void tree_done(struct tree *t)
{
    masked_free(&t->shown);
    pthread_mutex_unlock(&t->use);
}

struct refs *tree_refs(struct tree *t)
{
    return t->refs;
}

void tree_see(struct tree *t, const char *text, const struct elements_scope *s)
{
    free(t->seen);
    t->seen = xstrdup(text);
    if (!s)
        return;
    free(t->seen_window);
    t->seen_window = s->window ? xstrdup(s->window) : NULL;
    t->seen_all = s->all;
}

const char *tree_seen(const struct tree *t)
{
    return t->seen;
}
