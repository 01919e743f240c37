/* state.c - see state.h. */
#include "model/state.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 512, VIEW_ALIGN = 256 };

static void drop(struct backend *b, struct tensor *t)
{
    if (t->data)
        b->ops->free(b, t);
}

/* ---- the fixed part ------------------------------------------------------------------------------- */

/* A view of the next bytes of the block. */
static struct tensor place(const struct recurrent *r, size_t *at, enum dtype t, int64_t rows, int64_t cols)
{
    struct tensor view = {r->block.data ? (char *)r->block.data + *at : NULL, t, rows, cols, cols};
    size_t end = *at + (size_t)rows * (size_t)cols * dtype_size(t);
    *at = (end + VIEW_ALIGN - 1) / VIEW_ALIGN * VIEW_ALIGN;
    return view;
}

/* All views of the block; returns how many bytes they take. */
static size_t place_all(struct recurrent *r, const struct lm_config *c, enum dtype act)
{
    size_t at = 0;
    for (int i = 0; i < c->layers; i++) {
        if (c->pattern[i] != LAYER_MAMBA)
            continue;
        r->ssm[i] = place(r, &at, DT_F32, config_inner(c), c->ssm.state);
        r->conv[i] = place(r, &at, act, c->ssm.conv - 1, config_conv_dim(c));
    }
    r->last = place(r, &at, act, 1, c->hidden);
    return at;
}

void recurrent_init(struct recurrent *r, const struct lm_config *c, struct backend *b, enum dtype act)
{
    *r = (struct recurrent){.ssm = xcalloc((unsigned long)c->layers, sizeof *r->ssm),
                            .conv = xcalloc((unsigned long)c->layers, sizeof *r->conv)};
    r->block = b->ops->alloc(b, DT_U8, 1, (int64_t)place_all(r, c, act));
    place_all(r, c, act);
}

void recurrent_free(struct recurrent *r, struct backend *b)
{
    drop(b, &r->block);
    free(r->ssm);
    free(r->conv);
    *r = (struct recurrent){0};
}

/* ---- keys and values -------------------------------------------------------------------------------- */

void state_init(struct lm_state *s, const struct lm_config *c, struct backend *b, enum dtype act)
{
    *s = (struct lm_state){0};
    recurrent_init(&s->now, c, b, act);
    s->k = xcalloc((unsigned long)c->layers, sizeof *s->k);
    s->v = xcalloc((unsigned long)c->layers, sizeof *s->v);
}

void state_free(struct lm_state *s, const struct lm_config *c, struct backend *b)
{
    recurrent_free(&s->now, b);
    for (int i = 0; s->k && i < c->layers; i++) {
        drop(b, &s->k[i]);
        drop(b, &s->v[i]);
    }
    free(s->k);
    free(s->v);
    *s = (struct lm_state){0};
}

static void grow(struct tensor *t, struct backend *b, enum dtype act, int64_t used, int64_t rows,
                 int64_t cols)
{
    struct tensor bigger = b->ops->alloc(b, act, rows, cols);
    if (used)
        b->ops->copy(b, tensor_rows(bigger, 0, used), tensor_rows(*t, 0, used));
    drop(b, t);
    *t = bigger;
}

void state_reserve(struct lm_state *s, const struct lm_config *c, struct backend *b, int64_t length)
{
    if (length <= s->capacity)
        return;
    int64_t want = s->capacity + s->capacity / 2;
    want = want < FIRST_CAPACITY ? FIRST_CAPACITY : want;
    s->capacity = want < length ? length : want;
    for (int i = 0; i < c->layers; i++) {
        if (c->pattern[i] != LAYER_ATTENTION)
            continue;
        int64_t cols = (int64_t)c->kv_heads * c->head_dim;
        grow(&s->k[i], b, s->now.last.dtype, s->length, s->capacity, cols);
        grow(&s->v[i], b, s->now.last.dtype, s->length, s->capacity, cols);
    }
}

void state_copy(struct lm_state *to, const struct lm_state *from, const struct lm_config *c,
                struct backend *b)
{
    b->ops->copy(b, to->now.block, from->now.block);
    to->length = 0;
    state_reserve(to, c, b, from->length);
    to->length = from->length;
    for (int i = 0; from->length && i < c->layers; i++) {
        if (c->pattern[i] != LAYER_ATTENTION)
            continue;
        b->ops->copy(b, tensor_rows(to->k[i], 0, from->length), tensor_rows(from->k[i], 0, from->length));
        b->ops->copy(b, tensor_rows(to->v[i], 0, from->length), tensor_rows(from->v[i], 0, from->length));
    }
}

int state_visit(const struct lm_state *s, const struct lm_config *c, state_visit_fn *fn, void *arg)
{
    for (int i = 0; i < c->layers; i++) {
        if (c->pattern[i] == LAYER_MAMBA && (fn(arg, s->now.ssm[i]) || fn(arg, s->now.conv[i])))
            return -1;
        if (c->pattern[i] == LAYER_ATTENTION && s->length &&
            (fn(arg, tensor_rows(s->k[i], 0, s->length)) || fn(arg, tensor_rows(s->v[i], 0, s->length))))
            return -1;
    }
    return fn(arg, s->now.last) ? -1 : 0;
}
