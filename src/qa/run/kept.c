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
};

struct kept *kept_new(int most)
{
    struct kept *k = xcalloc(1, sizeof *k);
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
    free(k);
}

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Returns the next variable that a suite or test gives, and moves *env behind it; NULL: none. The others hold
 * the variables of tasks, such as the id, which each test has for itself. */
static const char *next_given(const char *const **env)
{
    while (**env && !strncmp(**env, "HOLORUN_VAR_", 12))
        ++*env;
    return **env ? *(*env)++ : NULL;
}

static bool same_env(const char *const *a, const char *const *b)
{
    for (;;) {
        const char *x = next_given(&a), *y = next_given(&b);
        if (!x || !y || strcmp(x, y) != 0)
            return x == y;
    }
}

static bool fits(const struct test *a, const struct test *b)
{
    return same(a->start, b->start) && same(a->display, b->display) && same(a->wm, b->wm) &&
           same(a->dir, b->dir) && a->elements == b->elements && same_env(a->env, b->env);
}

/* Removes an entry from the list. The caller holds the lock. */
static struct desk *remove_entry(struct kept *k, int i)
{
    struct desk *d = k->list[i].desk;
    memmove(k->list + i, k->list + i + 1, (size_t)(--k->n - i) * sizeof *k->list);
    return d;
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
    pthread_mutex_unlock(&k->lock);
    char what[8];
    if (!d || desk_state(d, what, sizeof what) == DESK_OK)
        return d;
    desk_close(d); /* its program has ended meanwhile */
    *from = NULL;
    return NULL;
}

void kept_give(struct kept *k, struct desk *d, const struct test *t)
{
    pthread_mutex_lock(&k->lock);
    struct desk *oldest = k->n == k->most ? remove_entry(k, 0) : NULL;
    k->list[k->n++] = (struct kept_desk){d, t};
    pthread_mutex_unlock(&k->lock);
    desk_close(oldest);
}
