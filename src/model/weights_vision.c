/* weights_vision.c - tensors of the tower and the projector; see weights.h. */
#include "model/weights_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EXTRA = 64 << 20 };

/* Binds pos_embed [1, side^2, W], resized to [grid^2, W] for tiles. */
static struct tensor bind_position(struct binder *x, const char *name)
{
    int width = x->c->vit.hidden, grid = config_grid(x->c), side = 0;
    const struct st_tensor *t = binder_take(x, name);
    if (t && t->dims == 3 && t->shape[0] == 1 && t->shape[2] == width && t->shape[1] <= 1 << 24)
        side = (int)lrint(sqrt((double)t->shape[1]));
    if (t && (side < 1 || (int64_t)side * side != t->shape[1])) {
        char found[128];
        safetensors_shape_text(t, found, sizeof found);
        binder_fail(x, "tensor '%s' has shape %s; expected [1, a square, %d]", name, found, width);
        return (struct tensor){0};
    }
    if (t && x->c->vit.native_side > side * x->c->vit.patch) {
        binder_fail(x, "tensor '%s' has positions for %d pixels a side, the config says %d", name,
                    side * x->c->vit.patch, x->c->vit.native_side);
        return (struct tensor){0};
    }
    float *table = binder_numbers(x, t), *out = NULL;
    if (x->c->vit.max_patches)
        return binder_put_numbers(x, table, DT_F32, (int64_t)side * side, width);
    if (table) {
        out = xcalloc((unsigned long)grid * (unsigned long)grid * (unsigned long)width, sizeof *out);
        if (!x->o->shapes_only)
            tensor_resize_grid((struct tensor){out, DT_F32, (int64_t)grid * grid, width, width},
                               (struct tensor){table, DT_F32, (int64_t)side * side, width, width}, grid,
                               grid);
    }
    free(table);
    return binder_put_numbers(x, out, binder_activation(x), (int64_t)grid * grid, width);
}

/* Binds cls_token.token [n_skip, W]; n_skip is known only from the tensor. */
static struct tensor bind_prefix(struct binder *x, const char *name)
{
    int64_t width = x->c->vit.hidden;
    const struct st_tensor *t = binder_take(x, name);
    if (t && (t->dims != 2 || t->shape[0] > 1024))
        binder_fail(x, "tensor '%s' is not a list of at most 1024 tokens", name);
    int64_t n = t && t->dims == 2 && !binder_stopped(x) ? t->shape[0] : 0;
    return binder_upload(x, binder_take_shape(x, name, SHAPE(n, width)), binder_activation(x), n, width);
}

static const char *block_name(const char *before, const char *part)
{
    static _Thread_local char name[128];
    snprintf(name, sizeof name, "%s%s", before, part);
    return name;
}

static void bind_block(struct binder *x, const char *before, struct vit_block *w)
{
    int64_t width = x->c->vit.hidden, mlp = x->c->vit.mlp;
    w->norm1 = binder_vector(x, block_name(before, "norm1.weight"), width);
    w->norm1_bias = binder_vector(x, block_name(before, "norm1.bias"), width);
    w->qkv = binder_matrix(x, ROLE_TOWER, block_name(before, "attn.qkv.weight"), 3 * width, width);
    w->qkv_bias = binder_vector(x, block_name(before, "attn.qkv.bias"), 3 * width);
    w->proj = binder_matrix(x, ROLE_TOWER, block_name(before, "attn.proj.weight"), width, width);
    w->proj_bias = binder_vector(x, block_name(before, "attn.proj.bias"), width);
    w->norm2 = binder_vector(x, block_name(before, "norm2.weight"), width);
    w->norm2_bias = binder_vector(x, block_name(before, "norm2.bias"), width);
    w->fc1 = binder_matrix(x, ROLE_TOWER, block_name(before, "mlp.fc1.weight"), mlp, width);
    w->fc1_bias = binder_vector(x, block_name(before, "mlp.fc1.bias"), mlp);
    w->fc2 = binder_matrix(x, ROLE_TOWER, block_name(before, "mlp.fc2.weight"), width, mlp);
    w->fc2_bias = binder_vector(x, block_name(before, "mlp.fc2.bias"), width);
}

static void bind_extra_tensor(struct binder *x, const struct st_tensor *t, struct extra_tensor *out)
{
    const int64_t *shape = t->shape;
    out->name = xstrdup(t->name + strlen(VISION_EXTRA));
    out->rows = t->dims == 1 ? 1 : t->dims == 2 ? shape[0] : shape[0] * shape[1];
    out->cols = shape[t->dims - 1];
    if (t->dims == 1) {
        out->vector = binder_vector(x, t->name, out->cols);
    } else if (t->dims == 2) {
        out->matrix = binder_matrix(x, ROLE_GATE, t->name, out->rows, out->cols);
    } else if (binder_take_shape(x, t->name, 3, shape)) {
        struct stored m = binder_plain(t, out->rows, out->cols);
        out->matrix = binder_weight(x, ROLE_GATE, &m);
        binder_done(x, t);
    }
}

static struct extra_tensor *add_extra(struct vision_extra *extra)
{
    extra->list = xrealloc(extra->list, (size_t)extra->n + 1, sizeof *extra->list);
    extra->list[extra->n] = (struct extra_tensor){0};
    return &extra->list[extra->n++];
}

/* Binds the tensors that only heads on the tower use, and the block that they may have. The list has the
 * block's first matrix, so that heads that need the block can look for it. */
static void bind_extra(struct binder *x, struct vision_extra *extra)
{
    const char block[] = VISION_EXTRA "block.", first[] = VISION_EXTRA "block.attn.qkv.weight";
    int n = safetensors_count(x->s), width = x->c->vit.hidden;
    if (safetensors_find(x->s, first)) {
        bind_block(x, block, &extra->block);
        *add_extra(extra) = (struct extra_tensor){.name = xstrdup(first + strlen(VISION_EXTRA)),
                                                  .rows = 3 * width,
                                                  .cols = width,
                                                  .matrix = extra->block.qkv};
    }
    for (int i = 0; i < n && !binder_stopped(x); i++) {
        const struct st_tensor *t = safetensors_at(x->s, i);
        if (strncmp(t->name, VISION_EXTRA, strlen(VISION_EXTRA)) || !strncmp(t->name, block, strlen(block)))
            continue;
        if (t->dims < 1 || t->dims > 3 || t->bytes > MAX_EXTRA) {
            binder_fail(x, "tensor '%s' has %d dimensions and %zu bytes; at most 3 and %d are supported",
                        t->name, t->dims, t->bytes, MAX_EXTRA);
            return;
        }
        bind_extra_tensor(x, t, add_extra(extra));
    }
}

void binder_vision(struct binder *x, struct vision_weights *w)
{
    const struct vit_config *v = &x->c->vit;
    if (family_is_qwen(x->c->family)) {
        binder_vision_qwen(x, w);
        return;
    }
    w->embedder = binder_matrix(x, ROLE_OTHER, VIT "patch_generator.embedder.weight", v->hidden,
                                (int64_t)3 * v->patch * v->patch);
    w->position = bind_position(x, VIT "patch_generator.pos_embed");
    w->prefix = bind_prefix(x, VIT "patch_generator.cls_token.token");
    for (int i = 0; i < v->blocks; i++) {
        char before[96];
        snprintf(before, sizeof before, VIT "blocks.%d.", i);
        bind_block(x, before, &w->blocks[i]);
    }
    w->norm = binder_vector(x, "mlp1.0.weight", (int64_t)4 * v->hidden);
    w->up = binder_matrix(x, ROLE_OTHER, "mlp1.1.weight", v->projector, (int64_t)4 * v->hidden);
    w->down = binder_matrix(x, ROLE_OTHER, "mlp1.3.weight", x->c->lm.hidden, v->projector);
    bind_extra(x, &w->extra);
}
