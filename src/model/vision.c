/* vision.c - see vision.h for the equations. */
#include "model/vision.h"

#include "model/preprocess.h"

#include <stdlib.h>

static const struct tensor no_bias = {0};
static const float norm_eps = 1e-6f, projector_eps = 1e-5f;

/* ---- sizes --------------------------------------------------------------------------------------- */

static int64_t patches_of(const struct vision *v)
{
    return (int64_t)config_grid(v->config) * config_grid(v->config);
}

static int64_t sequence_of(const struct vision *v)
{
    return v->weights->prefix.rows + patches_of(v);
}

/* ---- tower ----------------------------------------------------------------------------------------- */

/* x = [ prefix ; position + W_patch . patch ] for each tile. */
static void embed_tiles(struct vision *v, int tiles)
{
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t skip = w->prefix.rows, n = sequence_of(v), count = patches_of(v);
    for (int t = 0; t < tiles; t++) {
        struct tensor x = tensor_rows(v->x, t * n + skip, count);
        if (skip)
            b->ops->copy(b, tensor_rows(v->x, t * n, skip), w->prefix);
        b->ops->copy(b, x, w->position);
        b->ops->linear(b, x, tensor_rows(v->patches, t * count, count), w->embedder, no_bias, EPI_NONE, 1);
    }
}

static void run_block(struct vision *v, const struct vit_block *w, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    int64_t rows = tiles * sequence_of(v);
    struct tensor x = tensor_rows(v->x, 0, rows), u = tensor_rows(v->u, 0, rows),
                  a = tensor_rows(v->a, 0, rows);
    struct tensor qkv = tensor_rows(v->qkv, 0, rows), m = tensor_rows(v->m, 0, rows);

    ops->layernorm(b, u, x, w->norm1, w->norm1_bias, norm_eps);
    ops->linear(b, qkv, u, w->qkv, w->qkv_bias, EPI_NONE, 0);
    ops->attend_tiles(b, a, qkv, v->config->vit.heads, tiles);
    ops->linear(b, x, a, w->proj, w->proj_bias, EPI_NONE, 1);

    ops->layernorm(b, u, x, w->norm2, w->norm2_bias, norm_eps);
    ops->linear(b, m, u, w->fc1, w->fc1_bias, EPI_GELU, 0);
    ops->linear(b, x, m, w->fc2, w->fc2_bias, EPI_NONE, 1);
}

/* The tower's output without its prefix, four patches to a row, through the projector. */
static void project_tiles(struct vision *v, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t n = sequence_of(v), tokens = config_tile_tokens(v->config);
    struct tensor s = tensor_rows(v->s, 0, tiles * tokens), p = tensor_rows(v->p, 0, tiles * tokens);
    for (int t = 0; t < tiles; t++)
        ops->pixel_shuffle(b, tensor_rows(v->s, t * tokens, tokens),
                           tensor_rows(v->x, t * n + w->prefix.rows, patches_of(v)), config_grid(v->config));
    ops->rmsnorm(b, s, s, w->norm, projector_eps);
    ops->linear(b, p, s, w->up, no_bias, EPI_RELU2, 0);
    ops->linear(b, tensor_rows(v->rows, 0, tiles * tokens), p, w->down, no_bias, EPI_NONE, 0);
}

static void watch(const struct vision *v, int block, int tiles)
{
    if (v->watch)
        v->watch(v->watch_arg, block, tensor_rows(v->x, 0, tiles * sequence_of(v)));
}

static void run_tower(struct vision *v, int tiles)
{
    embed_tiles(v, tiles);
    watch(v, -1, tiles);
    for (int i = 0; i < v->config->vit.blocks; i++) {
        run_block(v, &v->weights->blocks[i], tiles);
        watch(v, i, tiles);
    }
    project_tiles(v, tiles);
}

/* ---- cache ------------------------------------------------------------------------------------------- */

static struct vision_entry *find(struct vision *v, XXH128_hash_t hash)
{
    for (int i = 0; i < v->cached; i++)
        if (XXH128_isEqual(v->cache[i].hash, hash)) {
            v->cache[i].used = ++v->clock;
            return &v->cache[i];
        }
    return NULL;
}

static void keep(struct vision *v, XXH128_hash_t hash, struct tensor rows)
{
    struct vision_entry *slot = &v->cache[0];
    if (v->cached < v->cache_max) {
        slot = &v->cache[v->cached++];
        slot->rows = v->backend->ops->alloc(v->backend, v->act, rows.rows, rows.cols);
    } else {
        for (int i = 1; i < v->cached; i++)
            if (v->cache[i].used < slot->used)
                slot = &v->cache[i];
    }
    slot->hash = hash;
    slot->used = ++v->clock;
    v->backend->ops->copy(v->backend, slot->rows, rows);
}

/* ---- tiles ------------------------------------------------------------------------------------------- */

/* The rows of every tile with this hash are these. */
static void hand_out(struct vision *v, const XXH128_hash_t *hash, bool *done, int tiles, XXH128_hash_t key,
                     struct tensor rows, struct tensor out)
{
    for (int t = 0; t < tiles; t++) {
        if (done[t] || !XXH128_isEqual(hash[t], key))
            continue;
        v->backend->ops->copy(v->backend, tensor_rows(out, t * rows.rows, rows.rows), rows);
        done[t] = true;
    }
}

/* Collects tiles that are neither done nor already in this batch; returns how many. */
static int next_batch(const struct vision *v, const XXH128_hash_t *hash, const bool *done, int tiles,
                      int *batch)
{
    int n = 0;
    for (int t = 0; t < tiles && n < v->batch; t++) {
        bool twice = false;
        for (int i = 0; i < n; i++)
            twice = twice || XXH128_isEqual(hash[t], hash[batch[i]]);
        if (!done[t] && !twice)
            batch[n++] = t;
    }
    return n;
}

static void upload_tile(struct vision *v, int place, const float *patches)
{
    int64_t count = patches_of(v), size = preprocess_patch_size(v->config);
    struct tensor host = {(void *)(uintptr_t)patches, DT_F32, count, size, size};
    v->backend->ops->upload(v->backend, tensor_rows(v->patches, place * count, count), host);
}

int vision_encode(struct vision *v, const float *patches, int tiles, struct tensor out)
{
    size_t floats = preprocess_floats(v->config, 1);
    int64_t tokens = config_tile_tokens(v->config);
    XXH128_hash_t *hash = xmalloc((unsigned long)tiles, sizeof *hash);
    bool *done = xcalloc((unsigned long)tiles, sizeof *done);
    int computed = 0, n, batch[VISION_BATCH];
    for (int t = 0; t < tiles; t++) {
        hash[t] = XXH3_128bits(patches + (size_t)t * floats, floats * sizeof *patches);
        struct vision_entry *known = find(v, hash[t]);
        if (known)
            hand_out(v, hash, done, t + 1, hash[t], known->rows, out);
    }
    while ((n = next_batch(v, hash, done, tiles, batch)) > 0) {
        for (int i = 0; i < n; i++)
            upload_tile(v, i, patches + (size_t)batch[i] * floats);
        run_tower(v, n);
        for (int i = 0; i < n; i++) {
            struct tensor rows = tensor_rows(v->rows, i * tokens, tokens);
            XXH128_hash_t key = hash[batch[i]];
            hand_out(v, hash, done, tiles, key, rows, out);
            keep(v, key, rows);
        }
        computed += n;
    }
    free(hash);
    free(done);
    return computed;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

void vision_init(struct vision *v, const struct model_config *c, const struct vision_weights *w,
                 struct backend *b, enum dtype act)
{
    *v = (struct vision){.config = c, .weights = w, .backend = b, .act = act};
    int64_t tokens = config_tile_tokens(c), n = sequence_of(v), width = c->vit.hidden;
    v->batch = c->max_tiles > 1 ? VISION_BATCH : 1;
    const struct {
        struct tensor *t;
        int64_t rows, cols;
    } scratch[] = {
        {&v->patches, patches_of(v), preprocess_patch_size(c)},
        {&v->x, n, width},
        {&v->u, n, width},
        {&v->a, n, width},
        {&v->qkv, n, 3 * width},
        {&v->m, n, c->vit.mlp},
        {&v->s, tokens, 4 * width},
        {&v->p, tokens, c->vit.projector},
        {&v->rows, tokens, c->lm.hidden},
    };
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        *scratch[i].t = b->ops->alloc(b, act, v->batch * scratch[i].rows, scratch[i].cols);
    size_t bytes = (size_t)tokens * (size_t)c->lm.hidden * dtype_size(act);
    size_t fit = VISION_CACHE_BYTES / (bytes ? bytes : 1);
    v->cache_max = fit > VISION_CACHE_MAX ? VISION_CACHE_MAX : fit < VISION_BATCH ? VISION_BATCH : (int)fit;
    v->cache = xcalloc((unsigned long)v->cache_max, sizeof *v->cache);
}

void vision_free(struct vision *v)
{
    struct tensor *scratch[] = {&v->patches, &v->x, &v->u, &v->a, &v->qkv, &v->m, &v->s, &v->p, &v->rows};
    if (!v->backend) /* never set up */
        return;
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        v->backend->ops->free(v->backend, scratch[i]);
    for (int i = 0; i < v->cached; i++)
        v->backend->ops->free(v->backend, &v->cache[i].rows);
    free(v->cache);
    *v = (struct vision){0};
}
