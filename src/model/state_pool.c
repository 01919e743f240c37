/* state_pool.c - see state_pool.h. */
#include "model/state_pool.h"

#include <string.h>

enum { HOST_ALIGN = 64 };

static size_t bytes_of(const struct tensor *t)
{
    return (size_t)t->rows * (size_t)t->cols * dtype_size(t->dtype);
}

static size_t aligned(size_t bytes)
{
    return (bytes + HOST_ALIGN - 1) / HOST_ALIGN * HOST_ALIGN;
}

/* ---- a tenant's tensors -------------------------------------------------------------------------------- */

static void add_bytes(void *arg, struct tensor *t)
{
    *(size_t *)arg += bytes_of(t);
}

static void add_aligned(void *arg, struct tensor *t)
{
    *(size_t *)arg += aligned(bytes_of(t));
}

size_t tenant_bytes(const struct tenant *t)
{
    size_t bytes = 0;
    t->kind->each(t->owner, add_bytes, &bytes);
    return bytes;
}

struct carrying {
    struct room *room;
    char *at; /* where the next one lies on the host */
    bool up;
    struct err *e;
    int rc;
};

static struct tensor on_host(struct carrying *c, const struct tensor *t)
{
    struct tensor host = {c->at, t->dtype, t->rows, t->cols, t->cols};
    c->at += aligned(bytes_of(t));
    return host;
}

static void carry(void *arg, struct tensor *t)
{
    struct carrying *c = arg;
    struct backend *b = c->room->backend;
    if (!bytes_of(t))
        return;
    if (c->up)
        b->ops->upload(b, *t, on_host(c, t));
    else
        b->ops->download(b, on_host(c, t), *t);
}

static void take(void *arg, struct tensor *t)
{
    struct carrying *c = arg;
    if (c->rc == 0 && bytes_of(t))
        c->rc = room_alloc(c->room, t, c->e);
}

static void give(void *arg, struct tensor *t)
{
    room_free(arg, t);
}

/* ---- going and coming back ----------------------------------------------------------------------------- */

int tenant_spill(struct tenant *t)
{
    struct room *r = t->room;
    struct backend *b = r->backend;
    if (t->away || t->busy || !b->ops->host_alloc)
        return -1;
    size_t bytes = 0;
    t->kind->each(t->owner, add_aligned, &bytes);
    t->host = b->ops->host_alloc(b, bytes);
    if (!t->host)
        return -1;
    t->kind->each(t->owner, carry, &(struct carrying){.room = r, .at = t->host});
    t->kind->each(t->owner, give, r);
    t->away = true;
    r->spilled++;
    return 0;
}

static void forget(struct tenant *t)
{
    if (t->host)
        t->room->backend->ops->host_free(t->room->backend, t->host);
    t->host = NULL;
}

static int come_back(struct tenant *t, struct err *e)
{
    struct room *r = t->room;
    struct carrying c = {.room = r, .e = e};
    if (room_make(r, tenant_bytes(t), e))
        return -1;
    t->kind->each(t->owner, take, &c);
    if (c.rc) {
        t->kind->each(t->owner, give, r);
        return -1;
    }
    if (t->host) {
        t->kind->each(t->owner, carry, &(struct carrying){.room = r, .at = t->host, .up = true});
        r->restored++;
    }
    forget(t);
    t->away = false;
    if (t->kind->back)
        t->kind->back(t->owner);
    return 0;
}

int tenant_enter(struct tenant *t, struct err *e)
{
    t->used = ++t->room->clock;
    t->busy++;
    if (!t->away || come_back(t, e) == 0)
        return 0;
    t->busy--;
    return -1;
}

void tenant_leave(struct tenant *t)
{
    if (t->busy-- <= 0)
        bug("a session is left that nobody is in");
}

void tenant_init(struct tenant *t, struct room *r, const struct tenant_kind *kind, void *owner)
{
    *t = (struct tenant){.kind = kind, .owner = owner, .room = r, .next = r->first, .away = true};
    if (r->first)
        r->first->prev = t;
    r->first = t;
}

void tenant_free(struct tenant *t)
{
    t->kind->each(t->owner, give, t->room);
    forget(t);
    if (t->next)
        t->next->prev = t->prev;
    *(t->prev ? &t->prev->next : &t->room->first) = t->next;
}

/* ---- the bound ------------------------------------------------------------------------------------------- */

/* Whoever is idle for longest among those that go first; NULL: nobody can go. */
static struct tenant *next_to_go(const struct room *r)
{
    struct tenant *best = NULL;
    for (struct tenant *t = r->first; t; t = t->next)
        if (!t->away && !t->busy &&
            (!best || t->kind->rank < best->kind->rank ||
             (t->kind->rank == best->kind->rank && t->used < best->used)))
            best = t;
    return best;
}

size_t room_left(const struct room *r)
{
    size_t held = 0;
    if (!r->bound)
        return SIZE_MAX;
    for (const struct tenant *t = r->first; t; t = t->next)
        if (!t->away && (t->busy || !r->backend->ops->host_alloc))
            held += tenant_bytes(t);
    return r->bound < held ? 0 : r->bound - held;
}

static int refuse(const struct room *r, size_t bytes, const char *of, struct err *e)
{
    double mib = 1 << 20;
    return err_set(e, ERR_ENV,
                   "no room for %.2f MiB of a session's state: %.2f of %.2f MiB of %s are in use; have fewer "
                   "at once, or more with --state-memory",
                   (double)bytes / mib, (double)r->used / mib, (double)(r->bound ? r->bound : r->used) / mib,
                   of);
}

int room_make(struct room *r, size_t bytes, struct err *e)
{
    if (!r->bound || r->used + bytes <= r->bound)
        return 0;
    if (bytes > room_left(r))
        return refuse(r, bytes, "state memory", e);
    while (r->used + bytes > r->bound) {
        struct tenant *t = next_to_go(r);
        if (!t || tenant_spill(t))
            return refuse(r, bytes, "state memory", e);
    }
    return 0;
}

int room_alloc(struct room *r, struct tensor *t, struct err *e)
{
    struct backend *b = r->backend;
    size_t bytes = bytes_of(t);
    t->data = NULL;
    if (room_make(r, bytes, e))
        return -1;
    for (;;) { /* the memory itself may be at its end before the bound is */
        struct tensor got =
            (b->ops->try_alloc ? b->ops->try_alloc : b->ops->alloc)(b, t->dtype, t->rows, t->cols);
        if (got.data) {
            *t = got;
            break;
        }
        struct tenant *idle = next_to_go(r);
        if (!idle || tenant_spill(idle))
            return refuse(r, bytes, "the device", e);
    }
    r->used += bytes;
    r->most = r->used > r->most ? r->used : r->most;
    return 0;
}

void room_free(struct room *r, struct tensor *t)
{
    if (!t->data)
        return;
    struct tensor gone = *t;
    r->used -= bytes_of(t);
    r->backend->ops->free(r->backend, &gone);
    t->data = NULL;
}
