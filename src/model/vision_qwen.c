/* vision_qwen.c - the vision encoder and merger of Qwen3.5 and Qwen3-VL.
 *
 *     x    = W_patch . patch + b + P(y, x)                     P: a square table, sampled bilinearly so that
 *                                                              its corners are those of the image
 *     for each block:   x = x + proj( Attn( R LN1(x) ) )       bidirectional over all patches of the image
 *                       x = x + fc2( GELU_tanh( fc1( LN2(x) ) ) )
 *     Y    = the four patches of a cell of LN(x), concatenated
 *     rows = fc2( GELU( fc1(Y) ) )                             GELU with erf here, with tanh above
 *
 * Qwen3-VL uses DeepStack: after some blocks, numbered from 0, a separate merger computes rows that the
 * language model adds to the residual stream after its first layers (language.h). Its norm is over the
 * concatenated patches:
 *
 *     rows_n = fc2_n( GELU( fc1_n( LN_n( the four patches of a cell of x ) ) ) )
 *
 * R rotates queries and keys: pair (i, i + d/2) of a head by y f_i for i < d/4, by x f_(i - d/4) above,
 * with f_m = 10000^(-4m/d). Patches are ordered by cell (preprocess_qwen.h), so the merger only views four
 * rows as one; positions and angles are put into the same order. LayerNorm eps 1e-6, biases everywhere. */
#include "model/vision_impl.h"

#include <math.h>
#include <stdlib.h>

static const float norm_eps = 1e-6f, theta = 10000;

/* ---- positions of a canvas ----------------------------------------------------------------------------- */

/* Writes the cosines and then the sines of the angles of patch (y, x). */
static void put_angles(float *to, int y, int x, int pairs)
{
    int half = pairs / 2;
    for (int i = 0; i < pairs; i++) {
        float f = 1 / powf(theta, (float)(2 * (i % half)) / (float)pairs);
        float angle = (float)(i < half ? y : x) * f;
        to[i] = cosf(angle);
        to[pairs + i] = sinf(angle);
    }
}

int vision_make_rotary(struct vision *v, int rows, int cols, struct err *e)
{
    const struct vit_config *c = &v->config->vit;
    int pairs = c->hidden / c->heads / 2, merge = c->merge, n = rows * cols;
    if (vision_replace(v, &v->rotary, DT_F32, n, 2 * pairs, e))
        return -1;
    autofree float *table = xmalloc((unsigned long)n * (unsigned long)pairs, 2 * sizeof *table);
    for (int i = 0; i < n; i++) {
        int place = i / (merge * merge), block = v->order ? v->order[place] : place,
            inside = i % (merge * merge), across = cols / merge;
        put_angles(table + (size_t)i * 2 * (size_t)pairs, block / across * merge + inside / merge,
                   block % across * merge + inside % merge, pairs);
    }
    v->backend->ops->upload(v->backend, v->rotary, (struct tensor){table, DT_F32, n, 2 * pairs, 2 * pairs});
    return 0;
}

static int place(struct vision *v, int rows, int cols, struct err *e)
{
    if (vision_replace(v, &v->position, v->act, (int64_t)rows * cols, v->config->vit.hidden, e) ||
        vision_make_rotary(v, rows, cols, e))
        return -1;
    v->backend->ops->sample_grid(v->backend, v->position, v->weights->position, cols, v->config->vit.merge);
    return 0;
}

/* ---- the encoder --------------------------------------------------------------------------------------- */

static void embed(struct vision *v, int tiles)
{
    struct backend *b = v->backend;
    int64_t n = vision_patches(v);
    struct tensor x = tensor_rows(v->x, 0, n);
    b->ops->copy(b, x, v->position);
    b->ops->linear(b, x, tensor_rows(v->patches, 0, n), v->weights->embedder, v->weights->embedder_bias,
                   EPI_NONE, ADD);
}

/* Computes the rows of DeepStack merger n, stored in v->rows after those of the main merger. */
static void deepstack_rows(struct vision *v, int n)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vit_deepstack *w = &v->weights->deepstack[n];
    int64_t all = vision_patches(v), tokens = vision_tokens(v), width = v->config->lm.hidden;
    struct tensor u = joined_rows(tensor_rows(v->u, 0, all), all / tokens), p = tensor_rows(v->p, 0, tokens);
    ops->layernorm(b, u, joined_rows(tensor_rows(v->x, 0, all), all / tokens), w->norm, w->norm_bias,
                   norm_eps);
    ops->linear(b, p, u, w->up, w->up_bias, EPI_GELU, SET);
    ops->linear(b, tensor_cols(tensor_rows(v->rows, 0, tokens), (n + 1) * width, width), p, w->down,
                w->down_bias, EPI_NONE, SET);
}

static void block(struct vision *v, const struct vit_block *w, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    int64_t n = vision_patches(v);
    int heads = v->config->vit.heads, width = v->config->vit.hidden;
    struct tensor x = tensor_rows(v->x, 0, n), u = tensor_rows(v->u, 0, n), a = tensor_rows(v->a, 0, n);
    struct tensor qkv = tensor_rows(v->qkv, 0, n);

    ops->layernorm(b, u, x, w->norm1, w->norm1_bias, norm_eps);
    ops->linear(b, qkv, u, w->qkv, w->qkv_bias, EPI_NONE, SET);
    ops->rotate(b, tensor_cols(qkv, 0, 2 * width), v->rotary, 2 * heads);
    ops->attend_tiles(b, a, qkv, heads, 1);
    ops->linear(b, x, a, w->proj, w->proj_bias, EPI_NONE, ADD);

    ops->layernorm(b, u, x, w->norm2, w->norm2_bias, norm_eps);
    vision_mlp(v, w, x, u, EPI_GELU_TANH);
    for (int k = 0; k < v->config->vit.n_deepstack; k++)
        if (w == &v->weights->blocks[v->config->vit.deepstack[k]])
            deepstack_rows(v, k);
}

static void merge(struct vision *v, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t n = vision_patches(v), tokens = vision_tokens(v);
    struct tensor u = tensor_rows(v->u, 0, n), p = tensor_rows(v->p, 0, tokens);
    ops->layernorm(b, u, tensor_rows(v->x, 0, n), w->norm, w->norm_bias, norm_eps);
    ops->linear(b, p, joined_rows(u, n / tokens), w->up, w->up_bias, EPI_GELU, SET);
    ops->linear(b, tensor_cols(tensor_rows(v->rows, 0, tokens), 0, v->config->lm.hidden), p, w->down,
                w->down_bias, EPI_NONE, SET);
}

const struct tower tower_qwen = {.place = place, .embed = embed, .block = block, .project = merge};
