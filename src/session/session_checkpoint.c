/* session_checkpoint.c - one timeline: keep a place, go back to it, copy.  See session.h and session_impl.h. */
#include "session/session_impl.h"

#include <stdlib.h>

struct checkpoint {
    struct engine *engine;
    struct pool_entry entry;
    uint64_t session;
    int64_t length;
    uint32_t epoch;     /* of the last token */
    struct tensor then; /* the block of the state */
    uint64_t random;
};

static const struct lm_config *lm(const struct session *s)
{
    return &s->engine->config.lm;
}

static struct backend *backend(const struct session *s)
{
    return s->engine->backend;
}

static void each_of_checkpoint(void *owner, pool_entry_visit *fn, void *arg)
{
    struct checkpoint *c = owner;
    fn(arg, &c->then);
}

static const struct pool_entry_kind checkpoint_kind = {CHECKPOINT_RANK, each_of_checkpoint, NULL};

/* ---- keeping ------------------------------------------------------------------------------------------------ */

/* A copy of s's block, here or, where there is no room, in the host's memory at once. */
static int keep(struct checkpoint *c, const struct session *s, struct err *e)
{
    struct backend *b = backend(s);
    if (state_pool_alloc(&s->engine->state_pool, &c->then, e) == 0) {
        c->entry.spilled = false;
        b->ops->copy(b, c->then, s->state.now.block);
        return 0;
    }
    c->entry.host = b->ops->host_alloc ? b->ops->host_alloc(b, pool_entry_bytes(&c->entry)) : NULL;
    if (!c->entry.host)
        return -1;
    struct tensor host = c->then;
    host.data = c->entry.host;
    b->ops->download(b, host, s->state.now.block);
    return 0;
}

/* Of a session that is held. */
static struct checkpoint *checkpoint_of(const struct session *s, struct err *e)
{
    struct engine *g = s->engine;
    struct checkpoint *c = xcalloc(1, sizeof *c);
    *c = (struct checkpoint){.engine = g, .session = s->id, .length = s->n, .random = s->random};
    c->epoch = s->n ? s->epochs[s->n - 1] : 0;
    c->then = s->state.now.block;
    c->then.data = NULL;
    pool_entry_init(&c->entry, &g->state_pool, &checkpoint_kind, c);
    c->entry.used = ++g->state_pool.clock;
    if (keep(c, s, e) == 0)
        return c;
    checkpoint_free(c);
    return NULL;
}

struct checkpoint *session_try_checkpoint(struct session *s, struct err *e)
{
    struct checkpoint *c = NULL;
    if (engine_try_enter(s->engine, &s->client, e))
        return NULL;
    if (session_read(s, e) == 0 && session_pin(s, 0, e) == 0) {
        c = checkpoint_of(s, e);
        session_unpin(s);
    }
    engine_leave(s->engine);
    return c;
}

struct checkpoint *session_checkpoint(struct session *s)
{
    struct err e = ERR_INIT;
    struct checkpoint *c = session_try_checkpoint(s, &e);
    session_must(c ? 0 : -1, &e);
    return c;
}

/* What a checkpoint has, into the session's block; from where it is. */
static void put_back(struct session *s, const struct checkpoint *c)
{
    struct backend *b = backend(s);
    struct tensor host = c->then;
    host.data = c->entry.host;
    if (c->entry.spilled)
        b->ops->upload(b, s->state.now.block, host);
    else
        b->ops->copy(b, s->state.now.block, c->then);
}

static int on_line(const struct session *s, const struct checkpoint *c, struct err *e)
{
    if (c->session != s->id)
        return err_set(e, ERR_FAILED, "the checkpoint is of another session");
    if (c->length > s->n || (c->length && s->epochs[c->length - 1] != c->epoch))
        return err_set(e, ERR_FAILED, "the session has been rewound to before this checkpoint");
    return 0;
}

static int rewind_to(struct session *s, struct checkpoint *c, struct err *e)
{
    if (pool_entry_pin(&s->entry, e)) /* which may send the checkpoint away: it goes back from there, too */
        return -1;
    c->entry.used = ++s->engine->state_pool.clock;
    session_drop_images(s);
    put_back(s, c);
    pool_entry_unpin(&s->entry);
    s->state.length = s->n = c->length;
    s->random = c->random;
    s->logits_at = 0;
    s->torn = false;
    s->epoch++;
    return 0;
}

int session_rewind(struct session *s, const struct checkpoint *look, struct err *e)
{
    struct checkpoint *c = (struct checkpoint *)(uintptr_t)look; /* that it was used is noted */
    if (on_line(s, c, e))
        return -1;
    engine_enter(s->engine, &s->client);
    int rc = rewind_to(s, c, e);
    engine_leave(s->engine);
    return rc;
}

int64_t checkpoint_length(const struct checkpoint *c)
{
    return c->length;
}

void checkpoint_free(struct checkpoint *c)
{
    if (!c)
        return;
    engine_enter(c->engine, NULL);
    pool_entry_free(&c->entry);
    engine_leave(c->engine);
    free(c);
}

/* ---- copying ------------------------------------------------------------------------------------------------- */

/* A session with the first `length` tokens of one that is held, and what its state has of them; that it is of that
 * position is the checkpoint's part, if there is one. */
static struct session *copy_of(struct session *from, int64_t length, struct checkpoint *c, struct err *e)
{
    struct session *s = session_new(from->engine, c ? c->random : from->random);
    s->client.stop = from->client.stop;
    if (session_pin(s, length, e)) {
        session_free(s);
        return NULL;
    }
    struct lm_state then = from->state;
    then.length = length;
    for (int64_t i = 0; i < length; i++)
        session_push(s, from->tokens[i]);
    state_copy(&s->state, &then, lm(s), backend(s));
    if (c) {
        c->entry.used = ++s->engine->state_pool.clock;
        put_back(s, c);
    }
    session_unpin(s);
    return s;
}

struct session *session_try_fork(const struct session *look, struct err *e)
{
    struct session *from = (struct session *)(uintptr_t)look, *s = NULL; /* computes what waits */
    if (engine_try_enter(from->engine, &from->client, e))
        return NULL;
    if (session_read(from, e) == 0 && session_pin(from, 0, e) == 0) {
        s = copy_of(from, from->n, NULL, e);
        session_unpin(from);
    }
    engine_leave(from->engine);
    return s;
}

struct session *session_fork(const struct session *from)
{
    struct err e = ERR_INIT;
    struct session *s = session_try_fork(from, &e);
    session_must(s ? 0 : -1, &e);
    return s;
}

struct session *session_try_branch(const struct session *look, const struct checkpoint *at, struct err *e)
{
    struct session *from = (struct session *)(uintptr_t)look, *s = NULL; /* comes here if it is away */
    struct checkpoint *c = (struct checkpoint *)(uintptr_t)at;
    if (on_line(from, c, e) || engine_try_enter(from->engine, &from->client, e))
        return NULL;
    if (session_pin(from, 0, e) == 0) {
        s = copy_of(from, c->length, c, e);
        session_unpin(from);
    }
    engine_leave(from->engine);
    return s;
}
