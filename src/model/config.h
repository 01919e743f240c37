/* config.h - a model's hyperparameters, all read from its directory.
 *
 * Nothing about a model is built in except what this family means by its keys: sizes, pattern,
 * normalisation and stop tokens come from config.json, preprocessor_config.json (or, without that,
 * processor_config.json), generation_config.json and hf_quant_config.json.  A value that is not implemented
 * is refused with its key named; whether the tensors agree is checked when they are bound (weights.h).
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
    CONFIG_MAX_TAPS = 8,
    CONFIG_TEXT_MAX =
        32 << 20, /* bytes of config.json: a large mixture of experts lists each of its matrices */
};

/* One layer is one sub-layer: h = h + mixer(RMSNorm(h)). */
enum layer_kind {
    LAYER_MAMBA = 'M', /* of Nemotron */
    LAYER_ATTENTION = '*',
    LAYER_MLP = '-',
    LAYER_MOE = 'E',
    LAYER_DELTA = 'D', /* of Qwen3.5 */
    LAYER_GATED_ATTENTION = 'A',
    LAYER_ROTARY_ATTENTION = 'R', /* of Qwen3-VL and Qwen2.5-VL: the same without a gate */
    LAYER_SWIGLU = 'S',
    LAYER_SWIGLU_MOE = 'X',
};

/* A layer that keys and values are kept for; one with states of a fixed size; either. */
static inline bool layer_attends(char kind)
{
    return kind == LAYER_ATTENTION || kind == LAYER_GATED_ATTENTION || kind == LAYER_ROTARY_ATTENTION;
}

static inline bool layer_recurs(char kind)
{
    return kind == LAYER_MAMBA || kind == LAYER_DELTA;
}

static inline bool layer_mixes(char kind)
{
    return layer_attends(kind) || layer_recurs(kind);
}

enum model_family { FAMILY_NEMOTRON, FAMILY_QWEN35, FAMILY_QWEN3VL, FAMILY_QWEN25VL };

/* Qwen's: layers of two parts, rotary positions, pictures of any size. */
static inline bool family_is_qwen(enum model_family f)
{
    return f != FAMILY_NEMOTRON;
}

/* Rotary positions in time, height and width of an image; text has the same number three times. */
struct rope_shape {
    int dims;       /* leading dimensions of a head that are rotated, in pairs (i, i + dims / 2) */
    float theta;    /* pair i has the frequency theta^(-2i / dims) */
    int section[3]; /* how many pairs turn with time, height, width: interleaved (model/rope.h) */
    bool apart;     /* or one section after the other */
};

/* A mixture of experts. */
struct moe_config {
    struct route_shape route; /* expert count and routing */
    int width;                /* intermediate size of an expert */
    int shared;               /* intermediate size of the shared expert; 0: none */
    int latent;               /* latent size that experts read and write; 0: the hidden size */
};

struct lm_config {
    char pattern[CONFIG_MAX_LAYERS + 1]; /* a layer_kind for each layer, in order */
    int layers;                          /* length of the pattern */
    int hidden;                          /* D */
    int mlp[CONFIG_MAX_LAYERS];          /* width of the MLP of layer i; 0 for the other kinds */
    int q_heads, kv_heads, head_dim;
    struct ssm_shape ssm; /* H, P, N, G, K, chunk, limits of the time step */
    bool conv_bias;
    struct delta_shape delta; /* Gated DeltaNet */
    struct rope_shape rope;   /* dims 0: no position embedding */
    struct moe_config moe;
    /* multi-token prediction layers: not run, but they tell which vision tower the model has */
    int extra_predictors;
    bool tied;      /* lm_head is the embedding */
    float eps;      /* of every RMSNorm, the gated one included */
    int vocab;      /* as the file says; the rows of the embedding are what counts */
    int max_tokens; /* longest context the model was trained for */
};

struct vit_config {
    int hidden, blocks, heads, mlp;
    int patch;     /* side of a patch in pixels */
    int tile;      /* side of a tile in pixels */
    int projector; /* width between the two matrices of the projector */

    /* Dynamic resolution: one canvas of so many patches instead of tiles; max_patches 0: tiles. */
    int min_patches, max_patches;
    int native_side; /* the picture is seen at its own pixels, at most so many a side, and its positions are
                      * cut from the table; 0: it is resized to its canvas, and the table with it */
    bool final_norm; /* a LayerNorm without weights follows the tower */

    /* Qwen's tower: a canvas whose sides are multiples of patch * merge. */
    int frames;                 /* a patch holds the same picture so many times */
    int merge;                  /* merge^2 neighbouring patches become one row */
    int table_side;             /* the position table is a square of so many rows */
    int min_pixels, max_pixels; /* of a canvas */

    /* Blocks after which rows are taken out that the language model adds after its first layers. */
    int taps[CONFIG_MAX_TAPS], n_taps;

    /* Qwen2.5-VL's tower: a block attends inside windows of so many merged cells a side, or everywhere. */
    int window; /* 0: Qwen3's tower */
    bool everywhere[CONFIG_MAX_LAYERS];
};

struct model_config {
    enum model_family family;
    struct lm_config lm;
    bool vision; /* false: a text model without the members below */
    struct vit_config vit;
    float mean[3], std[3]; /* of a channel in [0, 1] */
    int max_tiles;
    bool thumbnail;
    int image_token;                /* id of an image position; -1: the tokenizer's "<image>" */
    int image_open, image_close;    /* ids around an image; -1: the tokenizer's "<img>" and "</img>" */
    int eos[CONFIG_MAX_EOS], n_eos; /* generation ends with any of these */
    char quant[16];                 /* "FP8", "NVFP4" or another name from the files; "": not quantized */
    int gptq_least;                 /* added to a stored zero of GPTQ: 1, or of its second format 0 */
};

/* Reads these files, of which only config.json is required, or the keys of a GGUF file (gguf_model.h). */
int config_load(struct model_config *c, const char *dir, struct err *e);

/* Fails with ERR_USAGE and a remedy if the model has no vision tower: call it where pictures are needed,
 * before a display is opened. */
int config_check_vision(const struct model_config *c, const char *dir, struct err *e);

/* What identifies a configuration: the text of config.json, or one of the same meaning; NULL when it
 * cannot be
 * read.  The caller frees it. */
char *config_source(const char *dir);

/* The same from memory; all but the first may be NULL. */
struct config_text {
    const char *config, *preprocessor, *generation, *quant, *processor;
};
int config_parse(struct model_config *c, const struct config_text *t, struct err *e);

/* Channels of the convolution (x, B, C; or q, k, v) and rows of in_proj (z, x, B, C, dt). */
int config_inner(const struct lm_config *c);          /* H * P, H * dv */
int config_conv_dim(const struct lm_config *c);       /* H * P + 2 * G * N, 2 * Hk * dk + H * dv */
int config_groups(const struct lm_config *c);         /* of heads that share channels: G, Hk */
int config_conv_taps(const struct lm_config *c);      /* K */
int config_chunk(const struct lm_config *c);          /* tokens of a chunk of the recurrence */
int64_t config_state_rows(const struct lm_config *c); /* of a layer's recurrent state; its columns */
int64_t config_state_cols(const struct lm_config *c);
int64_t config_kv_cols(const struct lm_config *c,
                       enum dtype kv);           /* elements of a row of keys, or values, of that type */
int config_proj_rows(const struct lm_config *c); /* 2 * H * P + 2 * G * N + H */

/* Bounds of a picture's pixels instead of the files', 0: as it is.  -1: the model's tower has no such
 * bounds, or they leave no canvas. */
int config_limit_pixels(struct model_config *c, int least, int most, struct err *e);

/* Columns of an image's row: the hidden size, once more for each tap. */
int config_image_cols(const struct model_config *c);

/* Patches on a side of a tile, and language tokens of a tile. */
int config_grid(const struct model_config *c);
int config_tile_tokens(const struct model_config *c);

#endif
