/* weights.h - all tensors of a model, bound once by name, shape and dtype.
 *
 * After binding, code uses layer->mamba.in_proj and never a string. A tensor is rejected, with its name
 * and the expected and actual value, if it is missing, has another shape than the config requires, or a
 * dtype that cannot be multiplied. Unknown tensors are rejected unless they are known to be useless at run
 * time, as are NaN or infinite values among those that are copied or packed (of mapped tensors only a few
 * pages are checked).
 *
 * In RAM: matrices are packed into the layout that the backend multiplies fastest, tensor by tensor from
 * the mapped file, whose pages are then released, so that a model is in memory only once. They are bf16
 * (f32 if the run uses f32 and the file has more precision than bf16) or quantized (ops/quant.h).
 *
 * Mapped: matrices and embeddings stored in the required type stay in the file, which must stay open. Very
 * little is read at the start, so a model larger than memory opens at once. Matrices that do not fit in
 * `resident` bytes are read again for every product, experts first, because a token uses few of them.
 * Vectors and small constants are copied to f32 in both cases.
 *
 * Quantized weights: a checkpoint may store matrices as FP8 or NVFP4, recognized by a tensor of scales
 * next to them. They stay in 8 or 4 bits; activations are rounded only with bind_options.coarse or
 * coarse_blocks; scales of activations (input_scale) and of keys and values are ignored. Other matrices may
 * be quantized at load time:
 *
 *     int8   matrices of the layers, experts, lm_head
 *     int4   matrices of the layers, experts; lm_head in int8
 *     fp8    as int8, in e4m3: the error is proportional to each value instead of to the largest of its row
 *
 * Matrices in a format without kernels are converted to the nearest one with kernels (`forms` lists them):
 * GGUF types as in ops/gguf_rows.h.
 *
 * Embeddings (a token reads one row), norms, the convolution, the router and constants are never quantized
 * here, because they are too small to matter. The vision encoder and the projector are not, either: their
 * error would be the same in all tokens of an image, and they are 7 % of the published model. lm_head has
 * at least 8 bits, because its rows compete with each other. Nothing is stored wider than in the file
 * unless bf16 is requested, which dequantizes stored codes and rounds to bf16. */
#pragma once

#include "checkpoint/options.h"
#include "checkpoint/safetensors.h"
#include "model/config.h"
#include "ops/ops.h"

struct mamba_weights {
    struct weight *in_proj;      /* [2HP + 2GN + H, D]: rows z, x, B, C, dt */
    struct weight *out_proj;     /* [D, HP] */
    struct tensor conv;          /* [HP + 2GN, K] */
    struct tensor conv_bias;     /* [1, HP + 2GN]; data NULL without a bias */
    struct tensor norm;          /* [1, HP], of the gated norm */
    struct tensor a, dt_bias, d; /* [1, H]; a = -exp(A_log) */
    struct ssm_const constants;  /* the three above, in the form that operations take */
};

struct delta_weights {
    struct weight *qkv;             /* [2 Hk dk + H dv, D]: rows of all queries, then keys, then values */
    struct weight *z;               /* [H dv, D] */
    struct weight *a_proj, *b_proj; /* [H, D] */
    struct weight *out_proj;        /* [D, H dv] */
    struct tensor conv;             /* [2 Hk dk + H dv, K] */
    struct tensor norm;             /* [1, dv] */
    struct tensor a, dt_bias;       /* [1, H]; a = -exp(A_log) */
};

struct attention_weights {
    struct weight *q; /* [Hq d, D]; with an output gate [Hq 2d, D]: per head queries, then gates */
    struct weight *k; /* [Hkv d, D] */
    struct weight *v; /* [Hkv d, D] */
    struct weight *o; /* [D, Hq d] */
    struct tensor q_norm, k_norm;         /* [1, d], Qwen3 and later; data NULL: none */
    struct tensor q_bias, k_bias, v_bias; /* [1, Hq d], [1, Hkv d], Qwen2.5; data NULL: none */
};

struct mlp_weights {
    struct weight *gate; /* [M, D], SwiGLU; NULL: none */
    struct weight *up;   /* [M, D] */
    struct weight *down; /* [D, M] */
};

struct moe_weights {
    struct weight *gate;                    /* [E, D] f32 */
    struct tensor bias;                     /* [1, E], added only for choosing experts */
    struct weight **up, **down;             /* E matrices of [M, X] and [X, M]; X is D or the latent size */
    struct weight **gates;                  /* E matrices of [M, X], SwiGLU experts; NULL: none */
    struct mlp_weights shared;              /* the shared expert; NULL: none */
    struct weight *shared_gate;             /* [1, D], gate of the shared expert; NULL: none */
    struct weight *latent_down, *latent_up; /* [X, D], [D, X]; NULL if X is D */
    struct experts experts;                 /* gates, up and down, in the form that the operation takes */
};

struct layer_weights {
    struct tensor norm; /* [1, D] */
    /* Only one of the following is bound, by the layer's kind. */
    struct mamba_weights mamba;
    struct delta_weights delta;
    struct attention_weights att;
    struct mlp_weights mlp;
    struct moe_weights moe;
};

struct vit_block {
    struct tensor norm1, norm1_bias, norm2, norm2_bias; /* [1, W] */
    struct weight *qkv, *proj, *fc1, *fc2;              /* [3W, W], [W, W], [M, W], [W, M] */
    struct tensor qkv_bias, proj_bias, fc1_bias, fc2_bias;
    struct weight *gate; /* [M, W], Qwen2.5-VL's SwiGLU: fc1 is up, fc2 down; NULL: none */
    struct tensor gate_bias;
};

/* A DeepStack merger of Qwen3-VL, whose norm is over the four concatenated patches. */
struct vit_deepstack {
    struct tensor norm, norm_bias; /* [1, 4W] */
    struct weight *up, *down;      /* [P, 4W], [D, P] */
    struct tensor up_bias, down_bias;
};

/* A tensor that the model itself does not use: heads on the tower's rows (vision_tower_rows). */
struct extra_tensor {
    char *name;            /* without VISION_EXTRA; owned */
    int64_t rows, cols;    /* 1 and the length of a vector; of three dimensions the first two are combined */
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
    struct tensor embedder_bias; /* [1, W], Qwen only, as the other biases here */
    struct tensor prefix;        /* [n_skip, W]: class and register tokens, in the activation type */
    /* [grid^2, W] resized to the grid of a tile, in the activation type; for dynamic resolution and for
     * Qwen's encoders the table itself, f32 [side^2, W]. */
    struct tensor position;
    struct vit_block *blocks;
    struct tensor norm;       /* [1, 4W], norm of the projector; in Qwen's merger [1, W] */
    struct weight *up, *down; /* [P, 4W], [D, P] */
    struct tensor norm_bias, up_bias, down_bias;
    struct vit_deepstack *deepstack; /* [n_deepstack] */
    struct vision_extra extra;
};

struct model_weights {
    int vocab;                       /* V: rows of embed and head */
    struct tensor embed;             /* [V, D] */
    bool embed_mapped;               /* `embed` points into the file */
    void *embed_pinned;              /* host memory of `embed`, which the device reads; else NULL */
    struct quant_source embed_codes; /* replaces `embed`: GGUF blocks in the file; rows 0: none */
    struct weight *head;             /* [V, D] */
    struct tensor norm;              /* [1, D], before the head */
    struct layer_weights *layers;
    struct vision_weights vision;

    /* Everything that weights_free() frees: all tensors and matrices above. */
    struct tensor *tensors;
    struct weight **matrices;
    int n_tensors, n_matrices;

    int rounded;          /* matrices whose products round activations to 8 bits */
    char *forms;          /* message: matrices stored in another format than in the file; NULL: none */
    bool records;         /* some of the language model's matrices have a record for each block: GGUF's
                           * blocks, fp8 in blocks, GPTQ */
    double element_bytes; /* mean bytes per element of the language model's matrices */
};

struct weight_cache;

struct bind_options {
    bool f32; /* activations in f32 */
    void (*progress)(void *arg, double fraction, const char *what);
    void *progress_arg;
    enum weight_storage storage;
    /* Products of the layers and the vision encoder round activations to 8 bits (W8A8); to fp8 only those of
     * the layers. */
    bool coarse;
    bool coarse_blocks; /* products of the layers and the head do so if the matrix is in GGUF blocks */
    bool tower8;        /* the blocks of the vision encoder are stored in int8 */
    bool embed_on_host; /* the embedding stays in pinned host memory, if the backend has it */
    struct weight_cache *cache; /* cache of quantized matrices; NULL: none */
    bool mapped;                /* matrices stay in the file where possible */
    size_t resident;            /* maximum bytes of mapped matrices that stay in memory */
    uint64_t random;            /* seed of synthetic values, no value is read from files; 0: the files'
                                 * values */

    /* Inspection: no value is read, so the backend must be one that only counts. Failures are passed to
     * `problem`, if set, and binding continues with the next tensor. */
    bool shapes_only;
    void (*problem)(void *arg, const char *text);
    void (*ignored)(void *arg, const struct st_tensor *t); /* called with tensors that are not needed at
                                                            * run time */
    void *look_arg;
};

int weights_bind(struct model_weights *w, const struct model_config *c, const struct safetensors *s,
                 struct backend *b, const struct bind_options *o, struct err *e);
void weights_free(struct model_weights *w, const struct model_config *c, struct backend *b);
