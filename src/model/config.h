/* config.h - a model's hyperparameters, read from its files.
 *
 * No hyperparameter is built in: sizes, layer pattern, normalization and stop tokens come from
 * config.json, preprocessor_config.json (or processor_config.json), generation_config.json and
 * hf_quant_config.json. Constants of an architecture are in the readers. A value that is not implemented
 * is rejected with the name of its key; whether the tensors match is checked when they are bound
 * (weights.h). */
#pragma once

#include "base/err.h"
#include "ops/ops.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    CONFIG_MAX_LAYERS = 512,
    CONFIG_MAX_EOS = 16,
    CONFIG_MAX_DEEPSTACK = 8,
    CONFIG_TEXT_MAX =
        32 << 20, /* bytes of config.json: a large mixture of experts lists each of its matrices */
};

/* Kinds of layers; each is one sub-layer: h = h + mixer(RMSNorm(h)). */
enum layer_kind {
    LAYER_MAMBA = 'M', /* Nemotron */
    LAYER_ATTENTION = '*',
    LAYER_MLP = '-',
    LAYER_MOE = 'E',
    LAYER_DELTA = 'D', /* Qwen3.5 */
    LAYER_GATED_ATTENTION = 'A',
    LAYER_ROTARY_ATTENTION = 'R', /* Qwen3-VL and Qwen2.5-VL: no gate */
    LAYER_SWIGLU = 'S',
    LAYER_SWIGLU_MOE = 'X',
};

/* Return whether a layer has a KV cache, a recurrent state of fixed size, or either. */
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

/* Returns whether the model is one of Qwen's: layers of two parts, rotary positions, images of any size. */
static inline bool family_is_qwen(enum model_family f)
{
    return f != FAMILY_NEMOTRON;
}

/* Rotary positions in time, height and width; for text all three are equal. */
struct rope_shape {
    int dims;       /* leading dimensions of a head that are rotated, in pairs (i, i + dims / 2) */
    float theta;    /* pair i has the frequency theta^(-2i / dims) */
    int section[3]; /* pairs rotated by time, height and width; interleaved (model/rope.h) */
    bool sectioned; /* sections are contiguous instead of interleaved */
};

/* A mixture of experts. */
struct moe_config {
    struct route_shape route; /* expert count and routing */
    int width;                /* intermediate size of an expert */
    int shared;               /* intermediate size of the shared expert; 0: none */
    int latent;               /* width of the experts' input and output; 0: the hidden size */
};

struct lm_config {
    char pattern[CONFIG_MAX_LAYERS + 1]; /* one enum layer_kind per layer */
    int layers;                          /* length of the pattern */
    int hidden;                          /* D */
    int mlp[CONFIG_MAX_LAYERS];          /* width of the MLP in layer i; 0 for other kinds */
    int q_heads, kv_heads, head_dim;
    struct ssm_shape ssm; /* H, P, N, G, K, chunk, limits of the time step */
    bool conv_bias;
    struct delta_shape delta; /* Gated DeltaNet */
    struct rope_shape rope;   /* dims 0: no position embedding */
    struct moe_config moe;
    /* number of multi-token prediction layers; they are not run, but imply a final norm in the vision
     * encoder */
    int extra_predictors;
    bool tied;      /* lm_head is the embedding */
    float eps;      /* epsilon of every RMSNorm, including the gated one */
    int vocab;      /* as stated in the file; the rows of the embedding decide */
    int max_tokens; /* maximum context length */
};

struct vit_config {
    int hidden, blocks, heads, mlp;
    int patch;     /* side of a patch in pixels */
    int tile;      /* side of a tile in pixels */
    int projector; /* width between the two matrices of the projector */

    /* Dynamic resolution: one canvas of min_patches to max_patches instead of tiles; max_patches 0: tiles. */
    int min_patches, max_patches;
    /* Maximum side in pixels of an image that is encoded at its own resolution, with positions cut from
     * the position table; 0: the image and the table are resized to the canvas. */
    int native_side;
    bool final_norm; /* a LayerNorm without weights follows the last block */

    /* Qwen's encoder: a canvas whose sides are multiples of patch * merge. */
    int frames;                 /* copies of the image in a patch (temporal patch size) */
    int merge;                  /* merge^2 neighbouring patches become one row */
    int table_side;             /* the position table has table_side^2 rows */
    int min_pixels, max_pixels; /* limits of a canvas */

    /* DeepStack: blocks whose output is added to the residual stream after the language model's first
     * layers. */
    int deepstack[CONFIG_MAX_DEEPSTACK], n_deepstack;

    /* Qwen2.5-VL: blocks attend inside windows of `window` x `window` merged cells, or over the whole
     * image. */
    int window; /* 0: Qwen3's encoder */
    bool full_attention[CONFIG_MAX_LAYERS];
};

struct model_config {
    enum model_family family;
    struct lm_config lm;
    bool vision; /* false: a text model; the members below are unused */
    struct vit_config vit;
    float mean[3], std[3]; /* per channel, for values in [0, 1] */
    int max_tiles;
    bool thumbnail;
    int image_token;                /* id of an image position; -1: the tokenizer's "<image>" */
    int image_open, image_close;    /* ids around an image; -1: the tokenizer's "<img>" and "</img>" */
    int eos[CONFIG_MAX_EOS], n_eos; /* generation ends with any of these */
    char quant[16];                 /* "FP8", "NVFP4" or another format name from the files; "": not
                                     * quantized */
    int gptq_least;                 /* added to a stored GPTQ zero point: 1, or 0 for gptq_v2 */
};

/* Reads the files above (only config.json is required) or the keys of a GGUF file (gguf_model.h).
 * Returns -1 with ERR_MODEL. */
int config_load(struct model_config *c, const char *dir, struct err *e);

/* Fails with ERR_USAGE and a remedy if the model has no vision encoder. Call it where images are needed,
 * before a display is opened. */
int config_check_vision(const struct model_config *c, const char *dir, struct err *e);

/* Returns the text that identifies a configuration: config.json, or an equivalent text for a GGUF file.
 * NULL if it cannot be read. The caller frees it. */
char *config_source(const char *dir);

/* Parses the files' texts; all but the first may be NULL. */
struct config_text {
    const char *config, *preprocessor, *generation, *quant, *processor;
};
int config_parse(struct model_config *c, const struct config_text *t, struct err *e);

/* Return sizes derived from the config; H heads of P channels, G groups of N states, or Hk key heads of dk
 * and H value heads of dv. */
int config_inner(const struct lm_config *c);          /* H * P, H * dv */
int config_conv_dim(const struct lm_config *c);       /* channels of the convolution: x, B, C or q, k, v: H
                                                       * * P + 2 * G * N, 2 * Hk * dk + H * dv */
int config_groups(const struct lm_config *c);         /* groups of heads that share channels: G, Hk */
int config_conv_taps(const struct lm_config *c);      /* K */
int config_chunk(const struct lm_config *c);          /* tokens per chunk of the recurrence */
int64_t config_state_rows(const struct lm_config *c); /* rows of a layer's recurrent state */
int64_t config_state_cols(const struct lm_config *c);
int64_t config_kv_cols(const struct lm_config *c,
                       enum dtype kv);           /* elements in a row of keys, or of values, of that type */
int config_proj_rows(const struct lm_config *c); /* rows of in_proj (z, x, B, C, dt): 2 * H * P + 2 * G * N
                                                  * + H */

/* Replaces the limits of an image's pixels; 0 keeps a limit. Returns -1 with ERR_USAGE if the model's
 * vision encoder has no such limits, or if no canvas satisfies them. */
int config_limit_pixels(struct model_config *c, int least, int most, struct err *e);

/* Returns the columns of an image row: the hidden size, and once more for each DeepStack block. */
int config_image_cols(const struct model_config *c);

/* Return the patches per side of a tile, and its number of language tokens. */
int config_grid(const struct model_config *c);
int config_tile_tokens(const struct model_config *c);
