/* kept.c - see kept.h. */
#include "qa/run/kept.h"

#include "base/buf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    pthread_mutex_t lock;
    struct kept_desk {
        struct desk *desk;
        const struct test *of;
    } * list; /* [most], the oldest first */
    int n, most;
    const struct test **open; /* [n_open] that have not taken a desktop yet */
    int n_open;
};

struct kept *kept_new(int most, const struct results *r)
{
    struct kept *k = xcalloc(1, sizeof *k);
    k->open = xcalloc((size_t)r->n + 1, sizeof *k->open);
    for (int i = 0; i < r->n; i++)
        if (!r->results[i].n && r->results[i].test->reuse == REUSE_PROGRAM)
            k->open[k->n_open++] = r->results[i].test;
    k->most = most > 0 ? most : 1;
    k->list = xcalloc((size_t)k->most, sizeof *k->list);
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

void kept_free(struct kept *k)
{
    for (int i = 0; i < k->n; i++)
        desk_close(k->list[i].desk);
    pthread_mutex_destroy(&k->lock);
    free(k->list);
    free(k->open);
    free(k);
}

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Returns whether a test's variable is one of the program, too. A variable of a task, such as the id, which
 * each test has for itself, is one only if the commands of the program name it. */
static bool is_of_program(const struct test *t, const char *variable)
{
    if (strncmp(variable, "HOLORUN_VAR_", 12) != 0)
        return true;
    autofree char *name = xasprintf("%.*s", (int)strcspn(variable, "="), variable);
    return strstr(t->start, name) || (t->wm && strstr(t->wm, name));
}

const char **kept_env(const struct test *t)
{
    size_t n = 0, used = 0;
    while (t->env[n])
        n++;
    const char **env = xcalloc(n + 1, sizeof *env);
    for (size_t i = 0; i < n; i++)
        if (is_of_program(t, t->env[i]))
            env[used++] = t->env[i];
    return env;
}

static bool same_env(const struct test *a, const struct test *b)
{
    const char **x = kept_env(a), **y = kept_env(b);
    size_t i = 0;
    while (x[i] && y[i] && !strcmp(x[i], y[i]))
        i++;
    bool all = !x[i] && !y[i];
    free(x);
    free(y);
    return all;
}

static bool fits(const struct test *a, const struct test *b)
{
    return same(a->start, b->start) && same(a->display, b->display) && same(a->wm, b->wm) &&
           same(a->dir, b->dir) && a->elements == b->elements && same_env(a, b);
}

/* Removes an entry from the list. The caller holds the lock. */
static struct desk *remove_entry(struct kept *k, int i)
{
    struct desk *d = k->list[i].desk;
    memmove(k->list + i, k->list + i + 1, (size_t)(--k->n - i) * sizeof *k->list);
    return d;
}

/* Returns whether a further test can take the desktop of this one. The caller holds the lock. */
static bool is_needed(const struct kept *k, const struct test *of)
{
    for (int i = 0; i < k->n_open; i++)
        if (fits(of, k->open[i]))
            return true;
    return false;
}

/* Removes a desktop that no further test can take; NULL: there is none. The caller holds the lock. */
static struct desk *remove_unneeded(struct kept *k)
{
    for (int i = 0; i < k->n; i++)
        if (!is_needed(k, k->list[i].of))
            return remove_entry(k, i);
    return NULL;
}

static void close_unneeded(struct kept *k)
{
    struct desk *d;
    do {
        pthread_mutex_lock(&k->lock);
        d = remove_unneeded(k);
        pthread_mutex_unlock(&k->lock);
        desk_close(d);
    } while (d);
}

struct desk *kept_take(struct kept *k, const struct test *t, const struct test **from)
{
    struct desk *d = NULL;
    pthread_mutex_lock(&k->lock);
    for (int i = k->n; i-- > 0 && !d;)
        if (fits(k->list[i].of, t)) {
            *from = k->list[i].of;
            d = remove_entry(k, i);
        }
    for (int i = 0; i < k->n_open; i++)
        if (k->open[i] == t)
            k->open[i] = k->open[--k->n_open];
    pthread_mutex_unlock(&k->lock);
    close_unneeded(k);
    char what[8];
    if (!d || desk_state(d, what, sizeof what) == DESK_OK)
        return d;
    desk_close(d); /* its program has ended meanwhile */
    *from = NULL;
    return NULL;
}

void kept_give(struct kept *k, struct desk *d, const struct test *t)
{
    struct desk *unneeded = d;
    pthread_mutex_lock(&k->lock);
    if (is_needed(k, t)) {
        unneeded = k->n == k->most ? remove_entry(k, 0) : NULL;
        k->list[k->n++] = (struct kept_desk){d, t};
    }
    pthread_mutex_unlock(&k->lock);
    desk_close(unneeded);
}
