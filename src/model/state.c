/* state.c - memory of a language model state (state.h). */
#include "model/state.h"

#include "ops/work.h"

#include <stdlib.h>

enum { CAPACITY_STEP = 512, CAPACITY_PART = 32, VIEW_ALIGN = 256 };

struct state_types state_types(bool f32, enum state_storage ssm, enum kv_storage kv)
{
    enum dtype act = f32 ? DT_F32 : DT_BF16;
    return (struct state_types){act, ssm == STATE_FP16 ? DT_F16 : DT_F32, kv == KV_FP8 ? DT_F8E4M3 : act, 0};
}

int state_ring(struct state_types types, const struct lm_config *c, bool supported)
{
    bool mamba = false;
    for (int i = 0; i < c->layers; i++)
        mamba |= c->pattern[i] == LAYER_MAMBA;
    return supported && mamba && types.ssm == DT_F32 ? WORK_RING : 0;
}

/* ---- the fixed part ------------------------------------------------------------------------------------ */

/* Returns a view of the next bytes of the block and advances *at. */
static struct tensor place(const struct recurrent *r, size_t *at, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor view = {r->block.data ? (char *)r->block.data + *at : NULL, t, rows, cols, cols};
    size_t end = *at + (size_t)rows * (size_t)cols * dtype_size(t);
    *at = (end + VIEW_ALIGN - 1) / VIEW_ALIGN * VIEW_ALIGN;
    return view;
}

/* Sets all views of the block; returns their size in bytes. */
static size_t place_all(struct recurrent *r, const struct lm_config *c)
{
    size_t at = 0;
    for (int i = 0; i < c->layers; i++) {
        if (!layer_recurs(c->pattern[i]))
            continue;
        r->ssm[i] = place(r, &at, r->types.ssm, config_state_rows(c), config_state_cols(c));
        r->conv[i] = place(r, &at, r->types.act, config_conv_taps(c) - 1, config_conv_dim(c));
    }
    r->last = place(r, &at, r->types.act, 1, c->hidden);
    for (int i = 0; r->types.ring && i < c->layers; i++) {
        if (c->pattern[i] != LAYER_MAMBA)
            continue;
        int64_t inputs = config_inner(c) + (int64_t)c->ssm.groups * c->ssm.state;
        r->ring_in[i] = place(r, &at, r->types.act, r->types.ring, inputs);
        r->ring_dt[i] = place(r, &at, DT_F32, r->types.ring, c->ssm.heads);
    }
    return at;
}

void recurrent_set_shapes(struct recurrent *r, const struct lm_config *c, struct state_types types)
{
    *r = (struct recurrent){.types = types};
    struct tensor **views[] = {&r->ssm, &r->conv, &r->ring_in, &r->ring_dt};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        *views[i] = xcalloc((unsigned long)c->layers, sizeof(struct tensor));
    int64_t bytes = (int64_t)place_all(r, c);
    r->block = (struct tensor){NULL, DT_U8, 1, bytes, bytes};
}

void recurrent_place(struct recurrent *r, const struct lm_config *c)
{
    place_all(r, c);
}

void recurrent_free_shapes(struct recurrent *r)
{
    struct tensor *views[] = {r->ssm, r->conv, r->ring_in, r->ring_dt};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        free(views[i]);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static int alloc_tensor(const struct lm_state *s, struct backend *b, struct tensor *t, struct err *e)
{
    if (s->state_pool)
        return state_pool_alloc(s->state_pool, t, e);
    *t = b->ops->alloc(b, t->dtype, t->rows, t->cols);
    return 0;
}

static void free_tensor(const struct lm_state *s, struct backend *b, struct tensor *t)
{
    if (s->state_pool)
        state_pool_free(s->state_pool, t);
    else if (t->data)
        b->ops->free(b, t);
}

void state_set_shapes(struct lm_state *s, const struct lm_config *c, struct state_pool *r,
                      struct state_types types)
{
    *s = (struct lm_state){.state_pool = r};
    recurrent_set_shapes(&s->now, c, types);
    s->k = xcalloc((unsigned long)c->layers, sizeof *s->k);
    s->v = xcalloc((unsigned long)c->layers, sizeof *s->v);
}

void state_init(struct lm_state *s, const struct lm_config *c, struct backend *b, struct state_types types)
{
    state_set_shapes(s, c, NULL, types);
    alloc_tensor(s, b, &s->now.block, NULL);
    recurrent_place(&s->now, c);
}

void state_each(struct lm_state *s, const struct lm_config *c, pool_entry_visit *fn, void *arg)
{
    fn(arg, &s->now.block);
    for (int i = 0; i < c->layers; i++) {
        if (!layer_attends(c->pattern[i]))
            continue;
        fn(arg, &s->k[i]);
        fn(arg, &s->v[i]);
    }
}

void state_free(struct lm_state *s, const struct lm_config *c, struct backend *b)
{
    free_tensor(s, b, &s->now.block);
    for (int i = 0; s->k && i < c->layers; i++) {
        free_tensor(s, b, &s->k[i]);
        free_tensor(s, b, &s->v[i]);
    }
    recurrent_free_shapes(&s->now);
    free(s->k);
    free(s->v);
    *s = (struct lm_state){0};
}

/* ---- keys and values ----------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n)
{
    return (n + CAPACITY_STEP - 1) / CAPACITY_STEP * CAPACITY_STEP;
}

int64_t state_capacity(int64_t have, int64_t length)
{
    if (length <= have)
        return have;
    int64_t more = have + have / CAPACITY_PART;
    return round_up(length > more ? length : more);
}

static int64_t attention_layers(const struct lm_config *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->layers; i++)
        n += layer_attends(c->pattern[i]);
    return n;
}

static size_t row_bytes(const struct lm_config *c, enum dtype kv)
{
    return (size_t)config_kv_cols(c, kv) * dtype_size(kv);
}

size_t state_position(const struct lm_config *c, enum dtype kv)
{
    return 2 * (size_t)attention_layers(c) * row_bytes(c, kv);
}

/* During growth one tensor exists twice; the others have already grown or will grow later. */
size_t state_need(const struct lm_state *s, const struct lm_config *c, int64_t length)
{
    int64_t capacity = state_capacity(s->capacity, length), tensors = 2 * attention_layers(c);
    if (capacity == s->capacity || tensors == 0)
        return 0;
    return (size_t)((capacity - s->capacity) * tensors + s->capacity) * row_bytes(c, s->now.types.kv);
}

static int grow(const struct lm_state *s, struct tensor *t, struct backend *b, int64_t rows, int64_t cols,
                struct err *e)
{
    struct tensor bigger = {NULL, s->now.types.kv, rows, cols, cols};
    if (t->data && t->rows >= rows)
        return 0; /* reserved by an earlier attempt that ran out of memory */
    if (alloc_tensor(s, b, &bigger, e))
        return -1;
    if (s->length)
        b->ops->copy(b, tensor_rows(bigger, 0, s->length), tensor_rows(*t, 0, s->length));
    free_tensor(s, b, t);
    *t = bigger;
    return 0;
}

int state_try_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b, int64_t length,
                      struct err *e)
{
    if (length <= s->capacity)
        return 0;
    int64_t want = state_capacity(s->capacity, length), cols = config_kv_cols(c, s->now.types.kv);
    if (s->state_pool && state_pool_reserve(s->state_pool, state_need(s, c, length), e))
        return -1;
    for (int i = 0; i < c->layers; i++)
        if (layer_attends(c->pattern[i]) &&
            (grow(s, &s->k[i], b, want, cols, e) || grow(s, &s->v[i], b, want, cols, e)))
            return -1;
    s->capacity = want;
    return 0;
}

void state_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b, int64_t length)
{
    struct err e = ERR_INIT;
    if (state_try_reserve(s, c, b, length, &e))
        die(e.kind, "%s", e.text);
}

void state_copy(struct lm_state *to, const struct lm_state *from, const struct lm_config *c,
                struct backend *b)
{
    b->ops->copy(b, to->now.block, from->now.block);
    to->length = from->length;
    to->position = from->position;
    to->lag = from->lag;
    for (int i = 0; from->length && i < c->layers; i++) {
        if (!layer_attends(c->pattern[i]))
            continue;
        b->ops->copy(b, tensor_rows(to->k[i], 0, from->length), tensor_rows(from->k[i], 0, from->length));
        b->ops->copy(b, tensor_rows(to->v[i], 0, from->length), tensor_rows(from->v[i], 0, from->length));
    }
}

int state_visit(const struct lm_state *s, const struct lm_config *c, state_visit_fn *fn, void *arg)
{
    for (int i = 0; i < c->layers; i++) {
        if (layer_recurs(c->pattern[i]) && (fn(arg, s->now.ssm[i]) || fn(arg, s->now.conv[i])))
            return -1;
        if (layer_attends(c->pattern[i]) && s->length &&
            (fn(arg, tensor_rows(s->k[i], 0, s->length)) || fn(arg, tensor_rows(s->v[i], 0, s->length))))
            return -1;
    }
    return fn(arg, s->now.last) ? -1 : 0;
}
