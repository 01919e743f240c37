/* vision.c - see vision.h for the equations. */
#include "model/vision.h"

#include "base/clock.h"
#include "base/flag.h"
#include "model/preprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct tensor no_bias = {0};
static const float norm_eps = 1e-6f, projector_eps = 1e-5f;

/* ---- sizes --------------------------------------------------------------------------------------------- */

static int64_t patches_of(const struct vision *v)
{
    return (int64_t)v->patch_rows * v->patch_cols;
}

static int64_t tokens_of(const struct vision *v)
{
    return patches_of(v) / 4;
}

static int64_t sequence_of(const struct vision *v)
{
    return v->weights->prefix.rows + patches_of(v);
}

/* ---- tower --------------------------------------------------------------------------------------------- */

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
        b->ops->copy(b, x, v->position);
        b->ops->linear(b, x, tensor_rows(v->patches, t * count, count), w->embedder, no_bias, EPI_NONE, ADD);
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
    ops->linear(b, qkv, u, w->qkv, w->qkv_bias, EPI_NONE, SET);
    ops->attend_tiles(b, a, qkv, v->config->vit.heads, tiles);
    ops->linear(b, x, a, w->proj, w->proj_bias, EPI_NONE, ADD);

    ops->layernorm(b, u, x, w->norm2, w->norm2_bias, norm_eps);
    ops->linear(b, m, u, w->fc1, w->fc1_bias, EPI_GELU, SET);
    ops->linear(b, x, m, w->fc2, w->fc2_bias, EPI_NONE, ADD);
}

/* The tower's output without its prefix tokens. */
static struct tensor features(struct vision *v, int tile)
{
    struct backend *b = v->backend;
    int64_t first = tile * sequence_of(v) + v->weights->prefix.rows;
    struct tensor x = tensor_rows(v->x, first, patches_of(v)), u = tensor_rows(v->u, first, patches_of(v));
    if (!v->config->vit.final_norm)
        return x;
    b->ops->layernorm(b, u, x, v->ones, v->zeros, norm_eps);
    return u;
}

/* Pixel shuffle and projector. */
static void project_tiles(struct vision *v, int tiles)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    const struct vision_weights *w = v->weights;
    int64_t tokens = tokens_of(v);
    struct tensor s = tensor_rows(v->s, 0, tiles * tokens), p = tensor_rows(v->p, 0, tiles * tokens);
    for (int t = 0; t < tiles; t++)
        ops->pixel_shuffle(b, tensor_rows(v->s, t * tokens, tokens), features(v, t), v->patch_cols);
    ops->rmsnorm(b, s, s, w->norm, projector_eps);
    ops->linear(b, p, s, w->up, no_bias, EPI_RELU2, SET);
    ops->linear(b, tensor_rows(v->rows, 0, tiles * tokens), p, w->down, no_bias, EPI_NONE, SET);
}

static void watch(const struct vision *v, int block, int tiles)
{
    if (v->watch)
        v->watch(v->watch_arg, block, tensor_rows(v->x, 0, tiles * sequence_of(v)));
}

static int run_tower(struct vision *v, int tiles)
{
    embed_tiles(v, tiles);
    watch(v, -1, tiles);
    for (int i = 0; i < v->config->vit.blocks; i++) {
        if (flag_up(v->cancel) || flag_up(v->caller_cancel))
            return -1;
        run_block(v, &v->weights->blocks[i], tiles);
        watch(v, i, tiles);
    }
    project_tiles(v, tiles);
    return 0;
}

/* ---- cache --------------------------------------------------------------------------------------------- */

static struct vision_entry *find(struct vision *v, XXH128_hash_t hash)
{
    for (int i = 0; i < v->cached; i++)
        if (XXH128_isEqual(v->cache[i].hash, hash)) {
            v->cache[i].used = ++v->clock;
            return &v->cache[i];
        }
    return NULL;
}

static void evict(struct vision *v, struct vision_entry *old)
{
    v->cache_bytes -= tensor_bytes(old->rows);
    v->backend->ops->free(v->backend, &old->rows);
    *old = v->cache[--v->cached];
}

/* false: the cache is empty. */
static bool evict_oldest(struct vision *v)
{
    struct vision_entry *oldest = &v->cache[0];
    for (int i = 1; i < v->cached; i++)
        if (v->cache[i].used < oldest->used)
            oldest = &v->cache[i];
    if (v->cached == 0)
        return false;
    evict(v, oldest);
    return true;
}

/* Allocates, evicting cached tiles while memory is short. */
static struct tensor try_alloc(struct vision *v, enum dtype type, int64_t rows, int64_t cols)
{
    struct tensor t;
    do
        t = v->backend->ops->try_alloc(v->backend, type, rows, cols);
    while (!t.data && evict_oldest(v));
    return t;
}

static void drop(struct vision *v, struct tensor *t)
{
    if (t->data)
        v->backend->ops->free(v->backend, t);
}

/* Replaces t, which is freed even when there is no memory for the new one. */
static int replace(struct vision *v, struct tensor *t, enum dtype type, int64_t rows, int64_t cols,
                   struct err *e)
{
    drop(v, t);
    *t = try_alloc(v, type, rows, cols);
    if (t->data)
        return 0;
    double bytes = (double)rows * (double)cols * (double)dtype_size(type);
    *t = (struct tensor){0};
    return err_set(e, ERR_ENV,
                   "the device has no room for %.2f MiB of a picture: have a smaller one, or fewer "
                   "sessions at once",
                   bytes / (1 << 20));
}

/* Caches rows; evicts the oldest until there is room, but keeps at least VISION_BATCH. */
static void cache_rows(struct vision *v, XXH128_hash_t hash, struct tensor rows)
{
    while (v->cached == v->cache_max ||
           (v->cached >= VISION_BATCH && v->cache_bytes + tensor_bytes(rows) > VISION_CACHE_BYTES))
        evict_oldest(v);
    struct tensor kept = try_alloc(v, v->act, rows.rows, rows.cols);
    if (!kept.data)
        return;
    v->backend->ops->copy(v->backend, kept, rows);
    v->cache[v->cached++] = (struct vision_entry){hash, kept, ++v->clock};
    v->cache_bytes += tensor_bytes(rows);
}

/* ---- tiles --------------------------------------------------------------------------------------------- */

/* Copies rows to every tile with this hash. */
static void copy_to_tiles(struct vision *v, const XXH128_hash_t *hash, bool *done, int tiles,
                          XXH128_hash_t key, struct tensor rows, struct tensor out)
{
    for (int t = 0; t < tiles; t++) {
        if (done[t] || !XXH128_isEqual(hash[t], key))
            continue;
        v->backend->ops->copy(v->backend, tensor_rows(out, t * rows.rows, rows.rows), rows);
        done[t] = true;
    }
}

/* Collects tiles that are neither done nor twice in this batch; returns how many. */
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

/* The patches of an image, on the host or in v->cut, and the hash of each tile. */
struct tiles {
    const float *host; /* or NULL */
    XXH128_hash_t *hash;
    int n;
};

static void load_tile(struct vision *v, int place, const struct tiles *in, int tile)
{
    int64_t count = patches_of(v), size = preprocess_patch_size(v->config);
    struct tensor to = tensor_rows(v->patches, place * count, count);
    if (!in->host) {
        v->backend->ops->copy(v->backend, to, tensor_rows(v->cut, tile * count, count));
        return;
    }
    const float *from = in->host + (size_t)tile * (size_t)count * (size_t)size;
    v->backend->ops->upload(v->backend, to,
                            (struct tensor){(void *)(uintptr_t)from, DT_F32, count, size, size});
}

static void take_cached(struct vision *v, const struct tiles *in, bool *done, struct tensor out)
{
    for (int t = 0; t < in->n; t++) {
        struct vision_entry *known = done[t] ? NULL : find(v, in->hash[t]);
        if (known)
            copy_to_tiles(v, in->hash, done, t + 1, in->hash[t], known->rows, out);
    }
}

/* Lets other sessions use the tower; they may have cached the same tiles. */
static void yield_between_tiles(struct vision *v, const struct tiles *in, bool *done, struct tensor out)
{
    const volatile int *cancel = v->caller_cancel;
    void *caller = v->caller;
    if (!v->between_tiles || !in->host || v->config->vit.max_patches)
        return;
    v->between_tiles(caller); /* run_tower sees whether it was cancelled */
    v->caller_cancel = cancel;
    v->caller = caller;
    take_cached(v, in, done, out);
}

static int encode_tiles(struct vision *v, const struct tiles *in, struct tensor out, struct err *e)
{
    int64_t tokens = tokens_of(v);
    bool *done = xcalloc((unsigned long)in->n, sizeof *done);
    int computed = 0, n, batch[VISION_BATCH];
    take_cached(v, in, done, out);
    while ((n = next_batch(v, in->hash, done, in->n, batch)) > 0) {
        for (int i = 0; i < n; i++)
            load_tile(v, i, in, batch[i]);
        if (run_tower(v, n)) {
            computed = err_set(e, ERR_STOPPED, "stopped while the model was looking");
            break;
        }
        for (int i = 0; i < n; i++) {
            struct tensor rows = tensor_rows(v->rows, i * tokens, tokens);
            XXH128_hash_t key = in->hash[batch[i]];
            copy_to_tiles(v, in->hash, done, in->n, key, rows, out);
            cache_rows(v, key, rows);
        }
        computed += n;
        if (next_batch(v, in->hash, done, in->n, batch) > 0)
            yield_between_tiles(v, in, done, out);
    }
    free(done);
    return computed;
}

/* Hashes of n items of so many bytes, seeded with the tile's shape. */
static XXH128_hash_t *hash_each(const struct vision *v, const void *items, int n, size_t bytes)
{
    uint64_t shape = (uint64_t)v->patch_rows << 32 | (uint64_t)v->patch_cols;
    XXH128_hash_t *hash = xmalloc((unsigned long)n, sizeof *hash);
    for (int i = 0; i < n; i++)
        hash[i] = XXH3_128bits_withSeed((const char *)items + (size_t)i * bytes, bytes, shape);
    return hash;
}

int vision_encode(struct vision *v, const float *patches, int tiles, struct tensor out, struct err *e)
{
    size_t floats = (size_t)patches_of(v) * (size_t)preprocess_patch_size(v->config);
    struct tiles in = {patches, hash_each(v, patches, tiles, floats * sizeof *patches), tiles};
    int computed = encode_tiles(v, &in, out, e);
    free(in.hash);
    return computed;
}

/* Positions of a canvas: the table resized to it, or, of a native picture, its upper left part as it is. */
static int make_position(struct vision *v, int rows, int cols, struct err *e)
{
    struct backend *b = v->backend;
    int side = (int)lrint(sqrt((double)v->weights->position.rows)), width = v->config->vit.hidden;
    if (replace(v, &v->position, v->act, (int64_t)rows * cols, width, e))
        return -1;
    if (!v->config->vit.native_side) {
        b->ops->resize_grid(b, v->position, v->weights->position, rows, cols);
        return 0;
    }
    if (!v->table.data && replace(v, &v->table, v->act, (int64_t)side * side, width, e))
        return -1;
    b->ops->resize_grid(b, v->table, v->weights->position, side, side); /* the same numbers, as activations */
    for (int r = 0; r < rows; r++)
        b->ops->copy(b, tensor_rows(v->position, (int64_t)r * cols, cols),
                     tensor_rows(v->table, (int64_t)r * side, cols));
    return 0;
}

/* Sets the tower up for a canvas of rows x cols patches. */
static int set_canvas(struct vision *v, int rows, int cols, struct err *e)
{
    bool ready = v->position.data && rows == v->patch_rows && cols == v->patch_cols;
    if (vision_reserve(v, 1, rows, cols, e) || (!ready && make_position(v, rows, cols, e)))
        return -1;
    v->patch_rows = rows;
    v->patch_cols = cols;
    return 0;
}

int vision_encode_canvas(struct vision *v, const float *patches, int rows, int cols, struct tensor out,
                         struct err *e)
{
    return set_canvas(v, rows, cols, e) ? -1 : vision_encode(v, patches, 1, out, e);
}

/* ---- images -------------------------------------------------------------------------------------------- */

static int encode_on_host(struct vision *v, const struct image *im, bool round8, struct pool *pool,
                          const struct tile_grid *g, struct tensor out, double *preprocess_ms, struct err *e)
{
    int64_t start = clock_ns();
    float *patches = xmalloc(preprocess_image_floats(v->config, g), sizeof *patches);
    preprocess_image(v->config, im, g, round8, pool, patches);
    *preprocess_ms += clock_ms_since(start);
    int computed = vision_encode(v, patches, g->tiles, out, e);
    free(patches);
    return computed;
}

static int encode_on_device(struct vision *v, const struct image *im, bool round8, const struct tile_grid *g,
                            struct tensor out, double *preprocess_ms, struct err *e)
{
    int64_t start = clock_ns(), rows = g->tiles * patches_of(v);
    if (v->cut.rows < rows && replace(v, &v->cut, DT_F32, rows, preprocess_patch_size(v->config), e))
        return -1;
    uint64_t(*digest)[2] = xmalloc((unsigned long)g->tiles, sizeof *digest);
    int computed;
    do
        computed =
            preprocess_on(v->backend, v->config, im, g, round8, tensor_rows(v->cut, 0, rows), digest, e);
    while (computed && evict_oldest(v));
    *preprocess_ms += clock_ms_since(start);
    if (computed == 0) {
        struct tiles in = {NULL, hash_each(v, digest, g->tiles, sizeof *digest), g->tiles};
        computed = encode_tiles(v, &in, out, e);
        free(in.hash);
    }
    free(digest);
    return computed;
}

int vision_encode_image(struct vision *v, const struct image *im, const struct tile_grid *g, bool round8,
                        struct pool *pool, struct tensor out, double *preprocess_ms, struct err *e)
{
    if (v->config->vit.max_patches && set_canvas(v, g->patch_rows, g->patch_cols, e))
        return -1;
    struct image padded = {0};
    if (v->config->vit.native_side && preprocess_pad(v->config, im, &padded, e))
        return -1;
    im = padded.rgb ? &padded : im;
    bool device = v->backend->ops->make_patches;
    int computed = device ? encode_on_device(v, im, round8, g, out, preprocess_ms, e)
                          : encode_on_host(v, im, round8, pool, g, out, preprocess_ms, e);
    image_free(&padded);
    return computed;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

struct scratch {
    struct tensor *t;
    int64_t rows, cols;
};

enum { SCRATCH = 9 };

static void list_scratch(struct vision *v, int tiles, int64_t patches, struct scratch out[SCRATCH])
{
    const struct model_config *c = v->config;
    int64_t n = tiles * (patches + v->weights->prefix.rows), width = c->vit.hidden,
            tokens = tiles * patches / 4;
    const struct scratch all[SCRATCH] = {
        {&v->patches, tiles * patches, preprocess_patch_size(c)},
        {&v->x, n, width},
        {&v->u, n, width},
        {&v->a, n, width},
        {&v->qkv, n, 3 * width},
        {&v->m, n, c->vit.mlp},
        {&v->s, tokens, 4 * width},
        {&v->p, tokens, c->vit.projector},
        {&v->rows, tokens, c->lm.hidden},
    };
    memcpy(out, all, sizeof all);
}

static void drop_scratch(struct vision *v)
{
    struct scratch all[SCRATCH];
    list_scratch(v, 1, 1, all);
    for (int i = 0; i < SCRATCH; i++)
        drop(v, all[i].t);
}

int vision_reserve(struct vision *v, int tiles, int rows, int cols, struct err *e)
{
    struct scratch all[SCRATCH];
    list_scratch(v, tiles, (int64_t)rows * cols, all);
    if (v->patches.rows >= all[0].rows)
        return 0;
    for (int i = 0; i < SCRATCH; i++)
        if (replace(v, all[i].t, v->act, all[i].rows, all[i].cols, e)) {
            drop_scratch(v);
            return -1;
        }
    return 0;
}

static void make_final_norm(struct vision *v)
{
    int width = v->config->vit.hidden;
    float *ones = xmalloc((unsigned long)width, sizeof *ones);
    for (int i = 0; i < width; i++)
        ones[i] = 1;
    v->ones = v->backend->ops->alloc(v->backend, DT_F32, 1, width);
    v->zeros = v->backend->ops->alloc(v->backend, DT_F32, 1, width);
    v->backend->ops->upload(v->backend, v->ones, (struct tensor){ones, DT_F32, 1, width, width});
    free(ones);
}

void vision_init(struct vision *v, const struct model_config *c, const struct vision_weights *w,
                 struct backend *b, enum dtype act)
{
    *v = (struct vision){.config = c, .weights = w, .backend = b, .act = act};
    v->batch = c->max_tiles > 1 ? VISION_BATCH : 1;
    size_t bytes = (size_t)config_tile_tokens(c) * (size_t)c->lm.hidden * dtype_size(act);
    size_t fit = VISION_CACHE_BYTES / (bytes ? bytes : 1);
    v->cache_max = fit > VISION_CACHE_MAX ? VISION_CACHE_MAX : fit < VISION_BATCH ? VISION_BATCH : (int)fit;
    if (c->vit.final_norm)
        make_final_norm(v);
    if (c->vit.max_patches) {
        v->cache_max = VISION_CACHE_MAX;
    } else {
        v->patch_rows = v->patch_cols = config_grid(c);
        v->position = w->position;
        struct err e = ERR_INIT;
        if (vision_reserve(v, v->batch, v->patch_rows, v->patch_cols, &e))
            die(e.kind, "%s", e.text);
    }
    v->cache = xcalloc((unsigned long)v->cache_max, sizeof *v->cache);
}

void vision_free(struct vision *v)
{
    if (!v->backend) /* never initialised */
        return;
    drop_scratch(v);
    if (v->config->vit.max_patches)
        drop(v, &v->position);
    drop(v, &v->table);
    drop(v, &v->cut);
    drop(v, &v->ones);
    drop(v, &v->zeros);
    for (int i = 0; i < v->cached; i++)
        v->backend->ops->free(v->backend, &v->cache[i].rows);
    free(v->cache);
    *v = (struct vision){0};
}
