/* vision_heads.c - what a tower's heads say of each patch (patch_map.h): a norm and three products for
 * letters, a norm and an MLP for kinds of elements.
 *
 *   u = LN(x)      present = sigmoid(u Wp + bp)   shift = u Ws + bs   letter = argmax_{c > 0} u W[slot, c]
 *   v = LN'(x)     kind = softmax of the first rows of Wo GELU(v Wi + bi) + bo
 *
 * It takes 200,000 products a patch, a hundredth of the tower's, so that it is done for every picture.
 */
#include "model/vision_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LETTER_COLS = PATCH_SLOTS * PATCH_LETTERS, SAID_COLS = 2 * PATCH_SLOTS + LETTER_COLS };
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

/* The device's part: letters [n, SAID_COLS] and kinds [n, find_rows], both f32. */
static void run_heads(struct vision *v, struct tensor x, struct tensor u, struct tensor m,
                      struct tensor letters, struct tensor kinds)
{
    const struct ops *ops = v->backend->ops;
    const struct vision_heads *h = &v->weights->heads;
    struct backend *b = v->backend;
    static const struct tensor no_bias = {0};
    ops->layernorm(b, u, x, h->norm, h->norm_bias, reader_eps);
    ops->linear(b, tensor_cols(letters, 0, PATCH_SLOTS), u, h->present, h->present_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(letters, PATCH_SLOTS, PATCH_SLOTS), u, h->shift, h->shift_bias, EPI_NONE, SET);
    ops->linear(b, tensor_cols(letters, 2 * PATCH_SLOTS, LETTER_COLS), u, h->letters, no_bias, EPI_NONE, SET);
    ops->layernorm(b, u, x, h->find_norm, h->find_norm_bias, reader_eps);
    ops->linear(b, m, u, h->inner, h->inner_bias, EPI_GELU, SET);
    ops->linear(b, kinds, m, h->find, h->find_bias, EPI_NONE, SET);
}

/* A tensor's numbers on the host, which the caller frees. */
static float *numbers_of(struct vision *v, struct tensor t)
{
    float *out = xmalloc((size_t)t.rows * (size_t)t.cols, sizeof *out);
    v->backend->ops->download(v->backend, (struct tensor){out, DT_F32, t.rows, t.cols, t.cols}, t);
    return out;
}

struct patch_reading *vision_heads_read(struct vision *v, int tile)
{
    const struct vision_heads *h = &v->weights->heads;
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    int64_t n = vision_patches(v), first = tile * vision_sequence(v) + v->weights->prefix.rows;
    struct patch_reading *out = NULL;
    if (!h->letters || v->config->vit.final_norm)
        return NULL;
    struct tensor m = ops->try_alloc(b, v->act, n, h->inner_rows),
                  letters = ops->try_alloc(b, DT_F32, n, SAID_COLS),
                  kinds = ops->try_alloc(b, DT_F32, n, h->find_rows);
    if (m.data && letters.data && kinds.data) {
        run_heads(v, tensor_rows(v->x, first, n), tensor_rows(v->u, first, n), m, letters, kinds);
        float *said = numbers_of(v, letters), *found = numbers_of(v, kinds);
        out = xmalloc((size_t)n, sizeof *out);
        for (int64_t i = 0; i < n; i++) {
            read_letters(&out[i], said + i * SAID_COLS);
            read_kinds(&out[i], found + i * h->find_rows);
        }
        free(said);
        free(found);
    }
    struct tensor *all[] = {&m, &letters, &kinds};
    for (int i = 0; i < 3; i++)
        if (all[i]->data)
            ops->free(b, all[i]);
    return out;
}
