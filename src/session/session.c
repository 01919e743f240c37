/* session.c - appends tokens and images to a session, prefills, and computes logits (session.h,
 * session_impl.h). */
#include "session/session_impl.h"

#include "base/clock.h"
#include "model/preprocess.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static bool is_shared(const struct session *s)
{
    return s->engine->scheduler != NULL;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void visit_tensors(void *owner, pool_entry_visit *fn, void *arg)
{
    struct session *s = owner;
    state_each(&s->state, session_lm(s), fn, arg);
    for (int i = 0; i < s->n_images; i++)
        fn(arg, &s->images[i].rows);
}

static void restored(void *owner)
{
    struct session *s = owner;
    recurrent_place(&s->state.now, session_lm(s));
}

static const struct pool_entry_kind session_kind = {SESSION_RANK, visit_tensors, restored};

int session_pin(struct session *s, int64_t more, struct err *e)
{
    engine_enter(s->engine, &s->client);
    int rc = pool_entry_pin(&s->entry, e);
    if (rc == 0 && (rc = state_try_reserve(&s->state, session_lm(s), session_backend(s), s->n + more, e)))
        pool_entry_unpin(&s->entry);
    engine_leave(s->engine);
    return rc ? -1 : 0;
}

void session_unpin(struct session *s)
{
    engine_enter(s->engine, &s->client);
    pool_entry_unpin(&s->entry);
    engine_leave(s->engine);
}

bool session_fits(const struct session *s, int64_t more)
{
    if (!s->engine->state_pool.bound)
        return true;
    engine_enter(s->engine, NULL);
    /* state_pool_left() does not count memory that cannot be spilled */
    bool counted = !s->entry.spilled && (s->entry.pins || !session_backend(s)->ops->host_alloc);
    bool fits =
        state_need(&s->state, session_lm(s), s->n + more) + (counted ? 0 : pool_entry_bytes(&s->entry)) <=
        state_pool_left(&s->engine->state_pool);
    engine_leave(s->engine);
    return fits;
}

void session_idle(struct session *s)
{
    if (s->engine->scheduler)
        scheduler_idle(s->engine->scheduler, &s->client);
}

int session_reuse_prefix(struct session *s, struct err *e)
{
    if (!is_shared(s))
        return 0;
    if (engine_try_enter(s->engine, &s->client, e))
        return -1;
    int rc = prefix_reuse(&s->engine->prefixes, s, e);
    engine_leave(s->engine);
    return rc;
}

int session_err_stopped(struct err *e)
{
    return err_set(e, ERR_STOPPED, "stopped while waiting for the model");
}

void session_check(int rc, const struct err *e)
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
    state_set_shapes(&s->state, &g->config.lm, &g->state_pool, g->types);
    engine_enter(g, NULL);
    pool_entry_init(&s->entry, &g->state_pool, &session_kind, s);
    engine_leave(g);
    return s;
}

void session_drop_images(struct session *s)
{
    while (s->n_images > 0)
        state_pool_free(&s->engine->state_pool, &s->images[--s->n_images].rows);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    engine_enter(s->engine, &s->client);
    pool_entry_free(&s->entry);
    state_free(&s->state, session_lm(s), session_backend(s));
    engine_leave(s->engine);
    free(s->images);
    free(s->tokens);
    free(s->epochs);
    free(s->logits);
    free(s);
}

void session_set_cancel(struct session *s, const volatile int *flag)
{
    s->client.stop = flag;
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

/* ---- appending ------------------------------------------------------------------------------- */

static int check_length(const struct session *s, int64_t n, struct err *e)
{
    if (n > session_lm(s)->max_tokens - s->n)
        return err_set(e, ERR_MODEL, "the conversation would be %lld tokens long; the model's context has %d",
                       (long long)(s->n + n), session_lm(s)->max_tokens);
    return 0;
}

void session_push(struct session *s, int32_t id)
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
            return err_set(e, ERR_MODEL, "token %d is not a text token of this model", ids[i]);
    if (check_length(s, n, e))
        return -1;
    for (int64_t i = 0; i < n; i++)
        session_push(s, ids[i]);
    return 0;
}

void session_yield(void *session)
{
    struct session *s = session;
    scheduler_yield(s->engine->scheduler, &s->client);
}

/* Encodes the image's tiles into `out`. Returns the number of tiles that were not cached, or -1 with e. */
static int encode(struct session *s, const struct image *im, const struct tile_grid *grid, struct tensor out,
                  struct err *e)
{
    struct engine *g = s->engine;
    g->vision.caller_cancel = s->client.stop;
    g->vision.caller = s;
    int computed =
        vision_encode_image(&g->vision, im, grid, g->round8, g->pool, out, &s->stats.preprocess_ms, e);
    g->vision.caller_cancel = NULL;
    g->vision.caller = NULL;
    return computed;
}

static int append_image(struct session *s, const struct image *im, const struct tile_grid *grid,
                        struct err *e)
{
    struct engine *g = s->engine;
    int64_t rows = preprocess_tokens(grid), start = clock_ns();
    double before = s->stats.preprocess_ms;
    int64_t cols = config_image_cols(&g->config);
    struct tensor out = {NULL, g->act, rows, cols, cols};
    int rc = pool_entry_pin(&s->entry, e);
    if (rc == 0 && (rc = state_pool_alloc(&g->state_pool, &out, e)))
        pool_entry_unpin(&s->entry);
    if (rc)
        return -1;
    session_push(s, g->image_open);
    int merge = g->config.vit.merge; /* patches per side merged into one row; 0: rows have no position */
    struct image_rows image = {s->n, out, merge ? grid->patch_cols / merge : 0};
    int computed = encode(s, im, grid, out, e);
    if (computed < 0) {
        s->n--;
        state_pool_free(&g->state_pool, &out);
        pool_entry_unpin(&s->entry);
        return -1;
    }
    for (int64_t i = 0; i < rows; i++)
        session_push(s, g->config.image_token);
    session_push(s, g->image_close);
    s->images = xrealloc(s->images, (unsigned long)s->n_images + 1, sizeof *s->images);
    s->images[s->n_images++] = image;
    pool_entry_unpin(&s->entry);
    s->stats.tiles_computed += computed;
    s->stats.tiles_cached += grid->tiles - computed;
    s->stats.vision_ms += clock_ms_since(start) - (s->stats.preprocess_ms - before);
    return 0;
}

int session_append_image(struct session *s, const struct image *im, struct err *e)
{
    struct engine *g = s->engine;
    if (!g->config.vision)
        return config_check_vision(&g->config, g->dir, e);
    if (!im->rgb || im->w < 1 || im->h < 1)
        return err_set(e, ERR_MODEL, "the image is empty");
    enum { MOST_ASPECT = 200 }; /* limit of Qwen's image processor */
    if (family_is_qwen(g->config.family) && (im->w > MOST_ASPECT * im->h || im->h > MOST_ASPECT * im->w))
        return err_set(e, ERR_MODEL, "an image of %dx%d is too narrow for this model", im->w, im->h);
    struct tile_grid grid = preprocess_grid(&g->config, im->w, im->h);
    if (check_length(s, preprocess_tokens(&grid) + 2, e) || engine_try_enter(g, &s->client, e))
        return -1;
    int rc = append_image(s, im, &grid, e);
    engine_leave(g);
    return rc;
}

int64_t session_pending(const struct session *s)
{
    return s->n - s->state.length;
}

/* Computes the next n pending tokens. Returns -1 with e if stopped or out of memory. */
static int compute_pending(struct session *s, int64_t n, struct err *e)
{
    int64_t done = s->state.length, start = clock_ns();
    bool one = session_pending(s) == 1;
    if (n == 0)
        return 0;
    if (s->interrupted)
        return err_set(e, ERR_STOPPED, "prefill was stopped: the session has to be rewound");
    if (session_pin(s, 0, e))
        return -1;
    autofree struct image_rows *images = xcalloc((unsigned long)s->n_images + 1, sizeof *images);
    for (int i = 0; i < s->n_images; i++)
        images[i] = (struct image_rows){s->images[i].at - done, s->images[i].rows, s->images[i].cols};
    s->engine->language.session_cancel = s->client.stop;
    int rc = language_forward(&s->engine->language, &s->state, s->tokens + done, n, images, s->n_images);
    s->engine->language.session_cancel = NULL;
    if (session_pending(s) == 0)
        session_drop_images(s);
    session_unpin(s);
    s->interrupted = rc != 0;
    if (s->interrupted)
        return err_set(e, ERR_STOPPED, "stopped during prefill");
    double ms = clock_ms_since(start);
    *(one ? &s->stats.decoded : &s->stats.prefilled) += n;
    *(one ? &s->stats.decode_ms : &s->stats.prefill_ms) += ms;
    return 0;
}

static int64_t next_chunk(const struct session *s)
{
    int64_t done = s->state.length, text = session_pending(s);
    for (int i = 0; i < s->n_images; i++) {
        struct image_rows image = {s->images[i].at, s->images[i].rows, 0};
        text = language_text(&image, 1, done, done + text);
    }
    return language_chunk(&s->engine->language, done, session_pending(s), text);
}

int session_prefill_chunk(struct session *s, struct err *e)
{
    if (engine_try_enter(s->engine, &s->client, e))
        return -1;
    int rc = compute_pending(s, next_chunk(s), e);
    engine_leave(s->engine);
    return rc;
}

/* Prefills a session of a shared engine; other threads may use the engine between chunks. */
static int prefill_shared(struct session *s, struct err *e)
{
    if (session_pending(s) == 0)
        return 0;
    if (engine_try_enter(s->engine, &s->client, e))
        return -1;
    int rc = 0;
    do
        rc = session_prefill_chunk(s, e);
    while (rc == 0 && session_pending(s) > 0 &&
           (rc = scheduler_yield(s->engine->scheduler, &s->client) ? session_err_stopped(e) : 0) == 0);
    engine_leave(s->engine);
    return rc;
}

int session_prefill(struct session *s, struct err *e)
{
    return is_shared(s) ? prefill_shared(s, e) : compute_pending(s, session_pending(s), e);
}

int session_compute_logits(struct session *s, struct err *e)
{
    if (is_shared(s))
        return session_try_decode_batch(&s, 1, e);
    if (session_prefill(s, e))
        return -1;
    if (s->n == 0 || s->logits_at == s->n)
        return 0;
    if (session_pin(s, 0, e))
        return -1;
    int64_t start = clock_ns();
    language_logits(&s->engine->language, &s->state, s->logits);
    s->logits_at = s->n;
    s->stats.decode_ms += clock_ms_since(start);
    session_unpin(s);
    return 0;
}

/* Takes a const session because computing pending tokens changes nothing the caller can observe. */
const float *session_logits(const struct session *from)
{
    struct session *s = (struct session *)(uintptr_t)from;
    struct err e = ERR_INIT;
    session_check(session_compute_logits(s, &e), &e);
    return s->n ? s->logits : NULL;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* SplitMix64: one word of state, and any seed is valid. */
double session_uniform(struct session *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

uint64_t session_rng(const struct session *s)
{
    return s->random;
}

void session_set_rng(struct session *s, uint64_t rng)
{
    s->random = rng;
}
