/* vision_qwen25.c - the vision encoder and merger of Qwen2.5-VL.
 *
 *     x    = W_patch . patch
 *     for each block:   x = x + proj( Attn( R N1(x) ) )
 *                       x = x + W_down ( SiLU( W_gate u + b ) * ( W_up u + b ) ) + b       u = N2(x)
 *     Y    = the four patches of a cell of N(x), concatenated
 *     rows = fc2( GELU( fc1(Y) ) )                                                         GELU with erf
 *
 * N is RMSNorm with eps 1e-6, R as in vision_qwen.c; it has no position table. The merged cells of an
 * image (four patches each) are divided into square windows, which are smaller at its right and lower
 * edge. Most blocks attend inside each window, a few over the whole image. The cells are therefore put
 * into window order before the first block and back before the merger, so that a window is a range of
 * consecutive rows. */
#include "model/vision_impl.h"

static const float norm_eps = 1e-6f;
static const struct tensor no_bias = {0};

enum { CELL = 4 }; /* patches per merged cell */

/* ---- windows ------------------------------------------------------------------------------------------- */

/* Sets v->order and v->windows for an image of high x wide merged cells. */
static void deal_out(struct vision *v, int high, int wide)
{
    int side = v->config->vit.window, n = 0;
    v->order = xrealloc(v->order, (unsigned long)high * (unsigned long)wide, sizeof *v->order);
    v->windows = xrealloc(v->windows, (unsigned long)high * (unsigned long)wide, sizeof *v->windows);
    v->n_windows = 0;
    for (int top = 0; top < high; top += side)
        for (int left = 0; left < wide; left += side) {
            int first = n;
            for (int y = top; y < top + side && y < high; y++)
                for (int x = left; x < left + side && x < wide; x++)
                    v->order[n++] = y * wide + x;
            v->windows[v->n_windows++] = (n - first) * CELL;
        }
}

/* Copies rows of cells from image order to window order, or back. */
static void reorder(struct vision *v, struct tensor to, struct tensor from, bool back)
{
    int64_t cells = vision_patches(v) / CELL;
    for (int64_t i = 0, n; i < cells; i += n) {
        for (n = 1; i + n < cells && v->order[i + n] == v->order[i] + n; n++)
            ;
        int64_t here = i * CELL, there = (int64_t)v->order[i] * CELL;
        v->backend->ops->copy(v->backend, tensor_rows(to, back ? there : here, n * CELL),
                              tensor_rows(from, back ? here : there, n * CELL));
    }
}

/* Attends inside windows; consecutive windows of the same size are one call. */
static void attend_windows(struct vision *v, struct tensor a, struct tensor qkv)
{
    int64_t at = 0;
    for (int i = 0, n; i < v->n_windows; i += n) {
        for (n = 1; i + n < v->n_windows && v->windows[i + n] == v->windows[i]; n++)
            ;
        int64_t rows = (int64_t)n * v->windows[i];
        v->backend->ops->attend_tiles(v->backend, tensor_rows(a, at, rows), tensor_rows(qkv, at, rows),
                                      v->config->vit.heads, n);
        at += rows;
    }
}

/* ---- the encoder --------------------------------------------------------------------------------------- */

/* Computes window order and rotary table. v->position is a dummy row: vision.c checks whether it is set. */
static int place(struct vision *v, int rows, int cols, struct err *e)
{
    int merge = v->config->vit.merge;
    deal_out(v, rows / merge, cols / merge);
    return vision_replace(v, &v->position, v->act, 1, 1, e) || vision_make_rotary(v, rows, cols, e) ? -1 : 0;
}

static void embed(struct vision *v, int tiles)
{
    int64_t n = vision_patches(v);
    struct tensor u = tensor_rows(v->u, 0, n);
    v->backend->ops->linear(v->backend, u, tensor_rows(v->patches, 0, n), v->weights->embedder, no_bias,
                            EPI_NONE, SET);
    reorder(v, tensor_rows(v->x, 0, n), u, false);
}

static void block(struct vision *v, const struct vit_block *w, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vit_config *c = &v->config->vit;
    int64_t n = vision_patches(v);
    struct tensor x = tensor_rows(v->x, 0, n), u = tensor_rows(v->u, 0, n), a = tensor_rows(v->a, 0, n),
                  qkv = tensor_rows(v->qkv, 0, n);

    ops->rmsnorm(b, u, x, w->norm1, norm_eps);
    ops->linear(b, qkv, u, w->qkv, w->qkv_bias, EPI_NONE, SET);
    ops->rotate(b, tensor_cols(qkv, 0, 2 * (int64_t)c->hidden), v->rotary, 2 * c->heads);
    if (c->full_attention[w - v->weights->blocks])
        ops->attend_tiles(b, a, qkv, c->heads, 1);
    else
        attend_windows(v, a, qkv);
    ops->linear(b, x, a, w->proj, w->proj_bias, EPI_NONE, ADD);

    ops->rmsnorm(b, u, x, w->norm2, norm_eps);
    vision_mlp(v, w, x, u, EPI_NONE);
}

static void merge(struct vision *v, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t n = vision_patches(v), tokens = vision_tokens(v);
    struct tensor a = tensor_rows(v->a, 0, n), u = tensor_rows(v->u, 0, n), p = tensor_rows(v->p, 0, tokens);
    reorder(v, a, tensor_rows(v->x, 0, n), true);
    ops->rmsnorm(b, u, a, w->norm, norm_eps);
    ops->linear(b, p, joined_rows(u, CELL), w->up, w->up_bias, EPI_GELU, SET);
    ops->linear(b, tensor_rows(v->rows, 0, tokens), p, w->down, w->down_bias, EPI_NONE, SET);
}

const struct tower tower_qwen25 = {.place = place, .embed = embed, .block = block, .project = merge};
