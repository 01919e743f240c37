/* weights.h - every tensor of a model, bound once by name, shape and dtype.
 *
 * Afterwards code says layer->mamba.in_proj and never a string.  A tensor that is missing, has another
 * shape than the config's numbers ask for, or a dtype that cannot be multiplied is refused with its name,
 * what was expected and what was found; so is a tensor nobody asked for, unless it is known to be of no
 * use at run time.
 *
 * Packed: matrices go into the form the backend multiplies fastest, tensor by tensor out of the mapped file,
 * whose pages are given back: a model is in memory once.  They are kept in bf16 (f32 when the run is in
 * f32 and the file has more than bf16), or in smaller numbers (ops/quant.h).
 *
 * Mapped: matrices and embeddings that are stored in the type wanted stay in the file, which must stay
 * open; nothing is read at the start, so that a model larger than memory opens at once.  Those that do
 * not fit in `resident` bytes are read again for every product: experts, of which a token needs a few, before
 * anything else.  Vectors and small constants are copied to f32 in both cases.
 *
 * Small numbers.  A checkpoint may store matrices as FP8 or NVFP4: those with a tensor of scales beside them,
 * whatever the config says.  They are held as they are, in 8 or 4 bits, and multiplied with activations that are
 * not rounded any further; scales of activations (input_scale) and of keys and values are left out.  Other
 * matrices may be made smaller at the start:
 *
 *   int8   matrices of the layers, experts, output head
 *   int4   matrices of the layers, experts; output head in int8
 *   fp8    the same as int8, in e4m3: an error in proportion to each number instead of to the largest of its row
 *
 * Not made smaller are embeddings (a row of them is read for a token), norms, the convolution, the router and
 * constants, all too small to matter, and the tower and the projector: an error in what is seen is
 * the same in all tokens of an image, and they are 7 % of the published model.  The head is no smaller than
 * 8 bits, because its rows compete with each other.  Nothing becomes wider than it is stored, except by asking for
 * bf16, where stored numbers times their scales are rounded to bf16.
 */
#ifndef HOLORUN_MODEL_WEIGHTS_H
#define HOLORUN_MODEL_WEIGHTS_H

#include "model/config.h"
#include "model/options.h"
#include "model/safetensors.h"
#include "ops/ops.h"

struct mamba_weights {
    struct weight *in_proj;      /* [2HP + 2GN + H, D]: rows z, x, B, C, dt */
    struct weight *out_proj;     /* [D, HP] */
    struct tensor conv;          /* [HP + 2GN, K] */
    struct tensor conv_bias;     /* [1, HP + 2GN]; data NULL without a bias */
    struct tensor norm;          /* [1, HP] of the gated norm */
    struct tensor a, dt_bias, d; /* [1, H]; a = -exp(A_log) */
    struct ssm_const constants;  /* the three above */
};

struct attention_weights {
    struct weight *q; /* [Hq d, D] */
    struct weight *k; /* [Hkv d, D] */
    struct weight *v; /* [Hkv d, D] */
    struct weight *o; /* [D, Hq d] */
};

struct mlp_weights {
    struct weight *up;   /* [M, D] */
    struct weight *down; /* [D, M] */
};

struct moe_weights {
    struct weight *gate;                    /* [E, D] f32 */
    struct tensor bias;                     /* [1, E] only for choosing */
    struct weight **up, **down;             /* E of [M, X] and [X, M]; X is D or the latent size */
    struct mlp_weights shared;              /* of every token; NULL: there is none */
    struct weight *latent_down, *latent_up; /* [X, D], [D, X] around the experts; NULL where X is D */
    struct experts experts;                 /* up and down for the operation */
};

struct layer_weights {
    struct tensor norm;           /* [1, D] */
    struct mamba_weights mamba;   /* of these four, the one */
    struct attention_weights att; /* that the pattern names */
    struct mlp_weights mlp;
    struct moe_weights moe;
};

struct vit_block {
    struct tensor norm1, norm1_bias, norm2, norm2_bias; /* [1, W] */
    struct weight *qkv, *proj, *fc1, *fc2;              /* [3W, W], [W, W], [M, W], [W, M] */
    struct tensor qkv_bias, proj_bias, fc1_bias, fc2_bias;
};

struct vision_weights {
    struct weight *embedder; /* [W, 3 * patch^2] */
    struct tensor prefix;    /* [n_skip, W] class and register tokens, activation dtype */
    struct tensor position;  /* [grid^2, W] resized to the grid of a tile, activation dtype; for images of
                              * any size the table itself, f32 [side^2, W] */
    struct vit_block *blocks;
    struct tensor norm;       /* [1, 4W] of the projector */
    struct weight *up, *down; /* [P, 4W], [D, P] */
};

struct model_weights {
    int vocab;           /* V: rows of embed and head */
    struct tensor embed; /* [V, D] */
    bool embed_mapped;   /* it belongs to the file */
    struct weight *head; /* [V, D] */
    struct tensor norm;  /* [1, D] before the head */
    struct layer_weights *layers;
    struct vision_weights vision;
    double number; /* bytes of a number in the matrices of the language model, on average */
};

struct weight_cache;

struct bind_options {
    bool f32;         /* activations in f32 */
    bool allow_extra; /* unknown tensors are a warning */
    void (*progress)(void *arg, double fraction, const char *what);
    void *progress_arg;
    enum weight_storage numbers;
    struct weight_cache *cache; /* of what int8, int4 and fp8 have made; NULL: none */
    bool mapped;                /* matrices stay in the file where they can */
    size_t resident;            /* bytes of them that may stay in memory */
    uint64_t
        random; /* a seed: no number is read, all are made (weights_synthetic.c); 0: those of the files */

    /* To look at a checkpoint rather than run it: no value is read, so that the backend has to be one that
     * only counts; a failure is told to `problem`, when there is one, and the next tensor looked at. */
    bool shapes_only;
    void (*problem)(void *arg, const char *text);
    void (*ignored)(void *arg, const struct st_tensor *t); /* of no use at run time */
    void *look_arg;
};

int weights_bind(struct model_weights *w, const struct model_config *c, const struct safetensors *s,
                 struct backend *b, const struct bind_options *o, struct err *e);
void weights_free(struct model_weights *w, const struct model_config *c, struct backend *b);

/* A table of side x side rows of width values, resized to grid x grid: bilinear, half-pixel centres,
 * edges repeated, in f32. */
void weights_resize_grid(const float *table, int side, float *out, int grid, int width);

#endif
