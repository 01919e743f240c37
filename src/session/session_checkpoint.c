/* session_checkpoint.c - checkpoint, rewind, fork (session.h, session_impl.h). */
#include "session/session_impl.h"

#include <stdlib.h>

struct checkpoint {
    struct engine *engine;
    struct pool_entry entry;
    uint64_t session;
    int64_t length;   /* tokens */
    int64_t computed; /* tokens with a state; the others are pending again after a rewind */
    int64_t position; /* rotary position of the next token */
    /* tokens whose updates the SSM states of the block lack (delayed state write-back) */
    int lag;
    uint32_t epoch;      /* epoch of the last token */
    struct tensor block; /* copy of the recurrent states */
    uint64_t random;
};

static void visit_tensors(void *owner, pool_entry_visit *fn, void *arg)
{
    struct checkpoint *c = owner;
    fn(arg, &c->block);
}

static const struct pool_entry_kind checkpoint_kind = {CHECKPOINT_RANK, visit_tensors, NULL};

/* ---- checkpoint and rewind ------------------------------------------------------------------- */

/* Copies the recurrent states of s, to host memory if the device has no space. Returns -1 with e. */
static int copy_block(struct checkpoint *c, const struct session *s, struct err *e)
{
    struct backend *b = session_backend(s);
    if (state_pool_alloc(&s->engine->state_pool, &c->block, e) == 0) {
        c->entry.spilled = false;
        b->ops->copy(b, c->block, s->state.now.block);
        return 0;
    }
    c->entry.host = b->ops->host_alloc ? b->ops->host_alloc(b, pool_entry_bytes(&c->entry)) : NULL;
    if (!c->entry.host)
        return -1;
    struct tensor host = c->block;
    host.data = c->entry.host;
    b->ops->download(b, host, s->state.now.block);
    return 0;
}

/* Creates a checkpoint of a pinned session without pending images. */
static struct checkpoint *checkpoint_of(const struct session *s, struct err *e)
{
    struct engine *g = s->engine;
    struct checkpoint *c = xcalloc(1, sizeof *c);
    *c = (struct checkpoint){.engine = g, .session = s->id, .length = s->n, .random = s->random};
    c->computed = s->state.length;
    c->position = s->state.position;
    c->lag = s->state.lag;
    c->epoch = s->n ? s->epochs[s->n - 1] : 0;
    c->block = s->state.now.block;
    c->block.data = NULL;
    pool_entry_init(&c->entry, &g->state_pool, &checkpoint_kind, c);
    c->entry.used = ++g->state_pool.clock;
    if (copy_block(c, s, e) == 0)
        return c;
    checkpoint_free(c);
    return NULL;
}

struct checkpoint *session_try_checkpoint(struct session *s, struct err *e)
{
    struct checkpoint *c = NULL;
    if (engine_try_enter(s->engine, &s->client, e))
        return NULL;
    if (session_prefill(s, e) == 0 && session_pin(s, 0, e) == 0) {
        c = checkpoint_of(s, e);
        session_unpin(s);
    }
    engine_leave(s->engine);
    return c;
}

struct checkpoint *session_try_bookmark(struct session *s, struct err *e)
{
    struct checkpoint *c = NULL;
    if (s->n_images)
        return session_try_checkpoint(s, e);
    if (engine_try_enter(s->engine, &s->client, e))
        return NULL;
    if (session_pin(s, 0, e) == 0) {
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
    session_check(c ? 0 : -1, &e);
    return c;
}

/* Copies a checkpoint into s, from the device or, if it is spilled, from host memory. */
static void restore(struct session *s, const struct checkpoint *c)
{
    struct backend *b = session_backend(s);
    struct tensor host = c->block;
    host.data = c->entry.host;
    if (c->entry.spilled)
        b->ops->upload(b, s->state.now.block, host);
    else
        b->ops->copy(b, s->state.now.block, c->block);
    s->state.position = c->position;
    s->state.lag = c->lag;
}

static int check_reachable(const struct session *s, const struct checkpoint *c, struct err *e)
{
    if (c->session != s->id)
        return err_set(e, ERR_FAILED, "the checkpoint belongs to another session");
    if (c->length > s->n || (c->length && s->epochs[c->length - 1] != c->epoch))
        return err_set(e, ERR_FAILED, "the session has been rewound to before this checkpoint");
    return 0;
}

static int rewind_to(struct session *s, struct checkpoint *c, struct err *e)
{
    if (pool_entry_pin(&s->entry, e)) /* may spill c, which can be restored from host memory */
        return -1;
    c->entry.used = ++s->engine->state_pool.clock;
    session_drop_images(s);
    restore(s, c);
    pool_entry_unpin(&s->entry);
    s->n = c->length;
    s->state.length = c->computed;
    s->random = c->random;
    s->logits_at = 0;
    s->interrupted = false;
    s->epoch++;
    return 0;
}

int session_rewind(struct session *s, const struct checkpoint *at, struct err *e)
{
    struct checkpoint *c =
        /* const to the caller: only its time of last use changes */
        (struct checkpoint *)(uintptr_t)at;
    if (check_reachable(s, c, e))
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

/* ---- copying --------------------------------------------------------------------------------- */

/* Returns a copy of the first `length` tokens of a pinned session and its KV cache. The recurrent states
 * come from c unless it is NULL. */
static struct session *copy_session(struct session *from, int64_t length, struct checkpoint *c, struct err *e)
{
    struct session *s = session_new(from->engine, c ? c->random : from->random);
    s->client.stop = from->client.stop;
    if (session_pin(s, length, e)) {
        session_free(s);
        return NULL;
    }
    struct lm_state part = from->state;
    part.length = c ? c->computed : length;
    for (int64_t i = 0; i < length; i++)
        session_push(s, from->tokens[i]);
    state_copy(&s->state, &part, session_lm(s), session_backend(s));
    if (c) {
        c->entry.used = ++s->engine->state_pool.clock;
        restore(s, c);
    }
    session_unpin(s);
    return s;
}

struct session *session_try_fork(const struct session *of, struct err *e)
{
    struct session *from = (struct session *)(uintptr_t)of, *s = NULL; /* const as in session_logits() */
    if (engine_try_enter(from->engine, &from->client, e))
        return NULL;
    if (session_prefill(from, e) == 0 && session_pin(from, 0, e) == 0) {
        s = copy_session(from, from->n, NULL, e);
        session_unpin(from);
    }
    engine_leave(from->engine);
    return s;
}

struct session *session_fork(const struct session *from)
{
    struct err e = ERR_INIT;
    struct session *s = session_try_fork(from, &e);
    session_check(s ? 0 : -1, &e);
    return s;
}

struct session *session_try_branch(const struct session *of, const struct checkpoint *at, struct err *e)
{
    struct session *from = (struct session *)(uintptr_t)of, *s = NULL;
    struct checkpoint *c = (struct checkpoint *)(uintptr_t)at;
    if (check_reachable(from, c, e) || engine_try_enter(from->engine, &from->client, e))
        return NULL;
    if (session_pin(from, 0, e) == 0) {
        s = copy_session(from, c->length, c, e);
        session_unpin(from);
    }
    engine_leave(from->engine);
    return s;
}
