/* weights.h - every tensor of a model, bound once by name, shape and dtype.
 *
 * Afterwards code says layer->mamba.in_proj and never a string.  A tensor that is missing, has another
 * shape than the config asks for, or a dtype that cannot be multiplied is refused with its name, what was
 * expected and what was found; so is an unknown tensor, unless it is known to be of no use at run time,
 * and one with a NaN or an infinity among the values that are copied or packed (of mapped ones a few pages
 * are read at the start).
 *
 * In RAM: matrices are packed into the layout the backend multiplies fastest, tensor by tensor out of the
 * mapped file, whose pages are given back: a model is in memory once.  They are bf16 (f32 when the run is in
 * f32 and the file has more than bf16) or quantized (ops/quant.h).
 *
 * Mapped: matrices and embeddings stored in the type wanted stay in the file, which must stay open; hardly
 * anything is read at the start, so a model larger than memory opens at once.  Those that do not fit in
 * `resident` bytes are read again for every product: experts, of which a token needs few, first. Vectors
 * and small constants are copied to f32 in both cases.
 *
 * Quantized weights.  A checkpoint may store matrices as FP8 or NVFP4: those with a tensor of scales next to
 * them, whatever the config says.  They stay in 8 or 4 bits and are multiplied with activations that are not
 * rounded any further; scales of activations (input_scale) and of keys and values are ignored.  Other
 * matrices may be quantized at the start:
 *
 *   int8   matrices of the layers, experts, lm_head
 *   int4   matrices of the layers, experts; lm_head in int8
 *   fp8    as int8, in e4m3: an error in proportion to each value instead of to the largest of its row
 *
 * Matrices stored in a format without kernels come into the nearest one that has some (`forms` lists them):
 * types of GGUF into Q8_0 (ops/gguf_rows.h); on a GPU GGUF's types, GPTQ and FP8 in blocks into bf16, int8 or
 * int4.
 *
 * Never quantized here are embeddings (a token reads one row), norms, the convolution, the router and
 * constants, all too small to matter, and the vision tower and the projector: their error would be the same
 * in all tokens of an image, and they are 7 % of the published model.  lm_head has 8 bits at least, because
 * its rows compete with each other.  Otherwise nothing becomes wider than it is stored, except by asking for
 * bf16, which dequantizes stored codes and rounds to bf16.
 */
#ifndef HOLORUN_MODEL_WEIGHTS_H
#define HOLORUN_MODEL_WEIGHTS_H

#include "checkpoint/options.h"
#include "checkpoint/safetensors.h"
#include "model/config.h"
#include "ops/ops.h"

struct mamba_weights {
    struct weight *in_proj;      /* [2HP + 2GN + H, D]: rows z, x, B, C, dt */
    struct weight *out_proj;     /* [D, HP] */
    struct tensor conv;          /* [HP + 2GN, K] */
    struct tensor conv_bias;     /* [1, HP + 2GN]; data NULL without a bias */
    struct tensor norm;          /* [1, HP] of the gated norm */
    struct tensor a, dt_bias, d; /* [1, H]; a = -exp(A_log) */
    struct ssm_const constants;  /* the three above, as operations take them */
};

struct delta_weights {
    struct weight *qkv;             /* [2 Hk dk + H dv, D]: rows of all queries, all keys, all values */
    struct weight *z;               /* [H dv, D] */
    struct weight *a_proj, *b_proj; /* [H, D] */
    struct weight *out_proj;        /* [D, H dv] */
    struct tensor conv;             /* [2 Hk dk + H dv, K] */
    struct tensor norm;             /* [1, dv] */
    struct tensor a, dt_bias;       /* [1, H]; a = -exp(A_log) */
};

struct attention_weights {
    struct weight *q; /* [Hq d, D]; of gated attention [Hq 2d, D]: each head's queries, then gates */
    struct weight *k; /* [Hkv d, D] */
    struct weight *v; /* [Hkv d, D] */
    struct weight *o; /* [D, Hq d] */
    struct tensor q_norm, k_norm;         /* [1, d] of Qwen3 and later; data NULL: none */
    struct tensor q_bias, k_bias, v_bias; /* [1, Hq d], [1, Hkv d] of Qwen2.5; data NULL: none */
};

struct mlp_weights {
    struct weight *gate; /* [M, D] of SwiGLU; NULL: none */
    struct weight *up;   /* [M, D] */
    struct weight *down; /* [D, M] */
};

struct moe_weights {
    struct weight *gate;                    /* [E, D] f32 */
    struct tensor bias;                     /* [1, E] added for choosing only */
    struct weight **up, **down;             /* E of [M, X] and [X, M]; X is D or the latent size */
    struct weight **gates;                  /* E of [M, X] of SwiGLU experts; NULL: none */
    struct mlp_weights shared;              /* the shared expert; NULL: none */
    struct weight *shared_gate;             /* [1, D] of it; NULL: none */
    struct weight *latent_down, *latent_up; /* [X, D], [D, X] around the experts; NULL where X is D */
    struct experts experts;                 /* up and down, as the operation takes them */
};

struct layer_weights {
    struct tensor norm;         /* [1, D] */
    struct mamba_weights mamba; /* the pattern names which */
    struct delta_weights delta; /* of these five is bound */
    struct attention_weights att;
    struct mlp_weights mlp;
    struct moe_weights moe;
};

struct vit_block {
    struct tensor norm1, norm1_bias, norm2, norm2_bias; /* [1, W] */
    struct weight *qkv, *proj, *fc1, *fc2;              /* [3W, W], [W, W], [M, W], [W, M] */
    struct tensor qkv_bias, proj_bias, fc1_bias, fc2_bias;
    struct weight *gate; /* [M, W] of Qwen2.5-VL's SwiGLU: fc1 is up, fc2 down; NULL: none */
    struct tensor gate_bias;
};

/* A second merger of Qwen3-VL, whose norm is over the four patches together. */
struct vit_tap {
    struct tensor norm, norm_bias; /* [1, 4W] */
    struct weight *up, *down;      /* [P, 4W], [D, P] */
    struct tensor up_bias, down_bias;
};

/* A tensor that the model itself does not use: heads on the tower's rows (vision_tower_rows). */
struct extra_tensor {
    char *name;            /* without VISION_EXTRA; owned */
    int64_t rows, cols;    /* of a vector 1 and its length; of three dimensions the first two are one */
    struct tensor vector;  /* f32, of one dimension */
    struct weight *matrix; /* else */
};

#define VISION_EXTRA "vision_model.heads." /* prefix of their names in a checkpoint */

struct vision_extra {
    struct extra_tensor *list; /* [n], owned */
    int n;
    struct vit_block block; /* a further block of the tower's kind, "block."; qkv NULL: none */
};

struct vision_weights {
    struct weight *embedder;     /* [W, elements of a patch] */
    struct tensor embedder_bias; /* [1, W] of Qwen's, as the other biases here */
    struct tensor prefix;        /* [n_skip, W] class and register tokens, activation dtype */
    /* [grid^2, W] resized to the grid of a tile, activation dtype; for dynamic resolution the table
     * itself, f32 [side^2, W], and for Qwen's tower */
    struct tensor position;
    struct vit_block *blocks;
    struct tensor norm;       /* [1, 4W] of the projector; of Qwen's merger [1, W] */
    struct weight *up, *down; /* [P, 4W], [D, P] */
    struct tensor norm_bias, up_bias, down_bias;
    struct vit_tap *taps; /* as many as the config has */
    struct vision_extra extra;
};

struct model_weights {
    int vocab;                       /* V: rows of embed and head */
    struct tensor embed;             /* [V, D] */
    bool embed_mapped;               /* it points into the file */
    void *embed_pinned;              /* it is in the host's memory, which the device reads; else NULL */
    struct quant_source embed_codes; /* instead of it: blocks of GGUF in the file; rows 0: none */
    struct weight *head;             /* [V, D] */
    struct tensor norm;              /* [1, D] before the head */
    struct layer_weights *layers;
    struct vision_weights vision;

    struct tensor *tensors;   /* what weights_free frees: all tensors above */
    struct weight **matrices; /* and matrices */
    int n_tensors, n_matrices;

    char *forms;          /* matrices kept in another format than stored, for people; NULL: none */
    double element_bytes; /* average bytes per element of the language model's matrices */
};

struct weight_cache;

struct bind_options {
    bool f32; /* activations in f32 */
    void (*progress)(void *arg, double fraction, const char *what);
    void *progress_arg;
    enum weight_storage storage;
    bool
        coarse; /* products of the layers and the tower round activations to 8 bits; in fp8 not the tower's */
    bool tower8;                /* the blocks of the vision tower are stored in int8 */
    bool embed_on_host;         /* the embedding stays in pinned memory, where the backend has such */
    struct weight_cache *cache; /* of quantized matrices; NULL: none */
    bool mapped;                /* matrices stay in the file where they can */
    size_t resident;            /* bytes of those that may stay in memory */
    uint64_t random;            /* seed of synthetic values, then no value is read; 0: the files' values */

    /* Inspection: no value is read, so the backend must be one that only counts; failures go to
     * `problem`, if set, and binding goes on with the next tensor. */
    bool shapes_only;
    void (*problem)(void *arg, const char *text);
    void (*ignored)(void *arg, const struct st_tensor *t); /* of no use at run time */
    void *look_arg;
};

int weights_bind(struct model_weights *w, const struct model_config *c, const struct safetensors *s,
                 struct backend *b, const struct bind_options *o, struct err *e);
void weights_free(struct model_weights *w, const struct model_config *c, struct backend *b);

#endif
