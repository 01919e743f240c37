/* vision_radio.c - the C-RADIO vision encoder, pixel shuffle and projector; equations in vision.h. */
#include "model/vision_impl.h"

#include <math.h>
#include <stdlib.h>

static const struct tensor no_bias = {0};
static const float norm_eps = 1e-6f, projector_eps = 1e-5f;

/* Computes x = [ prefix ; position + W_patch . patch ] for each tile. */
static void embed_tiles(struct vision *v, int tiles)
{
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t skip = w->prefix.rows, n = vision_sequence(v), count = vision_patches(v);
    for (int t = 0; t < tiles; t++) {
        struct tensor x = tensor_rows(v->x, t * n + skip, count);
        if (skip)
            b->ops->copy(b, tensor_rows(v->x, t * n, skip), w->prefix);
        b->ops->copy(b, x, v->position);
        b->ops->linear(b, x, tensor_rows(v->patches, t * count, count), w->embedder, no_bias, EPI_NONE, ADD);
    }
}

static void run_block(struct vision *v, const struct vit_block *w, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    int64_t rows = tiles * vision_sequence(v);
    struct tensor x = tensor_rows(v->x, 0, rows), u = tensor_rows(v->u, 0, rows),
                  a = tensor_rows(v->a, 0, rows);
    struct tensor qkv = tensor_rows(v->qkv, 0, rows);

    ops->layernorm(b, u, x, w->norm1, w->norm1_bias, norm_eps);
    ops->linear(b, qkv, u, w->qkv, w->qkv_bias, EPI_NONE, SET);
    ops->attend_tiles(b, a, qkv, v->config->vit.heads, tiles);
    ops->linear(b, x, a, w->proj, w->proj_bias, EPI_NONE, ADD);

    ops->layernorm(b, u, x, w->norm2, w->norm2_bias, norm_eps);
    vision_mlp(v, w, x, u, EPI_GELU);
}

/* Returns the encoder's output without its prefix tokens. */
static struct tensor features(struct vision *v, int tile)
{
    struct backend *b = v->backend;
    int64_t first = tile * vision_sequence(v) + v->weights->prefix.rows;
    struct tensor x = tensor_rows(v->x, first, vision_patches(v)),
                  u = tensor_rows(v->u, first, vision_patches(v));
    if (!v->config->vit.final_norm)
        return x;
    b->ops->layernorm(b, u, x, v->ones, v->zeros, norm_eps);
    return u;
}

/* Computes pixel shuffle and projector. */
static void project_tiles(struct vision *v, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t tokens = vision_tokens(v);
    struct tensor s = tensor_rows(v->s, 0, tiles * tokens), p = tensor_rows(v->p, 0, tiles * tokens);
    for (int t = 0; t < tiles; t++)
        ops->pixel_shuffle(b, tensor_rows(v->s, t * tokens, tokens), features(v, t), v->patch_cols);
    ops->rmsnorm(b, s, s, w->norm, projector_eps);
    ops->linear(b, p, s, w->up, no_bias, EPI_RELU2, SET);
    ops->linear(b, tensor_rows(v->rows, 0, tiles * tokens), p, w->down, no_bias, EPI_NONE, SET);
}

/* Computes the positions of a canvas: the table resized to it or, for a native image, the upper left part
 * of the table. Returns -1 with e. */
static int make_position(struct vision *v, int rows, int cols, struct err *e)
{
    struct backend *b = v->backend;
    int side = (int)lrint(sqrt((double)v->weights->position.rows)), width = v->config->vit.hidden;
    if (vision_replace(v, &v->position, v->act, (int64_t)rows * cols, width, e))
        return -1;
    if (!v->config->vit.native_side) {
        b->ops->resize_grid(b, v->position, v->weights->position, rows, cols);
        return 0;
    }
    if (!v->table.data && vision_replace(v, &v->table, v->act, (int64_t)side * side, width, e))
        return -1;
    b->ops->resize_grid(b, v->table, v->weights->position, side, side); /* same size: converts to the
                                                                         * activation type */
    for (int r = 0; r < rows; r++)
        b->ops->copy(b, tensor_rows(v->position, (int64_t)r * cols, cols),
                     tensor_rows(v->table, (int64_t)r * side, cols));
    return 0;
}

static void make_final_norm(struct vision *v)
{
    if (!v->config->vit.final_norm)
        return;
    int width = v->config->vit.hidden;
    autofree float *ones = xmalloc((unsigned long)width, sizeof *ones);
    for (int i = 0; i < width; i++)
        ones[i] = 1;
    v->ones = v->backend->ops->alloc(v->backend, DT_F32, 1, width);
    v->zeros = v->backend->ops->alloc(v->backend, DT_F32, 1, width);
    v->backend->ops->upload(v->backend, v->ones, (struct tensor){ones, DT_F32, 1, width, width});
}

const struct tower tower_radio = {
    .open = make_final_norm,
    .place = make_position,
    .embed = embed_tiles,
    .block = run_block,
    .project = project_tiles,
    .cut_on_device = true,
};
