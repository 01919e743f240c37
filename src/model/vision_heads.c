/* vision_heads.c - what a tower's heads say of each patch (patch_map.h): a norm and three products for
 * letters; after one more block of the tower's kind a norm and an MLP for kinds of elements, a norm and six
 * products for the pointer.
 *
 *   u = LN(x)      present = sigmoid(u Wp + bp)   shift = u Ws + bs   letter = argmax_{c > 0} u W[slot, c]
 *   y = block(x)
 *   v = LN(y)      kind = softmax of the first rows of Wo GELU(v Wi + bi) + bo
 *   w = LN(y)      query = w Wq + bq   key = w Wk + bk   nothing = w Wn + bn
 *                  f = w Wf + bf   down = Ed f   right = Er f
 *
 * It takes a fifth of the tower's time, and is done for every picture.
 */
#include "model/vision_impl.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LETTER_COLS = PATCH_SLOTS * PATCH_LETTERS,
    SAID_COLS = 2 * PATCH_SLOTS + LETTER_COLS,
    POINTER_COLS = 2 * POINTER_WIDTH + 1 + 2 * POINTER_STEPS
};
static_assert(sizeof(struct patch_pointer) == POINTER_COLS * sizeof(float), "a row of the pointer's numbers");
static const float reader_eps = 1e-5f;

void patch_map_free(struct patch_map *m)
{
    free(m->patches);
    *m = (struct patch_map){0};
}

static void read_letters(struct patch_reading *out, const float *said)
{
    for (int s = 0; s < PATCH_SLOTS; s++) {
        const float *letters = said + 2 * PATCH_SLOTS + s * PATCH_LETTERS;
        int best = 1;
        for (int c = 2; c < PATCH_LETTERS; c++)
            best = letters[c] > letters[best] ? c : best;
        out->present[s] = 1 / (1 + expf(-said[s]));
        out->shift[s] = fminf(fmaxf(said[PATCH_SLOTS + s], 0), 1);
        out->letter[s] = (uint8_t)best;
    }
}

static void read_kinds(struct patch_reading *out, const float *said)
{
    float most = said[0], sum = 0;
    for (int k = 1; k < ELEMENT_KINDS; k++)
        most = fmaxf(most, said[k]);
    for (int k = 0; k < ELEMENT_KINDS; k++)
        sum += out->kind[k] = expf(said[k] - most);
    for (int k = 0; k < ELEMENT_KINDS; k++)
        out->kind[k] /= sum;
}

static const struct tensor no_bias = {0};

/* Letters [n, SAID_COLS] of the tower's rows x. */
static void run_letters(struct vision *v, struct tensor x, struct tensor u, struct tensor letters)
{
    const struct ops *ops = v->backend->ops;
    const struct vision_heads *h = &v->weights->heads;
    struct backend *b = v->backend;
    ops->layernorm(b, u, x, h->norm, h->norm_bias, reader_eps);
    ops->linear(b, tensor_cols(letters, 0, PATCH_SLOTS), u, h->present, h->present_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(letters, PATCH_SLOTS, PATCH_SLOTS), u, h->shift, h->shift_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(letters, 2 * PATCH_SLOTS, LETTER_COLS), u, h->letters, no_bias, EPI_NONE, SET);
}

/* Kinds [n, find_rows] of the block's rows x; m is [n, inner_rows] of scratch. */
static void run_finder(struct vision *v, struct tensor x, struct tensor u, struct tensor m,
                       struct tensor kinds)
{
    const struct ops *ops = v->backend->ops;
    const struct vision_heads *h = &v->weights->heads;
    struct backend *b = v->backend;
    ops->layernorm(b, u, x, h->find_norm, h->find_norm_bias, reader_eps);
    ops->linear(b, m, u, h->inner, h->inner_bias, EPI_GELU, SET);
    ops->linear(b, kinds, m, h->find, h->find_bias, EPI_NONE, SET);
}

/* The pointer's numbers [n, POINTER_COLS] of the block's rows x; f is [n, far_rows] of scratch. */
static void run_pointer(struct vision *v, struct tensor x, struct tensor u, struct tensor f,
                        struct tensor out)
{
    const struct ops *ops = v->backend->ops;
    const struct vision_heads *h = &v->weights->heads;
    struct backend *b = v->backend;
    int64_t at = 0;
    ops->layernorm(b, u, x, h->pointer_norm, h->pointer_norm_bias, reader_eps);
    ops->linear(b, tensor_cols(out, at, POINTER_WIDTH), u, h->query, h->query_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(out, at += POINTER_WIDTH, POINTER_WIDTH), u, h->key, h->key_bias, EPI_NONE,
                SET);
    ops->linear(b, tensor_cols(out, at += POINTER_WIDTH, 1), u, h->nothing, h->nothing_bias, EPI_NONE, SET);
    ops->linear(b, f, u, h->far, h->far_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(out, at += 1, POINTER_STEPS), f, h->down, no_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(out, at + POINTER_STEPS, POINTER_STEPS), f, h->right, no_bias, EPI_NONE, SET);
}

/* A tensor's numbers on the host, which the caller frees. */
static float *numbers_of(struct vision *v, struct tensor t)
{
    float *out = xmalloc((size_t)t.rows * (size_t)t.cols, sizeof *out);
    v->backend->ops->download(v->backend, (struct tensor){out, DT_F32, t.rows, t.cols, t.cols}, t);
    return out;
}

static struct patch_reading *readings_of(struct vision *v, struct tensor letters, struct tensor kinds,
                                         struct tensor pointer)
{
    float *said = numbers_of(v, letters), *found = numbers_of(v, kinds), *points = numbers_of(v, pointer);
    struct patch_reading *out = xmalloc((size_t)letters.rows, sizeof *out);
    for (int64_t i = 0; i < letters.rows; i++) {
        read_letters(&out[i], said + i * SAID_COLS);
        read_kinds(&out[i], found + i * kinds.cols);
        memcpy(&out[i].pointer, points + i * POINTER_COLS, sizeof out[i].pointer);
    }
    free(said);
    free(found);
    free(points);
    return out;
}

struct patch_reading *vision_heads_read(struct vision *v)
{
    const struct vision_heads *h = &v->weights->heads;
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    int64_t n = vision_patches(v), first = v->weights->prefix.rows;
    struct patch_reading *out = NULL;
    if (!h->letters || v->config->vit.final_norm)
        return NULL;
    struct tensor m = ops->try_alloc(b, v->act, n, h->inner_rows),
                  f = ops->try_alloc(b, v->act, n, h->far_rows),
                  letters = ops->try_alloc(b, DT_F32, n, SAID_COLS),
                  kinds = ops->try_alloc(b, DT_F32, n, h->find_rows),
                  pointer = ops->try_alloc(b, DT_F32, n, POINTER_COLS);
    if (m.data && f.data && letters.data && kinds.data && pointer.data) {
        struct tensor x = tensor_rows(v->x, first, n), u = tensor_rows(v->u, first, n);
        run_letters(v, x, u, letters);
        v->tower->block(v, &h->block, 1);
        run_finder(v, x, u, m, kinds);
        run_pointer(v, x, u, f, pointer);
        out = readings_of(v, letters, kinds, pointer);
    }
    struct tensor *all[] = {&m, &f, &letters, &kinds, &pointer};
    for (int i = 0; i < 5; i++)
        if (all[i]->data)
            ops->free(b, all[i]);
    return out;
}
