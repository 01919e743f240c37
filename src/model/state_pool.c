/* state_pool.c - limit on the memory of states, with spilling to host memory (state_pool.h). */
#include "model/state_pool.h"

enum { HOST_ALIGN = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + HOST_ALIGN - 1) / HOST_ALIGN * HOST_ALIGN;
}

/* ---- tensors of an entry ------------------------------------------------------------------------------- */

static void add_bytes(void *arg, struct tensor *t)
{
    *(size_t *)arg += tensor_bytes(*t);
}

static void add_aligned(void *arg, struct tensor *t)
{
    *(size_t *)arg += aligned(tensor_bytes(*t));
}

size_t pool_entry_bytes(const struct pool_entry *t)
{
    size_t bytes = 0;
    t->kind->visit(t->owner, add_bytes, &bytes);
    return bytes;
}

struct transfer {
    struct state_pool *pool;
    char *at; /* host address of the next tensor */
    bool restore;
    struct err *e;
    int rc;
};

static struct tensor on_host(struct transfer *c, const struct tensor *t)
{
    struct tensor host = {c->at, t->dtype, t->rows, t->cols, t->cols};
    c->at += aligned(tensor_bytes(*t));
    return host;
}

static void transfer_tensor(void *arg, struct tensor *t)
{
    struct transfer *c = arg;
    struct backend *b = c->pool->backend;
    if (!tensor_bytes(*t))
        return;
    if (c->restore)
        b->ops->upload(b, *t, on_host(c, t));
    else
        b->ops->download(b, on_host(c, t), *t);
}

static void alloc_tensor(void *arg, struct tensor *t)
{
    struct transfer *c = arg;
    if (c->rc == 0 && tensor_bytes(*t))
        c->rc = state_pool_alloc(c->pool, t, c->e);
}

static void free_tensor(void *arg, struct tensor *t)
{
    state_pool_free(arg, t);
}

/* ---- spill and restore --------------------------------------------------------------------------------- */

int pool_entry_spill(struct pool_entry *t)
{
    struct state_pool *r = t->pool;
    struct backend *b = r->backend;
    if (t->spilled || t->pins || !b->ops->host_alloc)
        return -1;
    size_t bytes = 0;
    t->kind->visit(t->owner, add_aligned, &bytes);
    t->host = b->ops->host_alloc(b, bytes);
    if (!t->host)
        return -1;
    t->kind->visit(t->owner, transfer_tensor, &(struct transfer){.pool = r, .at = t->host});
    t->kind->visit(t->owner, free_tensor, r);
    t->spilled = true;
    r->spilled++;
    return 0;
}

static void free_host(struct pool_entry *t)
{
    if (t->host)
        t->pool->backend->ops->host_free(t->pool->backend, t->host);
    t->host = NULL;
}

static int restore(struct pool_entry *t, struct err *e)
{
    struct state_pool *r = t->pool;
    struct transfer c = {.pool = r, .e = e};
    if (state_pool_reserve(r, pool_entry_bytes(t), e))
        return -1;
    t->kind->visit(t->owner, alloc_tensor, &c);
    if (c.rc) {
        t->kind->visit(t->owner, free_tensor, r);
        return -1;
    }
    if (t->host) {
        t->kind->visit(t->owner, transfer_tensor,
                       &(struct transfer){.pool = r, .at = t->host, .restore = true});
        r->restored++;
    }
    free_host(t);
    t->spilled = false;
    if (t->kind->restored)
        t->kind->restored(t->owner);
    return 0;
}

int pool_entry_pin(struct pool_entry *t, struct err *e)
{
    t->used = ++t->pool->clock;
    t->pins++;
    if (!t->spilled || restore(t, e) == 0)
        return 0;
    t->pins--;
    return -1;
}

void pool_entry_unpin(struct pool_entry *t)
{
    if (t->pins-- <= 0)
        bug("unpinned more often than pinned");
}

void pool_entry_init(struct pool_entry *t, struct state_pool *r, const struct pool_entry_kind *kind,
                     void *owner)
{
    *t = (struct pool_entry){.kind = kind, .owner = owner, .pool = r, .next = r->first, .spilled = true};
    if (r->first)
        r->first->prev = t;
    r->first = t;
}

void pool_entry_free(struct pool_entry *t)
{
    t->kind->visit(t->owner, free_tensor, t->pool);
    free_host(t);
    if (t->next)
        t->next->prev = t->prev;
    *(t->prev ? &t->prev->next : &t->pool->first) = t->next;
}

/* ---- the limit ----------------------------------------------------------------------------------------- */

/* Returns the entry to spill next (idle, lowest rank, least recently used), or NULL. */
static struct pool_entry *least_recent(const struct state_pool *r)
{
    struct pool_entry *best = NULL;
    for (struct pool_entry *t = r->first; t; t = t->next)
        if (!t->spilled && !t->pins &&
            (!best || t->kind->rank < best->kind->rank ||
             (t->kind->rank == best->kind->rank && t->used < best->used)))
            best = t;
    return best;
}

size_t state_pool_left(const struct state_pool *r)
{
    size_t pinned = 0;
    if (!r->bound)
        return SIZE_MAX;
    for (const struct pool_entry *t = r->first; t; t = t->next)
        if (!t->spilled && (t->pins || !r->backend->ops->host_alloc))
            pinned += pool_entry_bytes(t);
    return r->bound < pinned ? 0 : r->bound - pinned;
}

static int refuse(const struct state_pool *r, size_t bytes, const char *of, struct err *e)
{
    double mib = 1 << 20;
    return err_set(e, ERR_ENV,
                   "not enough memory for %.2f MiB of a session's state: %.2f of %.2f MiB of %s are in use; "
                   "use fewer sessions or raise --state-memory",
                   (double)bytes / mib, (double)r->used / mib, (double)(r->bound ? r->bound : r->used) / mib,
                   of);
}

int state_pool_reserve(struct state_pool *r, size_t bytes, struct err *e)
{
    if (!r->bound || r->used + bytes <= r->bound)
        return 0;
    if (bytes > state_pool_left(r))
        return refuse(r, bytes, "state memory", e);
    while (r->used + bytes > r->bound) {
        struct pool_entry *t = least_recent(r);
        if (!t || pool_entry_spill(t))
            return refuse(r, bytes, "state memory", e);
    }
    return 0;
}

int state_pool_alloc(struct state_pool *r, struct tensor *t, struct err *e)
{
    struct backend *b = r->backend;
    size_t bytes = tensor_bytes(*t);
    t->data = NULL;
    if (state_pool_reserve(r, bytes, e))
        return -1;
    for (;;) { /* device memory may run out before the limit is reached */
        struct tensor got = b->ops->try_alloc(b, t->dtype, t->rows, t->cols);
        if (got.data) {
            *t = got;
            break;
        }
        struct pool_entry *idle = least_recent(r);
        if (!idle || pool_entry_spill(idle))
            return refuse(r, bytes, "the device", e);
    }
    r->used += bytes;
    r->most = r->used > r->most ? r->used : r->most;
    return 0;
}

void state_pool_free(struct state_pool *r, struct tensor *t)
{
    if (!t->data)
        return;
    struct tensor gone = *t;
    r->used -= tensor_bytes(*t);
    r->backend->ops->free(r->backend, &gone);
    t->data = NULL;
}
