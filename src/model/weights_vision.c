/* weights_vision.c - binds the tensors of the C-RADIO vision encoder, the projector and the screen heads
 * (weights.h). */
#include "model/patch_map.h"
#include "model/weights_impl.h"

#define HEADS   "vision_model.heads."
#define POINTER HEADS "pointer."

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Returns the rows of a head's matrix, whose size is known only from the tensor; 0 if it is missing or too
 * large. */
static int64_t head_rows(const struct binder *x, const char *name)
{
    const struct st_tensor *t = safetensors_find(x->s, name);
    return t && t->dims == 2 && t->shape[0] <= 4096 ? t->shape[0] : 0;
}

static void bind_letters(struct binder *x, struct vision_heads *h)
{
    const int64_t width = x->c->vit.hidden, slots = PATCH_SLOTS;
    h->norm = binder_vector(x, HEADS "norm.weight", width);
    h->norm_bias = binder_vector(x, HEADS "norm.bias", width);
    h->present = binder_matrix(x, ROLE_GATE, HEADS "present.weight", slots, width);
    h->present_bias = binder_vector(x, HEADS "present.bias", slots);
    h->shift = binder_matrix(x, ROLE_GATE, HEADS "shift.weight", slots, width);
    h->shift_bias = binder_vector(x, HEADS "shift.bias", slots);
    const struct st_tensor *letters =
        binder_take_shape(x, HEADS "letter", SHAPE(slots, PATCH_LETTERS, width));
    if (letters) {
        struct stored m = binder_plain(letters, slots * PATCH_LETTERS, width);
        h->letters = binder_weight(x, ROLE_GATE, &m);
        binder_done(x, letters);
    }
}

static void bind_finder(struct binder *x, struct vision_heads *h)
{
    const int64_t width = x->c->vit.hidden;
    h->find_norm = binder_vector(x, HEADS "find.norm.weight", width);
    h->find_norm_bias = binder_vector(x, HEADS "find.norm.bias", width);
    h->inner = binder_matrix(x, ROLE_GATE, HEADS "find.inner.weight", h->inner_rows, width);
    h->inner_bias = binder_vector(x, HEADS "find.inner.bias", h->inner_rows);
    h->find = binder_matrix(x, ROLE_GATE, HEADS "find.out.weight", h->find_rows, h->inner_rows);
    h->find_bias = binder_vector(x, HEADS "find.out.bias", h->find_rows);
}

static void bind_pointer(struct binder *x, struct vision_heads *h)
{
    const int64_t width = x->c->vit.hidden;
    h->pointer_norm = binder_vector(x, POINTER "norm.weight", width);
    h->pointer_norm_bias = binder_vector(x, POINTER "norm.bias", width);
    h->query = binder_matrix(x, ROLE_GATE, POINTER "query.weight", POINTER_WIDTH, width);
    h->query_bias = binder_vector(x, POINTER "query.bias", POINTER_WIDTH);
    h->key = binder_matrix(x, ROLE_GATE, POINTER "key.weight", POINTER_WIDTH, width);
    h->key_bias = binder_vector(x, POINTER "key.bias", POINTER_WIDTH);
    h->nothing = binder_matrix(x, ROLE_GATE, POINTER "nothing.weight", 1, width);
    h->nothing_bias = binder_vector(x, POINTER "nothing.bias", 1);
    h->far = binder_matrix(x, ROLE_GATE, POINTER "far.weight", h->far_rows, width);
    h->far_bias = binder_vector(x, POINTER "far.bias", h->far_rows);
    h->down = binder_matrix(x, ROLE_GATE, POINTER "down", POINTER_STEPS, h->far_rows);
    h->right = binder_matrix(x, ROLE_GATE, POINTER "right", POINTER_STEPS, h->far_rows);
}

/* Binds the screen heads, which are optional as a whole. */
static void bind_heads(struct binder *x, struct vision_heads *h)
{
    if (!safetensors_find(x->s, HEADS "letter"))
        return;
    h->inner_rows = head_rows(x, HEADS "find.inner.weight");
    h->find_rows = head_rows(x, HEADS "find.out.weight");
    h->far_rows = head_rows(x, POINTER "far.weight");
    if (h->inner_rows < 1 || h->find_rows < ELEMENT_KINDS || h->far_rows < 1) {
        binder_fail(x,
                    "the tensors '" HEADS
                    "*' are not screen heads with characters, %d element classes and a pointer",
                    ELEMENT_KINDS);
        return;
    }
    bind_letters(x, h);
    bind_block(x, HEADS "block.", &h->block);
    bind_finder(x, h);
    bind_pointer(x, h);
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
    bind_heads(x, &w->heads);
}
