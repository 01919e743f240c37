/* vision.h - patches of a tile into rows that stand among the token embeddings.
 *
 *   x      = [ prefix tokens ; W_patch . patch + position ]          n = n_skip + grid^2 rows of width W
 *   for each block:   x = x + proj( Attn( LN1(x) ) )                 inside a tile only, all to all
 *                     x = x + fc2( GELU( fc1( LN2(x) ) ) )
 *   X      = x without the prefix                                    (a ViT of timm, no final norm)
 *   Y[p][q][dr*2W + dc*W + ch] = X[2p+dr][2q+dc][ch]                 2x2 patches become one row of 4W
 *   rows   = W3 . max(0, W1 . RMSNorm(Y, 1e-5))^2                    grid^2 / 4 rows of D for each tile
 *
 * LayerNorm eps 1e-6, exact GELU, biases everywhere in the tower and none in the projector; rounding as
 * in language.h.
 *
 * Tiles are independent of each other, and a screen changes in few of them from one step to the next:
 * rows are kept by the 128-bit hash of the patches, and a tile that was seen before costs a copy.
 */
#ifndef HOLORUN_MODEL_VISION_H
#define HOLORUN_MODEL_VISION_H

#include "model/config.h"
#include "model/weights.h"

#include <xxhash.h>

enum {
    VISION_BATCH = 4, /* tiles that go through the tower together */
    VISION_CACHE_BYTES = 128 << 20,
    VISION_CACHE_MAX = 512, /* tiles kept, whatever their size */
};

struct vision_entry {
    XXH128_hash_t hash;
    struct tensor rows; /* [tile tokens, D] */
    uint64_t used;      /* when last: the smallest goes first */
};

struct vision { /* one for each engine */
    const struct model_config *config;
    const struct vision_weights *weights;
    struct backend *backend;
    enum dtype act;
    int batch; /* tiles there is scratch for */

    /* scratch for `batch` tiles, n rows or tile tokens of each */
    struct tensor patches; /* [batch * grid^2, 3 * patch^2] */
    struct tensor x, u, a; /* [batch * n, W] */
    struct tensor qkv;     /* [batch * n, 3W] */
    struct tensor m;       /* [batch * n, M] */
    struct tensor s;       /* [batch * tokens, 4W] shuffled */
    struct tensor p;       /* [batch * tokens, P] */
    struct tensor rows;    /* [batch * tokens, D] */

    struct vision_entry *cache;
    int cached, cache_max;
    uint64_t clock;

    void (*watch)(void *arg, int block, struct tensor x); /* -1: before the first; for tests, may be NULL */
    void *watch_arg;
};

void vision_init(struct vision *v, const struct model_config *c, const struct vision_weights *w,
                 struct backend *b, enum dtype act);
void vision_free(struct vision *v);

/* patches on the host as preprocess_image leaves them; out [tiles * tokens, D].
 * Returns how many tiles had to be computed. */
int vision_encode(struct vision *v, const float *patches, int tiles, struct tensor out);

#endif
