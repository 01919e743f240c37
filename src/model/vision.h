/* vision.h - the vision encoder and projector: converts the patches of an image to rows for the language
 * model.
 *
 *     x      = [ prefix tokens ; W_patch . patch + position ]          n = n_skip + patches, rows of width W
 *     for each block:   x = x + proj( Attn( LN1(x) ) )                 bidirectional, inside a tile only
 *                       x = x + fc2( GELU( fc1( LN2(x) ) ) )
 *     X      = x without the prefix                                    (timm ViT; final norm without weights,
 *                                                                       only if the config implies it)
 *     Y[p][q][dr*2W + dc*W + ch] = X[2p+dr][2q+dc][ch]                 2x2 patches become one row of 4W
 *     rows   = W3 . max(0, W1 . RMSNorm(Y, 1e-5))^2                    grid^2 / 4 rows of D per tile
 *
 * A tile is a square of grid x grid patches, and its position embedding is computed once. A canvas
 * (dynamic resolution) is an image with an even number of patches on both sides; its position embedding is
 * resized for each size, and scratch memory grows to the largest size seen.
 *
 * LayerNorm eps 1e-6, exact GELU; all layers of the encoder have biases, those of the projector have none.
 * Rounding as in language.h. Qwen's encoders have other equations, in vision_qwen.c and vision_qwen25.c;
 * the rest of this comment applies to all.
 *
 * Tiles are independent, and few tiles of a screen change from one step to the next. Rows are therefore
 * cached by the 128-bit hash of their patches, and a known tile costs one copy. A backend with
 * make_patches computes the hashes on the device: only pixels are uploaded and only hashes downloaded. */
#pragma once

#include "base/image.h"
#include "model/config.h"
#include "model/preprocess.h"
#include "model/weights.h"

#include <xxhash.h>

enum {
    VISION_BATCH = 4,      /* tiles per pass of the encoder, unless the backend sets another number */
    VISION_MLP_ROWS = 512, /* rows of an MLP at a time on a CPU: 3 MiB of activations stay in cache */
    VISION_CACHE_BYTES = 128 << 20,
    VISION_CACHE_MAX = 512, /* maximum number of cached tiles */
};

struct vision_entry {
    XXH128_hash_t hash;
    struct tensor rows;  /* [tokens, D] */
    struct tensor tower; /* [sequence, W] after the last block, for heads; data NULL: not kept */
    uint64_t used;       /* last use: the smallest is evicted first */
};

struct tower;

struct vision { /* one per engine */
    /* functions of this encoder (vision_impl.h) */
    const struct tower *tower;
    const struct model_config *config;
    const struct vision_weights *weights;
    struct backend *backend;
    enum dtype act;
    int batch; /* tiles per pass */

    int patch_rows, patch_cols; /* patches of the current tile or canvas */
    struct tensor position;     /* [patch_rows * patch_cols, W]; for tiles the weights' own tensor */
    struct tensor table;        /* native images: all positions [side * side, W] */
    struct tensor rotary;       /* Qwen: f32 [patch_rows * patch_cols, W / heads] */
    int *order;                 /* Qwen2.5-VL: merged cells in the order of windows */
    int *windows, n_windows;    /* Qwen2.5-VL: patches of each window */
    struct tensor ones, zeros;  /* [1, W] f32 for a final norm without weights */

    /* scratch for `batch` tiles, or for the largest canvas seen; n rows or tile tokens each */
    struct tensor patches; /* [batch * grid^2, 3 * patch^2] */
    struct tensor cut;     /* f32 patches of the largest image seen, if the backend makes them */
    struct tensor x, u, a; /* [batch * n, W] */
    struct tensor qkv;     /* [batch * n, 3W] */
    struct tensor m;       /* [batch * n or VISION_MLP_ROWS, M]; for Qwen2.5-VL 2M */
    struct tensor s;       /* [batch * tokens, 4W] shuffled */
    struct tensor p;       /* [batch * tokens, P] */
    struct tensor rows;    /* [batch * tokens, D], with DeepStack (1 + blocks) D */

    struct vision_entry *cache;
    int cached, cache_max;
    size_t cache_bytes;
    uint64_t clock;
    XXH128_hash_t latest; /* first tile of the last image */

    const volatile int *cancel;        /* non-zero: the encoder stops before its next block; may be NULL */
    const volatile int *caller_cancel; /* cancel flag of the session that owns the image; may be NULL */
    /* Called between tiles whose patches are on the host, so that other sessions may use the encoder; may
     * be NULL. */
    void (*between_tiles)(void *caller);
    void *caller;
    void (*watch)(void *arg, int block, struct tensor x); /* called after each block (-1: before the
                                                           * first), for tests; may be NULL */
    void *watch_arg;
};

void vision_init(struct vision *v, const struct model_config *c, const struct vision_weights *w,
                 struct backend *b, enum dtype act);
void vision_free(struct vision *v);

/* Encodes tiles from patches on the host, as written by preprocess_image(), into out [tiles * tokens, D].
 * Returns the number of tiles computed, or -1 with e if cancelled or out of memory. */
int vision_encode(struct vision *v, const float *patches, int tiles, struct tensor out, struct err *e);

/* Encodes one canvas into out [rows * cols / 4, config_image_cols]. Returns 1, or 0 if it was cached, or
 * -1 with e. */
int vision_encode_canvas(struct vision *v, const float *patches, int rows, int cols, struct tensor out,
                         struct err *e);

/* Preprocesses and encodes an image on its tile grid; out has preprocess_tokens() rows of
 * config_image_cols(). Adds the time for making the patches to *preprocess_ms. Returns as vision_encode(). */
int vision_encode_image(struct vision *v, const struct image *im, const struct tile_grid *g, bool round8,
                        struct pool *pool, struct tensor out, double *preprocess_ms, struct err *e);

/* The tower's output for one image, before the projector, as heads of a checkpoint read it
 * (vision_extra). */
struct vision_tower_rows {
    struct vision *vision;
    struct tensor rows; /* [patch_rows * patch_cols, W] in activation dtype; may be overwritten */
    int patch_rows, patch_cols, patch; /* patches, and pixels of a patch's side */
    double scale;                      /* pixels of the tower's input for one pixel of the image */
};
typedef int vision_use_rows(void *arg, const struct vision_tower_rows *r, struct err *e);

/* Calls use() with the tower's rows of an image, which is encoded unless it is cached.  use() is not called
 * for models without vision_extra, or when memory was too short to keep the rows.  Returns -1 if stopped, out
 * of memory, or use() failed. */
int vision_use_tower(struct vision *v, const struct image *im, const struct tile_grid *g, bool round8,
                     struct pool *pool, vision_use_rows *use, void *arg, struct err *e);

/* Runs the extra block on r->rows, in place. */
void vision_extra_block(const struct vision_tower_rows *r);

/* Reserves scratch for `tiles` tiles of rows x cols patches; encoding calls this automatically. Returns -1
 * with e. */
int vision_reserve(struct vision *v, int tiles, int rows, int cols, struct err *e);
