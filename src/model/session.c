/* session.c - one timeline: append, look, go back, copy.  See model.h and session.h. */
#include "model/session.h"

#include "base/clock.h"
#include "model/preprocess.h"
#include "model/sample.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint {
    struct engine *engine;
    uint64_t session;
    int64_t length;
    uint32_t epoch; /* of the last token */
    struct recurrent then;
    uint64_t random;
};

static const struct lm_config *lm(const struct session *s)
{
    return &s->engine->config.lm;
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
    state_init(&s->state, &g->config.lm, g->backend, g->act);
    return s;
}

/* Images from index n on are not needed any more. */
static void drop_images(struct session *s, int n)
{
    while (s->n_images > n)
        s->engine->backend->ops->free(s->engine->backend, &s->images[--s->n_images].rows);
}

void session_free(struct session *s)
{
    if (!s)
        return;
    drop_images(s, 0);
    state_free(&s->state, lm(s), s->engine->backend);
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
    float *patches = xmalloc(preprocess_image_floats(&g->config, &grid), sizeof *patches);
    preprocess_image(&g->config, im, g->round8, g->pool, patches);
    s->stats.preprocess_ms += clock_ms_since(start);

    start = clock_ns();
    push(s, g->image_open);
    struct image_rows image = {s->n, g->backend->ops->alloc(g->backend, g->act, rows, g->config.lm.hidden)};
    int computed = g->config.vit.max_patches ? vision_encode_canvas(&g->vision, patches, grid.patch_rows,
                                                                    grid.patch_cols, image.rows)
                                             : vision_encode(&g->vision, patches, grid.tiles, image.rows);
    free(patches);
    for (int64_t i = 0; i < rows; i++)
        push(s, g->config.image_token);
    push(s, g->image_close);
    s->images = xrealloc(s->images, (unsigned long)s->n_images + 1, sizeof *s->images);
    s->images[s->n_images++] = image;
    s->stats.tiles_computed += computed;
    s->stats.tiles_cached += grid.tiles - computed;
    s->stats.vision_ms += clock_ms_since(start);
    return 0;
}

void session_flush(struct session *s)
{
    int64_t done = s->state.length, n = s->n - done;
    if (n == 0)
        return;
    int64_t start = clock_ns();
    for (int i = 0; i < s->n_images; i++)
        s->images[i].at -= done;
    language_forward(&s->engine->language, &s->state, s->tokens + done, n, s->images, s->n_images);
    drop_images(s, 0);
    double ms = clock_ms_since(start);
    *(n == 1 ? &s->stats.decoded : &s->stats.prefilled) += n;
    *(n == 1 ? &s->stats.decode_ms : &s->stats.prefill_ms) += ms;
}

/* Looking at a session computes what waits: to the caller nothing changes but the time it takes. */
const float *session_logits(const struct session *look)
{
    struct session *s = (struct session *)(uintptr_t)look;
    if (s->n == 0)
        return NULL;
    session_flush(s);
    if (s->logits_at != s->n) {
        int64_t start = clock_ns();
        language_logits(&s->engine->language, &s->state, s->logits);
        s->logits_at = s->n;
        s->stats.decode_ms += clock_ms_since(start);
    }
    return s->logits;
}

/* n <= LANGUAGE_ROWS sessions with one text token waiting in each. */
static void step_together(struct session *const *s, int n)
{
    struct lm_state *states[LANGUAGE_ROWS];
    int32_t ids[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    for (int i = 0; i < n; i++) {
        states[i] = &s[i]->state;
        ids[i] = s[i]->tokens[s[i]->n - 1];
    }
    language_step_each(&s[0]->engine->language, states, n, ids);
    double ms = clock_ms_since(start) / n;
    for (int i = 0; i < n; i++) {
        s[i]->stats.decoded++;
        s[i]->stats.decode_ms += ms;
    }
}

/* All that waits in all of them goes through the model. */
static void flush_many(struct session *const *s, int n)
{
    struct session *together[LANGUAGE_ROWS];
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (s[i]->engine != s[0]->engine)
            bug("sessions of two engines at once");
        if (s[i]->n - s[i]->state.length != 1 || s[i]->n_images) {
            session_flush(s[i]);
            continue;
        }
        together[k++] = s[i];
        if (k == LANGUAGE_ROWS) {
            step_together(together, k);
            k = 0;
        }
    }
    if (k)
        step_together(together, k);
}

static void look_together(struct session *const *s, int n)
{
    struct lm_state *states[LANGUAGE_ROWS];
    float *logits[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    for (int i = 0; i < n; i++) {
        states[i] = &s[i]->state;
        logits[i] = s[i]->logits;
    }
    language_logits_each(&s[0]->engine->language, states, n, logits);
    double ms = clock_ms_since(start) / n;
    for (int i = 0; i < n; i++) {
        s[i]->logits_at = s[i]->n;
        s[i]->stats.decode_ms += ms;
    }
}

void session_step_many(struct session *const *s, int n)
{
    struct session *together[LANGUAGE_ROWS];
    int k = 0;
    flush_many(s, n);
    for (int i = 0; i < n; i++) {
        if (s[i]->logits_at != s[i]->n)
            together[k++] = s[i];
        if (k == LANGUAGE_ROWS || (k && i == n - 1)) {
            look_together(together, k);
            k = 0;
        }
    }
}

/* n <= LANGUAGE_ROWS sessions in which nothing waits, on a device that chooses. */
static void choose_together(struct session *const *s, int n, const struct choosing *how, struct choice *out)
{
    struct lm_state *states[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    for (int i = 0; i < n; i++)
        states[i] = &s[i]->state;
    language_choose_each(&s[0]->engine->language, states, n, tokenizer_size(s[0]->engine->tokenizer), how,
                         out);
    double ms = clock_ms_since(start) / n;
    for (int i = 0; i < n; i++)
        s[i]->stats.decode_ms += ms;
}

void session_choose(struct session *const *s, int n, const struct choosing *how, struct choice *out)
{
    for (int i = 0; i < n; i++)
        if (s[i]->n == 0)
            bug("a choice in an empty session");
    if (!s[0]->engine->backend->ops->choose) {
        session_step_many(s, n);
        for (int i = 0; i < n; i++)
            out[i] = sample_token(s[i]->logits, tokenizer_size(s[i]->engine->tokenizer), &how[i]);
        return;
    }
    flush_many(s, n);
    for (int i = 0; i < n; i += LANGUAGE_ROWS)
        choose_together(s + i, n - i < LANGUAGE_ROWS ? n - i : LANGUAGE_ROWS, how + i, out + i);
}

/* ---- going back and copying ------------------------------------------------------------------------------ */

struct checkpoint *session_checkpoint(struct session *s)
{
    session_flush(s);
    struct engine *g = s->engine;
    struct checkpoint *c = xcalloc(1, sizeof *c);
    *c = (struct checkpoint){.engine = g, .session = s->id, .length = s->n, .random = s->random};
    c->epoch = s->n ? s->epochs[s->n - 1] : 0;
    recurrent_init(&c->then, lm(s), g->backend, g->act);
    g->backend->ops->copy(g->backend, c->then.block, s->state.now.block);
    return c;
}

int session_rewind(struct session *s, const struct checkpoint *c, struct err *e)
{
    if (c->session != s->id)
        return err_set(e, ERR_FAILED, "the checkpoint is of another session");
    if (c->length > s->n || (c->length && s->epochs[c->length - 1] != c->epoch))
        return err_set(e, ERR_FAILED, "the session has been rewound to before this checkpoint");
    drop_images(s, 0);
    s->engine->backend->ops->copy(s->engine->backend, s->state.now.block, c->then.block);
    s->state.length = s->n = c->length;
    s->random = c->random;
    s->logits_at = 0;
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
    recurrent_free(&c->then, c->engine->backend);
    free(c);
}

struct session *session_fork(const struct session *from)
{
    session_flush((struct session *)(uintptr_t)from);
    struct session *s = session_new(from->engine, from->random);
    for (int64_t i = 0; i < from->n; i++)
        push(s, from->tokens[i]);
    state_copy(&s->state, &from->state, lm(s), s->engine->backend);
    return s;
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
