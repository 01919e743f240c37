/* weights_vision_qwen.c - binds the tensors of the vision encoders and mergers of Qwen's models
 * (weights.h).
 *
 * They are named model.visual.X, in older files visual.X. */
#include "model/weights_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const struct binder *x, const char *part)
{
    static _Thread_local char name[160];
    bool older = !safetensors_find(x->s, "model.visual.patch_embed.proj.weight") &&
                 safetensors_find(x->s, "visual.patch_embed.proj.weight");
    snprintf(name, sizeof name, "%svisual.%s", older ? "" : "model.", part);
    return name;
}

static const char *block_name(const struct binder *x, int block, const char *part)
{
    char inside[96];
    snprintf(inside, sizeof inside, "blocks.%d.%s", block, part);
    return name_of(x, inside);
}

static struct tensor vector(struct binder *x, const char *part, int64_t n)
{
    return binder_vector(x, name_of(x, part), n);
}

static struct weight *matrix(struct binder *x, const char *part, int64_t rows, int64_t cols)
{
    return binder_matrix(x, ROLE_OTHER, name_of(x, part), rows, cols);
}

static void bind_swiglu(struct binder *x, int i, struct vit_block *w)
{
    int64_t width = x->c->vit.hidden, mlp = x->c->vit.mlp;
    w->gate = binder_matrix(x, ROLE_TOWER, block_name(x, i, "mlp.gate_proj.weight"), mlp, width);
    w->gate_bias = binder_vector(x, block_name(x, i, "mlp.gate_proj.bias"), mlp);
    w->fc1 = binder_matrix(x, ROLE_TOWER, block_name(x, i, "mlp.up_proj.weight"), mlp, width);
    w->fc1_bias = binder_vector(x, block_name(x, i, "mlp.up_proj.bias"), mlp);
    w->fc2 = binder_matrix(x, ROLE_TOWER, block_name(x, i, "mlp.down_proj.weight"), width, mlp);
    w->fc2_bias = binder_vector(x, block_name(x, i, "mlp.down_proj.bias"), width);
}

static void bind_block(struct binder *x, int i, struct vit_block *w)
{
    int64_t width = x->c->vit.hidden, mlp = x->c->vit.mlp;
    bool old = x->c->vit.window;
    w->norm1 = binder_vector(x, block_name(x, i, "norm1.weight"), width);
    if (!old)
        w->norm1_bias = binder_vector(x, block_name(x, i, "norm1.bias"), width);
    w->qkv = binder_matrix(x, ROLE_TOWER, block_name(x, i, "attn.qkv.weight"), 3 * width, width);
    w->qkv_bias = binder_vector(x, block_name(x, i, "attn.qkv.bias"), 3 * width);
    w->proj = binder_matrix(x, ROLE_TOWER, block_name(x, i, "attn.proj.weight"), width, width);
    w->proj_bias = binder_vector(x, block_name(x, i, "attn.proj.bias"), width);
    w->norm2 = binder_vector(x, block_name(x, i, "norm2.weight"), width);
    if (old) {
        bind_swiglu(x, i, w);
        return;
    }
    w->norm2_bias = binder_vector(x, block_name(x, i, "norm2.bias"), width);
    w->fc1 = binder_matrix(x, ROLE_TOWER, block_name(x, i, "mlp.linear_fc1.weight"), mlp, width);
    w->fc1_bias = binder_vector(x, block_name(x, i, "mlp.linear_fc1.bias"), mlp);
    w->fc2 = binder_matrix(x, ROLE_TOWER, block_name(x, i, "mlp.linear_fc2.weight"), width, mlp);
    w->fc2_bias = binder_vector(x, block_name(x, i, "mlp.linear_fc2.bias"), width);
}

/* Binds the patch embedding of a GGUF file, which has one tensor per frame: w[n, c, frame, y, x] from two
 * of [n, c, y, x]. */
static struct weight *bind_frames(struct binder *x)
{
    const struct vit_config *v = &x->c->vit;
    enum dtype kept = x->o->f32 ? DT_F32 : DT_BF16;
    int64_t area = (int64_t)v->patch * v->patch, cols = 3 * v->frames * area;
    autofree float *all = xcalloc((unsigned long)(v->hidden * cols), sizeof *all);
    for (int f = 0; f < v->frames; f++) {
        const char *name = name_of(x, f ? "patch_embed.proj.weight.1" : "patch_embed.proj.weight");
        autofree float *one =
            binder_numbers(x, binder_take_shape(x, name, SHAPE(v->hidden, 3, v->patch, v->patch)));
        for (int64_t i = 0; one && i < (int64_t)v->hidden * 3; i++)
            memcpy(all + (i * v->frames + f) * area, one + i * area, (size_t)area * sizeof *all);
    }
    struct tensor host = {x->o->shapes_only ? NULL : all, x->o->shapes_only ? kept : DT_F32, v->hidden, cols,
                          cols};
    return binder_own_weight(x, x->b->ops->pack(x->b, host, kept));
}

/* Binds the patch embedding: the kernel [W, 3, frames, patch, patch] of a convolution whose patches do not
 * overlap, as a matrix. */
static struct weight *bind_embedder(struct binder *x)
{
    const struct vit_config *v = &x->c->vit;
    int64_t cols = (int64_t)3 * v->frames * v->patch * v->patch;
    if (safetensors_is_gguf(x->s))
        return bind_frames(x);
    const struct st_tensor *t = binder_take_shape(x, name_of(x, "patch_embed.proj.weight"),
                                                  SHAPE(v->hidden, 3, v->frames, v->patch, v->patch));
    if (!t)
        return NULL;
    struct stored m = binder_plain(t, v->hidden, cols);
    struct weight *w = binder_weight(x, ROLE_OTHER, &m);
    binder_done(x, t);
    return w;
}

static void bind_deepstack(struct binder *x, int i, struct vit_deepstack *w)
{
    int64_t merged = (int64_t)4 * x->c->vit.hidden, out = x->c->lm.hidden, inner = x->c->vit.projector;
    char part[6][64];
    static const char *const ends[] = {"norm.weight",     "norm.bias",         "linear_fc1.weight",
                                       "linear_fc1.bias", "linear_fc2.weight", "linear_fc2.bias"};
    for (int k = 0; k < 6; k++)
        snprintf(part[k], sizeof part[k], "deepstack_merger_list.%d.%s", i, ends[k]);
    w->norm = vector(x, part[0], merged);
    w->norm_bias = vector(x, part[1], merged);
    w->up = matrix(x, part[2], inner, merged);
    w->up_bias = vector(x, part[3], inner);
    w->down = matrix(x, part[4], out, inner);
    w->down_bias = vector(x, part[5], out);
}

static void bind_merger(struct binder *x, struct vision_weights *w)
{
    const struct vit_config *v = &x->c->vit;
    bool old = v->window;
    int64_t width = v->hidden, out = x->c->lm.hidden;
    w->norm = vector(x, old ? "merger.ln_q.weight" : "merger.norm.weight", width);
    if (!old)
        w->norm_bias = vector(x, "merger.norm.bias", width);
    w->up = matrix(x, old ? "merger.mlp.0.weight" : "merger.linear_fc1.weight", v->projector, 4 * width);
    w->up_bias = vector(x, old ? "merger.mlp.0.bias" : "merger.linear_fc1.bias", v->projector);
    w->down = matrix(x, old ? "merger.mlp.2.weight" : "merger.linear_fc2.weight", out, v->projector);
    w->down_bias = vector(x, old ? "merger.mlp.2.bias" : "merger.linear_fc2.bias", out);
}

void binder_vision_qwen(struct binder *x, struct vision_weights *w)
{
    const struct vit_config *v = &x->c->vit;
    int64_t positions = (int64_t)v->table_side * v->table_side, width = v->hidden;
    w->embedder = bind_embedder(x);
    if (!v->window) {
        w->embedder_bias = vector(x, "patch_embed.proj.bias", width);
        w->position =
            binder_upload(x, binder_take_shape(x, name_of(x, "pos_embed.weight"), SHAPE(positions, width)),
                          DT_F32, positions, width);
    }
    for (int i = 0; i < v->blocks; i++)
        bind_block(x, i, &w->blocks[i]);
    for (int i = 0; i < v->n_deepstack; i++)
        bind_deepstack(x, i, &w->deepstack[i]);
    bind_merger(x, w);
}
