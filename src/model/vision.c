/* vision.c - runs a vision encoder over tiles, with a cache of encoded tiles and its scratch memory
 * (vision.h). */
#include "model/vision_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "model/preprocess.h"

#include <stdlib.h>
#include <string.h>

/* ---- encoder ------------------------------------------------------------------------------------------- */

static void watch(const struct vision *v, int block, int tiles)
{
    if (v->watch)
        v->watch(v->watch_arg, block, tensor_rows(v->x, 0, tiles * vision_sequence(v)));
}

static int run_tower(struct vision *v, int tiles)
{
    v->tower->embed(v, tiles);
    watch(v, -1, tiles);
    for (int i = 0; i < v->config->vit.blocks; i++) {
        if (flag_up(v->cancel) || flag_up(v->caller_cancel))
            return -1;
        v->tower->block(v, &v->weights->blocks[i], tiles);
        watch(v, i, tiles);
    }
    v->tower->project(v, tiles);
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

static size_t entry_bytes(const struct vision_entry *x)
{
    return tensor_bytes(x->rows) + (x->tower.data ? tensor_bytes(x->tower) : 0);
}

static void evict(struct vision *v, struct vision_entry *old)
{
    v->cache_bytes -= entry_bytes(old);
    v->backend->ops->free(v->backend, &old->rows);
    if (old->tower.data)
        v->backend->ops->free(v->backend, &old->tower);
    *old = v->cache[--v->cached];
}

/* Evicts the least recently used tile. Returns false if the cache is empty. */
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

/* Allocates a tensor, evicting cached tiles while memory is short. */
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

/* Replaces t; the old tensor is freed even if memory is too short for the new one. Returns -1 with e. */
int vision_replace(struct vision *v, struct tensor *t, enum dtype type, int64_t rows, int64_t cols,
                   struct err *e)
{
    drop(v, t);
    *t = try_alloc(v, type, rows, cols);
    if (t->data)
        return 0;
    double bytes = (double)rows * (double)cols * (double)dtype_size(type);
    *t = (struct tensor){0};
    return err_set(e, ERR_ENV,
                   "not enough device memory for %.2f MiB of an image: use smaller images or fewer sessions",
                   bytes / (1 << 20));
}

/* Copies the rows of the one tile in v->x, for heads to read later; data NULL: the checkpoint has none, or
 * memory is short. */
static struct tensor keep_tower(const struct vision *v)
{
    struct tensor x = tensor_rows(v->x, 0, vision_sequence(v)), kept = {0};
    if (v->weights->extra.n && v->config->vit.native_side && !v->config->vit.final_norm)
        kept = v->backend->ops->try_alloc(v->backend, v->act, x.rows, x.cols);
    if (kept.data)
        v->backend->ops->copy(v->backend, kept, x);
    return kept;
}

/* Caches rows, and those of the tower, which it owns from now on; evicts the oldest until there is room, but
 * keeps at least VISION_BATCH. */
static void cache_rows(struct vision *v, XXH128_hash_t hash, struct tensor rows, struct tensor tower)
{
    while (v->cached == v->cache_max ||
           (v->cached >= VISION_BATCH && v->cache_bytes + tensor_bytes(rows) > VISION_CACHE_BYTES))
        evict_oldest(v);
    struct tensor kept = try_alloc(v, v->act, rows.rows, rows.cols);
    if (!kept.data) {
        drop(v, &tower);
        return;
    }
    v->backend->ops->copy(v->backend, kept, rows);
    v->cache[v->cached] = (struct vision_entry){hash, kept, tower, ++v->clock};
    v->cache_bytes += entry_bytes(&v->cache[v->cached++]);
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

/* Collects the tiles that are not encoded yet, one per distinct hash; returns their number. */
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
    const float *host; /* NULL: in v->cut */
    XXH128_hash_t *hash;
    int n;
};

static void load_tile(struct vision *v, int place, const struct tiles *in, int tile)
{
    int64_t count = vision_patches(v), size = preprocess_patch_size(v->config);
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

/* Lets other sessions use the encoder between tiles, then copies tiles they have cached meanwhile. */
static void yield_between_tiles(struct vision *v, const struct tiles *in, bool *done, struct tensor out)
{
    const volatile int *cancel = v->caller_cancel;
    void *caller = v->caller;
    if (!v->between_tiles || !in->host || v->config->vit.max_patches)
        return;
    v->between_tiles(caller); /* run_tower() checks whether it was cancelled */
    v->caller_cancel = cancel;
    v->caller = caller;
    take_cached(v, in, done, out);
}

static int encode_tiles(struct vision *v, const struct tiles *in, struct tensor out, struct err *e)
{
    int64_t tokens = vision_tokens(v);
    bool *done = xcalloc((unsigned long)in->n, sizeof *done);
    int computed = 0, n, *batch = xmalloc((unsigned long)v->batch, sizeof *batch);
    v->latest = in->hash[0];
    take_cached(v, in, done, out);
    while ((n = next_batch(v, in->hash, done, in->n, batch)) > 0) {
        for (int i = 0; i < n; i++)
            load_tile(v, i, in, batch[i]);
        if (run_tower(v, n)) {
            computed = err_set(e, ERR_STOPPED, "stopped while encoding an image");
            break;
        }
        for (int i = 0; i < n; i++) {
            struct tensor rows = tensor_rows(v->rows, i * tokens, tokens);
            XXH128_hash_t key = in->hash[batch[i]];
            copy_to_tiles(v, in->hash, done, in->n, key, rows, out);
            cache_rows(v, key, rows, n == 1 ? keep_tower(v) : (struct tensor){0});
        }
        computed += n;
        if (next_batch(v, in->hash, done, in->n, batch) > 0)
            yield_between_tiles(v, in, done, out);
    }
    free(batch);
    free(done);
    return computed;
}

/* Returns the hashes of n items of `bytes` bytes, seeded with the tile's shape; the caller frees them. */
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
    size_t floats = (size_t)vision_patches(v) * (size_t)preprocess_patch_size(v->config);
    struct tiles in = {patches, hash_each(v, patches, tiles, floats * sizeof *patches), tiles};
    int computed = encode_tiles(v, &in, out, e);
    free(in.hash);
    return computed;
}

/* Prepares the encoder for a canvas of rows x cols patches. Returns -1 with e. */
static int set_canvas(struct vision *v, int rows, int cols, struct err *e)
{
    bool ready = v->position.data && rows == v->patch_rows && cols == v->patch_cols;
    if (vision_reserve(v, 1, rows, cols, e) || (!ready && v->tower->place(v, rows, cols, e)))
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
    autofree float *patches = xmalloc(preprocess_image_floats(v->config, g), sizeof *patches);
    preprocess_image(v->config, im, g, round8, pool, patches);
    *preprocess_ms += clock_ms_since(start);
    return vision_encode(v, patches, g->tiles, out, e);
}

static int encode_on_device(struct vision *v, const struct image *im, bool round8, const struct tile_grid *g,
                            struct tensor out, double *preprocess_ms, struct err *e)
{
    int64_t start = clock_ns(), rows = g->tiles * vision_patches(v);
    if (v->cut.rows < rows && vision_replace(v, &v->cut, DT_F32, rows, preprocess_patch_size(v->config), e))
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
    if (v->config->vit.native_side && preprocess_native(v->config, im, pool, &padded, e))
        return -1;
    im = padded.rgb ? &padded : im;
    bool device = v->backend->ops->make_patches && v->tower->cut_on_device;
    int computed = device ? encode_on_device(v, im, round8, g, out, preprocess_ms, e)
                          : encode_on_host(v, im, round8, pool, g, out, preprocess_ms, e);
    image_free(&padded);
    return computed;
}

int vision_use_tower(struct vision *v, const struct image *im, const struct tile_grid *g, bool round8,
                     struct pool *pool, vision_use_rows *use, void *arg, struct err *e)
{
    if (!v->weights->extra.n || !v->config->vit.native_side)
        return 0;
    struct tensor rows = try_alloc(v, v->act, preprocess_tokens(g), config_image_cols(v->config));
    double ms = 0;
    if (!rows.data)
        return err_set(e, ERR_ENV, "out of device memory: cannot allocate the rows of an image");
    int computed = vision_encode_image(v, im, g, round8, pool, rows, &ms, e);
    v->backend->ops->free(v->backend, &rows);
    const struct vision_entry *known = computed < 0 ? NULL : find(v, v->latest);
    if (!known || !known->tower.data)
        return computed < 0 ? -1 : 0;
    v->backend->ops->copy(v->backend, tensor_rows(v->x, 0, known->tower.rows), known->tower);
    const struct vision_tower_rows r = {.vision = v,
                                        .rows = tensor_rows(v->x, v->weights->prefix.rows, vision_patches(v)),
                                        .patch_rows = g->patch_rows,
                                        .patch_cols = g->patch_cols,
                                        .patch = v->config->vit.patch,
                                        .scale =
                                            image_native_scale(im->w, im->h, v->config->vit.native_side)};
    return use(arg, &r, e);
}

void vision_extra_block(const struct vision_tower_rows *r)
{
    r->vision->tower->block(r->vision, &r->vision->weights->extra.block, 1);
}

void vision_mlp(struct vision *v, const struct vit_block *w, struct tensor x, struct tensor u,
                enum epilogue activation)
{
    const struct ops *ops = v->backend->ops;
    struct backend *b = v->backend;
    int64_t width = v->config->vit.mlp;
    for (int64_t at = 0, n; at < x.rows; at += n) {
        n = x.rows - at < v->m.rows ? x.rows - at : v->m.rows;
        struct tensor m = tensor_cols(tensor_rows(v->m, 0, n), 0, width), part = tensor_rows(u, at, n);
        ops->linear(b, m, part, w->gate ? w->gate : w->fc1, w->gate ? w->gate_bias : w->fc1_bias, activation,
                    SET);
        if (w->gate) {
            struct tensor up = tensor_cols(tensor_rows(v->m, 0, n), width, width);
            ops->linear(b, up, part, w->fc1, w->fc1_bias, EPI_NONE, SET);
            ops->swiglu(b, m, m, up);
        }
        ops->linear(b, tensor_rows(x, at, n), m, w->fc2, w->fc2_bias, EPI_NONE, ADD);
    }
}

/* ---- life ---------------------------------------------------------------------------------------------- */

struct scratch {
    struct tensor *t;
    int64_t rows, cols;
};

enum { SCRATCH = 9 };

static int64_t mlp_rows(const struct vision *v, int64_t n)
{
    bool host = v->backend->ops->borrow; /* the weights are in host memory */
    return host && n > VISION_MLP_ROWS ? VISION_MLP_ROWS : n;
}

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
        {&v->m, mlp_rows(v, n), (c->vit.window ? 2 : 1) * c->vit.mlp},
        {&v->s, tokens, 4 * width},
        {&v->p, tokens, c->vit.projector},
        {&v->rows, tokens, config_image_cols(c)},
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
        if (vision_replace(v, all[i].t, v->act, all[i].rows, all[i].cols, e)) {
            drop_scratch(v);
            return -1;
        }
    return 0;
}

void vision_init(struct vision *v, const struct model_config *c, const struct vision_weights *w,
                 struct backend *b, enum dtype act)
{
    *v = (struct vision){.config = c, .weights = w, .backend = b, .act = act};
    int most = b->picture_tiles ? b->picture_tiles : VISION_BATCH, tiles = c->max_tiles + 1; /* one more
                                                                                              * for the
                                                                                              * thumbnail */
    v->batch = c->max_tiles == 1 ? 1 : tiles < most ? tiles : most;
    size_t bytes = (size_t)config_tile_tokens(c) * (size_t)c->lm.hidden * dtype_size(act);
    size_t fit = VISION_CACHE_BYTES / (bytes ? bytes : 1);
    v->cache_max = fit > VISION_CACHE_MAX ? VISION_CACHE_MAX : fit < VISION_BATCH ? VISION_BATCH : (int)fit;
    v->tower = c->vit.window ? &tower_qwen25 : family_is_qwen(c->family) ? &tower_qwen : &tower_radio;
    if (v->tower->open)
        v->tower->open(v);
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
    if (!v->backend) /* never initialized */
        return;
    drop_scratch(v);
    if (v->config->vit.max_patches)
        drop(v, &v->position);
    drop(v, &v->table);
    drop(v, &v->rotary);
    free(v->order);
    free(v->windows);
    drop(v, &v->cut);
    drop(v, &v->ones);
    drop(v, &v->zeros);
    while (evict_oldest(v))
        ;
    free(v->cache);
    *v = (struct vision){0};
}
