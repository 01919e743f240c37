/* config_vision.c - reads the hyperparameters of C-RADIO vision encoders, the projector and image
 * preprocessing. */
#include "model/config_impl.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int hidden, blocks, heads, mlp;
} known_vits[] = {
    {"vit_base_patch16_224", 768, 12, 12, 3072},
    {"vit_large_patch16_224", 1024, 24, 16, 4096},
    {"vit_huge_patch16_224", 1280, 32, 16, 5120},
};

/* Reads sizes from their keys, or from timm's name of this shape. */
static void read_vit(struct reader *r, struct vit_config *v)
{
    struct reader args = reader_inside(r, "args");
    if (args.object && reader_bool(&args, "model_norm", false))
        reader_refuse(r, "'args.model_norm' is true, which is not implemented");
    const char *name = args.object ? json_string_value(reader_get(&args, "model")) : NULL;
    int base[4] = {-1, -1, -1, -1};
    for (size_t i = 0; name && i < sizeof known_vits / sizeof *known_vits; i++)
        if (!strcmp(name, known_vits[i].name))
            memcpy(base, &known_vits[i].hidden, sizeof base);
    if (name && base[0] < 0 && !reader_get(r, "hidden_size"))
        reader_refuse(r, "'args.model' is '%s', whose sizes are not known, and 'hidden_size' is missing",
                      name);
    v->hidden = reader_int(r, "hidden_size", 1, CONFIG_MAX_SIZE, base[0]);
    v->blocks = reader_int(r, "num_hidden_layers", 1, CONFIG_MAX_LAYERS, base[1]);
    v->heads = reader_int(r, "num_attention_heads", 1, CONFIG_MAX_HEADS, base[2]);
    if (reader_get(r, "mlp_ratio"))
        base[3] = (int)lrintf((float)v->hidden * reader_float(r, "mlp_ratio", 0.01, 64, 4));
    v->mlp = reader_int(r, "intermediate_size", 1, CONFIG_MAX_SIZE, base[3]);
    if (v->hidden % v->heads)
        reader_refuse(r, "%d columns cannot be split into %d heads", v->hidden, v->heads);
}

/* Reads the patch limits, whose presence selects dynamic resolution instead of tiles. They may be in
 * `args`, in vision_config or in the preprocessor's file; a maximum of 0 means no limit. */
static void read_canvas(struct reader *vit, struct reader *pre, struct vit_config *v)
{
    struct reader args = reader_inside(vit, "args"), *places[] = {&args, vit, pre}, *from = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !from; i++)
        from = places[i]->object && reader_get(places[i], "min_num_patches") ? places[i] : NULL;
    if (!from)
        return;
    v->min_patches = reader_int(from, "min_num_patches", 4, CONFIG_MAX_PATCHES, -1);
    v->max_patches = reader_int(from, "max_num_patches", 0, CONFIG_MAX_PATCHES, 0);
    v->max_patches = v->max_patches ? v->max_patches : CONFIG_MAX_PATCHES;
    if (v->max_patches < v->min_patches)
        reader_refuse(from, "'max_num_patches' is %d, less than 'min_num_patches', %d", v->max_patches,
                      v->min_patches);
}

/* Reads "cpe_crop" and "cpe_max_size" of `args`: positions are cut from the table instead of resized. */
static void read_native(struct reader *vit, struct vit_config *v)
{
    struct reader args = reader_inside(vit, "args");
    if (!args.object || !reader_bool(&args, "cpe_crop", false))
        return;
    v->native_side = reader_int(&args, "cpe_max_size", 32, 4096, -1);
    if (!v->max_patches || v->native_side % 32)
        reader_refuse(&args,
                      "'cpe_crop' needs 'max_num_patches', and a 'cpe_max_size' that is a multiple of 32");
}

static void read_image(struct reader *r, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    v->tile = reader_int(r, "force_image_size", 32, 1024, v->max_patches ? 512 : -1);
    v->patch = reader_int(r, "patch_size", 16, 16, 16);
    if (v->tile % (2 * v->patch))
        reader_refuse(r, "'force_image_size' is %d, not a multiple of %d", v->tile, 2 * v->patch);
    if (reader_float(r, "downsample_ratio", 0, 1, 0.5) != 0.5f)
        reader_refuse(r, "'downsample_ratio' is not 0.5; nothing else is implemented");
    reader_only_text(r, "ps_version", "v2");
    reader_only_text(r, "image_tag_type", "internvl");
    v->projector = reader_int(r, "projector_hidden_size", 1, CONFIG_MAX_SIZE, -1);
    static const char mark[] = "img_context_token_id|image_context_token_id|image_token_id";
    c->image_token = reader_get(r, mark) ? reader_int(r, mark, 0, CONFIG_MAX_VOCAB, -1) : -1;
    c->thumbnail = reader_bool(r, "use_thumbnail", true);
}

/* CLIP's published normalization, with which the encoder was trained. */
static const float clip_mean[3] = {0.48145466f, 0.4578275f, 0.40821073f};
static const float clip_std[3] = {0.26862954f, 0.26130258f, 0.27577711f};

bool config_read_triple(struct reader *r, const char *names, float out[3])
{
    const json_t *v = r->object ? reader_get(r, names) : NULL;
    if (!v)
        return false;
    for (size_t i = 0; i < 3; i++) {
        out[i] = (float)reader_number(json_array_get(v, i));
        if (json_array_size(v) != 3 || !(fabsf(out[i]) < 1e6f))
            reader_refuse(r, "'%s' is not three numbers", names);
    }
    return true;
}

/* Reads mean and standard deviation: in config.json, in the preprocessor's file or, as transformers 5
 * saves them, in vision_config. */
static void read_norm(struct reader *config, struct reader *pre, struct reader *vit, struct model_config *c)
{
    memcpy(c->mean, clip_mean, sizeof clip_mean);
    memcpy(c->std, clip_std, sizeof clip_std);
    bool mean = config_read_triple(config, "norm_mean", c->mean) ||
                config_read_triple(pre, "norm_mean|image_mean", c->mean) ||
                config_read_triple(vit, "norm_mean", c->mean);
    bool std = config_read_triple(config, "norm_std", c->std) ||
               config_read_triple(pre, "norm_std|image_std", c->std) ||
               config_read_triple(vit, "norm_std", c->std);
    if (!mean || !std)
        warn("%s: 'norm_mean' or 'norm_std' is missing; using CLIP's values", config->where);
    for (int i = 0; i < 3; i++)
        if (!(c->std[i] > 1e-6f))
            reader_refuse(config, "'norm_std' has an entry that is not positive");
}

void config_read_vision(struct reader *config, struct reader *pre, struct model_config *c)
{
    struct reader vit = reader_inside(config, "vision_config");
    read_canvas(&vit, pre, &c->vit);
    read_native(&vit, &c->vit);
    read_image(config, c);
    read_vit(&vit, &c->vit);
    read_norm(config, pre, &vit, c);
    c->max_tiles = 12;
    if (pre->object) {
        c->max_tiles = reader_int(pre, "max_num_tiles", 1, 64, 12);
        c->thumbnail = reader_bool(pre, "use_thumbnail", c->thumbnail);
    }
    if (c->vit.max_patches)
        c->max_tiles = 1;
    c->vit.final_norm = c->vit.max_patches && c->lm.extra_predictors;
}
