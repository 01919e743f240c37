/* config_qwen_vision.c - reads the vision encoders of Qwen3.5, Qwen3-VL and Qwen2.5-VL and the size limits
 * of their images. */
#include "model/config_impl.h"

#include <math.h>
#include <string.h>

/* ---- the vision encoder -------------------------------------------------------------------------------- */

/* Reads a list of block numbers in ascending order into out[most]. Returns their number. */
static int read_blocks(struct reader *r, const char *key, int blocks, int *out, int most)
{
    const json_t *v = reader_get(r, key);
    int n = (int)json_array_size(v);
    if ((v && !json_is_array(v)) || n > most)
        reader_refuse(r, "'%s' is not a list of at most %d blocks", key, most);
    for (int i = 0; i < n && i < most; i++) {
        double x = reader_number(json_array_get(v, (size_t)i));
        bool fits = x >= 0 && x < blocks && x == floor(x) && (!i || x > out[i - 1]);
        if (!fits)
            reader_refuse(r, "'%s' has an entry that is not one of %d blocks, in order", key, blocks);
        out[i] = fits ? (int)x : 0;
    }
    return n < most ? n : most;
}

/* Reads the position table and the DeepStack blocks. */
static void read_qwen3(struct reader *r, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    int positions = reader_int(r, "num_position_embeddings", 1, 1 << 20, -1);
    v->table_side = (int)lrint(sqrt(positions));
    if (v->table_side * v->table_side != positions)
        reader_refuse(r, "'num_position_embeddings' is %d, which is not a square", positions);
    reader_only_text(r, "hidden_act", "gelu_pytorch_tanh");
    if (c->family == FAMILY_QWEN35 && json_array_size(reader_get(r, "deepstack_visual_indexes")))
        reader_refuse(r, "'deepstack_visual_indexes' is not empty, which is not implemented for Qwen3.5");
    if (c->family == FAMILY_QWEN3VL && !reader_get(r, "deepstack_visual_indexes"))
        reader_refuse(r, "'deepstack_visual_indexes' is missing");
    v->n_deepstack =
        read_blocks(r, "deepstack_visual_indexes", v->blocks, v->deepstack, CONFIG_MAX_DEEPSTACK);
    if (v->n_deepstack > c->lm.layers / 2)
        reader_refuse(r, "'deepstack_visual_indexes' has %d entries for a language model of %d layers",
                      v->n_deepstack, c->lm.layers / 2);
}

/* Reads the window size and the blocks with full attention. */
static void read_qwen25(struct reader *r, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    int every[CONFIG_MAX_LAYERS], side = reader_int(r, "window_size", 1, 1 << 16, -1),
                                  cell = v->patch * v->merge;
    v->window = side / cell;
    if (side % cell)
        reader_refuse(r, "'window_size' is %d, not a multiple of %d pixels", side, cell);
    if (!reader_get(r, "fullatt_block_indexes"))
        reader_refuse(r, "'fullatt_block_indexes' is missing");
    int n = read_blocks(r, "fullatt_block_indexes", v->blocks, every, CONFIG_MAX_LAYERS);
    for (int i = 0; i < n; i++)
        v->full_attention[every[i]] = true;
    reader_only_text(r, "hidden_act", "silu");
}

static void check_kind(struct reader *r, enum model_family family)
{
    static const char *const types[] = {
        [FAMILY_QWEN35] = "qwen3_5", [FAMILY_QWEN3VL] = "qwen3_vl", [FAMILY_QWEN25VL] = "qwen2_5_vl"};
    const char *type = json_string_value(reader_get(r, "model_type"));
    if (type && strncmp(type, types[family], strlen(types[family])) != 0)
        reader_refuse(r, "'model_type' is '%s'; expected a vision encoder of %s", type, types[family]);
}

static void read_tower(struct reader *r, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    v->hidden = reader_int(r, "hidden_size", 1, CONFIG_MAX_SIZE, -1);
    v->blocks = reader_int(r, "depth", 1, CONFIG_MAX_LAYERS, -1);
    v->heads = reader_int(r, "num_heads", 1, CONFIG_MAX_HEADS, -1);
    v->mlp = reader_int(r, "intermediate_size", 1, CONFIG_MAX_SIZE, -1);
    v->patch = reader_int(r, "patch_size", 2, 64, -1);
    v->frames = reader_int(r, "temporal_patch_size", 1, 8, -1);
    v->merge = reader_int(r, "spatial_merge_size", 2, 2, 2);
    v->projector = v->merge * v->merge * v->hidden;
    if (v->hidden % v->heads || v->hidden / v->heads % 4)
        reader_refuse(r, "%d columns cannot be split into %d heads of a multiple of 4 columns", v->hidden,
                      v->heads);
    int out = reader_int(r, "out_hidden_size", 1, CONFIG_MAX_SIZE, c->lm.hidden);
    if (out != c->lm.hidden)
        reader_refuse(r, "'out_hidden_size' is %d, but the language model's 'hidden_size' is %d", out,
                      c->lm.hidden);
    (void)reader_int(r, c->family == FAMILY_QWEN25VL ? "in_chans|in_channels" : "in_channels", 3, 3, 3);
    if (c->family == FAMILY_QWEN25VL)
        read_qwen25(r, c);
    else
        read_qwen3(r, c);
    check_kind(r, c->family);
}

/* ---- pixels -------------------------------------------------------------------------------------------- */

static void same_int(struct reader *r, const char *key, int want)
{
    int have = reader_int(r, key, 1, CONFIG_MAX_SIZE, want);
    if (have != want)
        reader_refuse(r, "'%s' is %d, but config.json says %d", key, have, want);
}

/* Reads the limits of an image's pixels. The newer spelling calls them edges, but they are pixels. */
static void read_pixels(struct reader *pre, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    enum {
        CELLS = 64,
        OLD_CELLS = 4,
        MOST_CELLS = 16384
    }; /* limits of published files, if no file gives
                                                             * one */
    static const float mean[] = {0.48145466f, 0.4578275f, 0.40821073f},
                       std[] = {0.26862954f, 0.26130258f, 0.27577711f};
    int cell = v->patch * v->merge * v->patch * v->merge;
    bool old = c->family == FAMILY_QWEN25VL;
    for (int i = 0; i < 3; i++) {
        c->mean[i] = old ? mean[i] : 0.5f;
        c->std[i] = old ? std[i] : 0.5f;
    }
    v->min_pixels = (old ? OLD_CELLS : CELLS) * cell;
    v->max_pixels = MOST_CELLS * cell;
    v->max_patches = v->max_pixels / (v->patch * v->patch);
    if (!pre->object)
        return;
    struct reader size = reader_inside(pre, "size");
    struct reader *from = size.object && reader_get(&size, "shortest_edge|longest_edge") ? &size : pre;
    v->min_pixels = reader_int(from, "shortest_edge|min_pixels", 1, 1 << 28, v->min_pixels);
    v->max_pixels = reader_int(from, "longest_edge|max_pixels", 1, 1 << 28, v->max_pixels);
    if (v->max_pixels < v->min_pixels || v->max_pixels < cell)
        reader_refuse(from, "the maximum of %d pixels is below the minimum of %d or the size of one token",
                      v->max_pixels, v->min_pixels);
    v->max_patches = v->max_pixels / (v->patch * v->patch);
    same_int(pre, "patch_size", v->patch);
    same_int(pre, "merge_size", v->merge);
    same_int(pre, "temporal_patch_size", v->frames);
    config_read_triple(pre, "image_mean", c->mean);
    config_read_triple(pre, "image_std", c->std);
    for (int i = 0; i < 3; i++)
        if (!(c->std[i] > 1e-6f))
            reader_refuse(pre, "'image_std' has an entry that is not positive");
}

static void read_marks(struct reader *config, struct model_config *c)
{
    c->image_token = reader_int(config, "image_token_id", 0, CONFIG_MAX_VOCAB, -1);
    c->image_open = reader_int(config, "vision_start_token_id", 0, CONFIG_MAX_VOCAB, -1);
    c->image_close = reader_int(config, "vision_end_token_id", 0, CONFIG_MAX_VOCAB, -1);
    int vocab = c->lm.vocab;
    if (c->image_token >= vocab || c->image_open >= vocab || c->image_close >= vocab)
        reader_refuse(config, "the ids of image tokens are not below 'vocab_size', %d", vocab);
}

int config_limit_pixels(struct model_config *c, int least, int most, struct err *e)
{
    struct vit_config *v = &c->vit;
    int cell = v->patch * v->merge * v->patch * v->merge;
    if (!least && !most)
        return 0;
    if (!c->vision || !family_is_qwen(c->family))
        return err_set(e, ERR_USAGE,
                       "--min-pixels and --max-pixels apply only to models that accept images of any size");
    v->max_pixels = most ? most : v->max_pixels > least ? v->max_pixels : least;
    v->min_pixels = least ? least : v->min_pixels < v->max_pixels ? v->min_pixels : v->max_pixels;
    if (v->max_pixels < cell || v->min_pixels > v->max_pixels)
        return err_set(e, ERR_USAGE,
                       "images cannot have at least %d and at most %d pixels; one token needs %d",
                       v->min_pixels, v->max_pixels, cell);
    v->max_patches = v->max_pixels / (v->patch * v->patch);
    return 0;
}

void config_read_qwen_vision(struct reader *config, struct reader *vit, struct reader *pre,
                             struct model_config *c)
{
    read_tower(vit, c);
    read_pixels(pre, c);
    read_marks(config, c);
}
