/* session.c - one timeline: append, look, go back, copy.  See model.h and session.h. */
#include "model/session.h"

#include "base/clock.h"
#include "model/preprocess.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint {
    struct engine *engine;
    struct tenant home;
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

/* ---- memory -------------------------------------------------------------------------------------------- */

static void each_of_session(void *owner, tenant_visit *fn, void *arg)
{
    struct session *s = owner;
    state_each(&s->state, lm(s), fn, arg);
    for (int i = 0; i < s->n_images; i++)
        fn(arg, &s->images[i].rows);
}

static void session_back(void *owner)
{
    struct session *s = owner;
    recurrent_place(&s->state.now, lm(s));
}

static void each_of_checkpoint(void *owner, tenant_visit *fn, void *arg)
{
    struct checkpoint *c = owner;
    fn(arg, &c->then);
}

static const struct tenant_kind checkpoint_kind = {0, each_of_checkpoint, NULL},
                                session_kind = {1, each_of_session, session_back};

int session_hold(struct session *s, int64_t more, struct err *e)
{
    if (tenant_enter(&s->home, e))
        return -1;
    if (state_try_reserve(&s->state, lm(s), backend(s), s->n + more, e) == 0)
        return 0;
    tenant_leave(&s->home);
    return -1;
}

void session_release(struct session *s)
{
    tenant_leave(&s->home);
}

size_t session_need(const struct session *s, int64_t length)
{
    struct lm_state none = s->state;
    none.capacity = 0;
    int64_t capacity = state_capacity(s->state.capacity, length);
    return tenant_bytes(&s->home) - state_need(&none, lm(s), s->state.capacity) +
           state_need(&none, lm(s), capacity);
}

bool session_fits(const struct session *s, int64_t more)
{
    bool held = !s->home.away && (s->home.busy || !backend(s)->ops->host_alloc); /* it counts already */
    return state_need(&s->state, lm(s), s->n + more) + (held ? 0 : tenant_bytes(&s->home)) <=
           room_left(&s->engine->room);
}

void session_must(int rc, const struct err *e)
{
    if (rc)
        die(e->kind, "%s", e->text);
}

/* ---- life -------------------------------------------------------------------------------------------- */

struct session *session_new(struct engine *g, uint64_t seed)
{
    static atomic_uint_least64_t last_id;
    struct session *s = xcalloc(1, sizeof *s);
    s->engine = g;
    s->id = atomic_fetch_add(&last_id, 1) + 1;
    s->random = seed;
    s->logits = xmalloc((unsigned long)g->weights.vocab, sizeof *s->logits);
    state_form(&s->state, &g->config.lm, &g->room, g->types);
    tenant_init(&s->home, &g->room, &session_kind, s);
    return s;
}

/* Images from index n on are not needed any more. */
static void drop_images(struct session *s, int n)
{
    while (s->n_images > n)
        room_free(&s->engine->room, &s->images[--s->n_images].rows);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    tenant_free(&s->home);
    state_free(&s->state, lm(s), backend(s));
    free(s->images);
    free(s->tokens);
    free(s->epochs);
    free(s->logits);
    free(s);
}

int64_t session_length(const struct session *s)
{
    return s->n;
}

const int32_t *session_tokens(const struct session *s)
{
    return s->tokens;
}

struct engine *session_engine(const struct session *s)
{
    return s->engine;
}

struct session_stats session_stats(const struct session *s)
{
    return s->stats;
}

/* ---- appending ------------------------------------------------------------------------------------------ */

static int check_room(const struct session *s, int64_t n, struct err *e)
{
    if (n > lm(s)->max_tokens - s->n)
        return err_set(e, ERR_FAILED, "the conversation would be %lld tokens long; the model was made for %d",
                       (long long)(s->n + n), lm(s)->max_tokens);
    return 0;
}

static void push(struct session *s, int32_t id)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 256;
        s->tokens = xrealloc(s->tokens, (unsigned long)s->cap, sizeof *s->tokens);
        s->epochs = xrealloc(s->epochs, (unsigned long)s->cap, sizeof *s->epochs);
    }
    s->tokens[s->n] = id;
    s->epochs[s->n++] = s->epoch;
}

int session_append(struct session *s, const int32_t *ids, int64_t n, struct err *e)
{
    int size = tokenizer_size(s->engine->tokenizer);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= size ||
            (s->engine->config.vision && ids[i] == s->engine->config.image_token))
            return err_set(e, ERR_FAILED, "token %d is no text token of this model", ids[i]);
    if (check_room(s, n, e))
        return -1;
    for (int64_t i = 0; i < n; i++)
        push(s, ids[i]);
    return 0;
}

int session_append_image(struct session *s, const struct image *im, struct err *e)
{
    struct engine *g = s->engine;
    if (!g->config.vision)
        return err_set(e, ERR_FAILED, "this model sees no images");
    if (!im->rgb || im->w < 1 || im->h < 1)
        return err_set(e, ERR_FAILED, "the image is empty");
    struct tile_grid grid = preprocess_grid(&g->config, im->w, im->h);
    int64_t rows = preprocess_tokens(&grid);
    if (check_room(s, rows + 2, e))
        return -1;

    int64_t start = clock_ns();
    double before = s->stats.preprocess_ms;
    struct tensor out = {NULL, g->act, rows, g->config.lm.hidden, g->config.lm.hidden};
    int rc = tenant_enter(&s->home, e);
    if (rc == 0 && (rc = room_alloc(&g->room, &out, e)))
        tenant_leave(&s->home);
    if (rc)
        return -1;
    push(s, g->image_open);
    struct image_rows image = {s->n, out};
    int computed = vision_encode_image(&g->vision, im, g->round8, g->pool, out, &s->stats.preprocess_ms, e);
    if (computed < 0) {
        s->n--;
        room_free(&g->room, &out);
        tenant_leave(&s->home);
        return -1;
    }
    for (int64_t i = 0; i < rows; i++)
        push(s, g->config.image_token);
    push(s, g->image_close);
    s->images = xrealloc(s->images, (unsigned long)s->n_images + 1, sizeof *s->images);
    s->images[s->n_images++] = image;
    tenant_leave(&s->home);
    s->stats.tiles_computed += computed;
    s->stats.tiles_cached += grid.tiles - computed;
    s->stats.vision_ms += clock_ms_since(start) - (s->stats.preprocess_ms - before);
    return 0;
}

int64_t session_waiting(const struct session *s)
{
    return s->n - s->state.length;
}

/* The next n of the tokens that wait. */
static int read_tokens(struct session *s, int64_t n, struct err *e)
{
    int64_t done = s->state.length, start = clock_ns();
    bool one = session_waiting(s) == 1;
    if (n == 0)
        return 0;
    if (s->torn)
        return err_set(e, ERR_STOPPED, "the model was stopped while it was reading");
    if (session_hold(s, 0, e))
        return -1;
    struct image_rows *images = xcalloc((unsigned long)s->n_images + 1, sizeof *images);
    for (int i = 0; i < s->n_images; i++)
        images[i] = (struct image_rows){s->images[i].at - done, s->images[i].rows};
    int rc = language_forward(&s->engine->language, &s->state, s->tokens + done, n, images, s->n_images);
    free(images);
    if (session_waiting(s) == 0)
        drop_images(s, 0);
    session_release(s);
    s->torn = rc != 0;
    if (s->torn)
        return err_set(e, ERR_STOPPED, "stopped while the model was reading");
    double ms = clock_ms_since(start);
    *(one ? &s->stats.decoded : &s->stats.prefilled) += n;
    *(one ? &s->stats.decode_ms : &s->stats.prefill_ms) += ms;
    return 0;
}

int session_read_piece(struct session *s, struct err *e)
{
    int64_t n = session_waiting(s);
    return read_tokens(s, n < LANGUAGE_ROWS ? n : LANGUAGE_ROWS, e);
}

int session_read(struct session *s, struct err *e)
{
    return read_tokens(s, session_waiting(s), e);
}

int session_compute(struct session *s, struct err *e)
{
    if (session_read(s, e))
        return -1;
    if (s->n == 0 || s->logits_at == s->n)
        return 0;
    if (session_hold(s, 0, e))
        return -1;
    int64_t start = clock_ns();
    language_logits(&s->engine->language, &s->state, s->logits);
    s->logits_at = s->n;
    s->stats.decode_ms += clock_ms_since(start);
    session_release(s);
    return 0;
}

/* Looking at a session computes what waits: to the caller nothing changes but the time it takes. */
const float *session_logits(const struct session *look)
{
    struct session *s = (struct session *)(uintptr_t)look;
    struct err e = ERR_INIT;
    session_must(session_compute(s, &e), &e);
    return s->n ? s->logits : NULL;
}

/* ---- going back and copying ------------------------------------------------------------------------------ */

/* A copy of s's block, here or, where there is no room, in the host's memory at once. */
static int keep(struct checkpoint *c, const struct session *s, struct err *e)
{
    struct backend *b = backend(s);
    if (room_alloc(&s->engine->room, &c->then, e) == 0) {
        c->home.away = false;
        b->ops->copy(b, c->then, s->state.now.block);
        return 0;
    }
    c->home.host = b->ops->host_alloc ? b->ops->host_alloc(b, tenant_bytes(&c->home)) : NULL;
    if (!c->home.host)
        return -1;
    struct tensor host = c->then;
    host.data = c->home.host;
    b->ops->download(b, host, s->state.now.block);
    return 0;
}

struct checkpoint *session_try_checkpoint(struct session *s, struct err *e)
{
    struct engine *g = s->engine;
    if (session_read(s, e) || session_hold(s, 0, e))
        return NULL;
    struct checkpoint *c = xcalloc(1, sizeof *c);
    *c = (struct checkpoint){.engine = g, .session = s->id, .length = s->n, .random = s->random};
    c->epoch = s->n ? s->epochs[s->n - 1] : 0;
    c->then = s->state.now.block;
    c->then.data = NULL;
    tenant_init(&c->home, &g->room, &checkpoint_kind, c);
    c->home.used = ++g->room.clock;
    int rc = keep(c, s, e);
    session_release(s);
    if (rc == 0)
        return c;
    checkpoint_free(c);
    return NULL;
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
    host.data = c->home.host;
    if (c->home.away)
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

int session_rewind(struct session *s, const struct checkpoint *look, struct err *e)
{
    struct checkpoint *c = (struct checkpoint *)(uintptr_t)look; /* that it was used is noted */
    if (on_line(s, c, e))
        return -1;
    if (tenant_enter(&s->home, e)) /* which may send the checkpoint away: it goes back from there, too */
        return -1;
    c->home.used = ++s->engine->room.clock;
    drop_images(s, 0);
    put_back(s, c);
    tenant_leave(&s->home);
    s->state.length = s->n = c->length;
    s->random = c->random;
    s->logits_at = 0;
    s->torn = false;
    s->epoch++;
    return 0;
}

int64_t checkpoint_length(const struct checkpoint *c)
{
    return c->length;
}

void checkpoint_free(struct checkpoint *c)
{
    if (!c)
        return;
    tenant_free(&c->home);
    free(c);
}

struct session *session_try_fork(const struct session *look, struct err *e)
{
    struct session *from = (struct session *)(uintptr_t)look; /* computes what waits */
    if (session_read(from, e) || session_hold(from, 0, e))
        return NULL;
    struct session *s = session_new(from->engine, from->random);
    int rc = session_hold(s, from->n, e);
    if (rc == 0) {
        for (int64_t i = 0; i < from->n; i++)
            push(s, from->tokens[i]);
        state_copy(&s->state, &from->state, lm(s), backend(s));
        session_release(s);
    }
    session_release(from);
    if (rc == 0)
        return s;
    session_free(s);
    return NULL;
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
    struct session *from = (struct session *)(uintptr_t)look; /* comes here if it is away */
    struct checkpoint *c = (struct checkpoint *)(uintptr_t)at;
    if (on_line(from, c, e) || session_hold(from, 0, e))
        return NULL;
    struct session *s = session_new(from->engine, c->random);
    int rc = session_hold(s, c->length, e);
    if (rc == 0) {
        struct lm_state then = from->state;
        then.length = c->length;
        for (int64_t i = 0; i < c->length; i++)
            push(s, from->tokens[i]);
        state_copy(&s->state, &then, lm(s), backend(s));
        c->home.used = ++s->engine->room.clock;
        put_back(s, c);
        session_release(s);
    }
    session_release(from);
    if (rc == 0)
        return s;
    session_free(s);
    return NULL;
}

/* ---- random numbers -------------------------------------------------------------------------------------- */

/* SplitMix64: one word of state, and every seed is a good one. */
double session_random(struct session *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

uint64_t session_dice(const struct session *s)
{
    return s->random;
}

void session_set_dice(struct session *s, uint64_t dice)
{
    s->random = dice;
}
