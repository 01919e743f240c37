/* config.h - the numbers of a model, all read from its directory.
 *
 * Nothing about a model is known here beforehand except what this family means by its keys: sizes,
 * pattern, normalisation, stop tokens come from config.json, preprocessor_config.json (or, where that is missing,
 * processor_config.json), generation_config.json and hf_quant_config.json.  A value this program does not implement is refused with the key named;
 * whether the tensors agree with the numbers is checked when they are bound (weights.h).
 */
#ifndef HOLORUN_MODEL_CONFIG_H
#define HOLORUN_MODEL_CONFIG_H

#include "base/err.h"
#include "ops/ops.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CONFIG_MAX_LAYERS = 512,
    CONFIG_MAX_EOS = 16,
    CONFIG_TEXT_MAX =
        32 << 20, /* bytes of config.json: a large mixture of experts names each of its matrices */
};

/* One layer is one sub-layer: h = h + mixer(RMSNorm(h)). */
enum layer_kind { LAYER_MAMBA = 'M', LAYER_ATTENTION = '*', LAYER_MLP = '-', LAYER_MOE = 'E' };

/* A mixture of experts. */
struct moe_config {
    struct route_shape route; /* how many there are, and how they are chosen */
    int width;                /* inside an expert */
    int shared;               /* inside the one that every token goes through; 0: there is none */
    int latent;               /* what experts read and write; 0: the hidden size */
};

struct lm_config {
    char pattern[CONFIG_MAX_LAYERS + 1]; /* a layer_kind for each layer, in order */
    int layers;                          /* length of the pattern */
    int hidden;                          /* D */
    int mlp[CONFIG_MAX_LAYERS];          /* width of the MLP of layer i; 0 for the other kinds */
    int q_heads, kv_heads, head_dim;
    struct ssm_shape ssm; /* H, P, N, G, K, chunk, limits of the time step */
    bool conv_bias;
    struct moe_config moe;
    int extra_predictors; /* layers that guess further tokens: left out, but they tell how a tower was made */
    bool tied;            /* the output matrix is the embedding */
    float eps;            /* of every RMSNorm, the gated one included */
    int vocab;            /* what the file says; the rows of the embedding are what counts */
    int max_tokens;       /* longest conversation the model was made for */
};

struct vit_config {
    int hidden, blocks, heads, mlp;
    int patch;     /* side of a patch in pixels */
    int tile;      /* side of a tile in pixels */
    int projector; /* width between the two matrices of the projector */

    /* Images of any size: one canvas of so many patches instead of tiles; max_patches 0: tiles. */
    int min_patches, max_patches;
    bool final_norm; /* a LayerNorm without weights follows the tower */
};

struct model_config {
    struct lm_config lm;
    bool vision; /* false: a text model, without the members that follow */
    struct vit_config vit;
    float mean[3], std[3]; /* of a channel in [0, 1] */
    int max_tiles;
    bool thumbnail;
    int image_token;                /* id that stands for one projector row; -1: the tokenizer's "<image>" */
    int eos[CONFIG_MAX_EOS], n_eos; /* generation ends with any of these */
    char quant[16];                 /* "FP8", "NVFP4" or another name, as the files say; "": nothing */
};

/* Reads these files, of which only the first must be there. */
int config_load(struct model_config *c, const char *dir, struct err *e);

/* The same from memory; all but the first may be NULL. */
struct config_text {
    const char *config, *preprocessor, *generation, *quant, *processor;
};
int config_parse(struct model_config *c, const struct config_text *t, struct err *e);

/* Channels of the convolution (x, B, C) and rows of in_proj (z, x, B, C, dt). */
int config_inner(const struct lm_config *c);    /* H * P */
int config_conv_dim(const struct lm_config *c); /* H * P + 2 * G * N */
int64_t config_kv_cols(const struct lm_config *c,
                       enum dtype kv);           /* of a row of keys, or values, of that type */
int config_proj_rows(const struct lm_config *c); /* 2 * H * P + 2 * G * N + H */

/* Patches on a side of a tile, and language tokens of a tile. */
int config_grid(const struct model_config *c);
int config_tile_tokens(const struct model_config *c);

#endif
