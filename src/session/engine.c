/* engine.c - opens a model directory as an engine: config, tokenizer, backend and weights, in this order,
 * and checks that they agree. */
#include "session/engine_impl.h"

#include "base/file.h"
#include "capacity/plan.h"
#include "model/config.h"
#include "model/preprocess.h"
#include "session/chat.h"
#include "session/session_impl.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- identity --------------------------------------------------------------------------------------- */

enum { SAMPLE = 256 };

/* Hashes the config and each tensor's name, type, shape and first `sample` bytes. Models of the same size
 * with different weights must not load each other's sessions. */
static uint64_t hash_model(const char *dir, const struct safetensors *s, size_t sample)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        die(ERR_ENV, "out of memory");
    XXH3_64bits_reset(x);
    autofree char *text = config_source(dir);
    if (text)
        XXH3_64bits_update(x, text, strlen(text));
    safetensors_scattered(s, sample == SAMPLE);
    for (int i = 0; i < safetensors_count(s); i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        XXH3_64bits_update(x, t->name, strlen(t->name) + 1);
        XXH3_64bits_update(x, &t->dtype, sizeof t->dtype);
        XXH3_64bits_update(x, t->shape, (size_t)t->dims * sizeof *t->shape);
        XXH3_64bits_update(x, t->data, t->bytes < sample ? t->bytes : sample);
    }
    safetensors_scattered(s, false);
    uint64_t hash = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    return hash;
}

int model_hash_weights(const char *dir, size_t most, uint64_t *hash, struct err *e)
{
    struct safetensors *s = safetensors_open(dir, e);
    if (!s)
        return -1;
    bool small = safetensors_bytes(s) <= most;
    if (small)
        *hash = hash_model(dir, s, SIZE_MAX);
    safetensors_close(s);
    return small ? 0 : 1;
}

/* ---- files that must agree ----------------------------------------------------------------------------- */

static void add_stop(struct engine *g, int32_t id)
{
    if (id >= 0 && !engine_is_stop(g, id) && g->n_stops < ENGINE_MAX_STOPS)
        g->stops[g->n_stops++] = id;
}

/* Checks the image tokens whose ids the config names. */
static int check_named_ids(struct engine *g, struct err *e)
{
    const struct model_config *c = &g->config;
    const int ids[] = {c->image_open, c->image_token, c->image_close};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (!tokenizer_is_special(g->tokenizer, ids[i]))
            return err_set(e, ERR_MODEL,
                           "the config names %d as an image token, but the tokenizer has no special "
                           "token with this id",
                           ids[i]);
    g->image_open = c->image_open;
    g->image_close = c->image_close;
    return 0;
}

static int check_image_ids(struct engine *g, struct err *e)
{
    g->image_open = g->image_close = -1;
    if (!g->config.vision)
        return 0;
    if (g->config.image_open >= 0)
        return check_named_ids(g, e);
    int32_t mark = tokenizer_find(g->tokenizer, "<image>");
    g->image_open = tokenizer_find(g->tokenizer, "<img>");
    g->image_close = tokenizer_find(g->tokenizer, "</img>");
    if (!tokenizer_is_special(g->tokenizer, g->image_open) ||
        !tokenizer_is_special(g->tokenizer, g->image_close))
        return err_set(e, ERR_MODEL, "the tokenizer has no tokens '<img>' and '</img>'");
    if (g->config.image_token < 0 && !tokenizer_is_special(g->tokenizer, mark))
        return err_set(e, ERR_MODEL,
                       "the config has no 'img_context_token_id', the tokenizer no token '<image>'");
    if (g->config.image_token < 0)
        g->config.image_token = mark;
    if (g->config.image_token >= g->weights.vocab || (mark >= 0 && mark != g->config.image_token))
        return err_set(e, ERR_MODEL, "'img_context_token_id' is %d, the tokenizer's '<image>' is %d",
                       g->config.image_token, mark);
    return 0;
}

/* Checks that tokenizer, config and vocabulary size agree; collects the stop tokens. */
static int check_ids(struct engine *g, struct err *e)
{
    const struct model_config *c = &g->config;
    int vocab = g->weights.vocab, size = tokenizer_size(g->tokenizer);
    if (size > vocab)
        return err_set(e, ERR_MODEL, "the tokenizer has ids up to %d, the embedding %d rows", size - 1,
                       vocab);
    for (int i = 0; i < c->n_eos; i++) {
        if (c->eos[i] >= vocab)
            return err_set(e, ERR_MODEL, "'eos_token_id' %d has no row of the embedding's %d", c->eos[i],
                           vocab);
        add_stop(g, c->eos[i]);
    }
    static const char *const ends[] = {"<SPECIAL_12>", "<SPECIAL_11>", "</s>", "<|im_end|>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int32_t id = tokenizer_find(g->tokenizer, ends[i]);
        add_stop(g, tokenizer_is_special(g->tokenizer, id) ? id : -1);
    }
    return check_image_ids(g, e);
}

int engine_check_tokenizer(const struct model_config *c, int vocab, const struct tokenizer *t, struct err *e)
{
    struct engine g = {.config = *c, .tokenizer = (struct tokenizer *)(uintptr_t)t, .weights.vocab = vocab};
    return check_ids(&g, e);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* Rejects options that this model family does not support. */
static int check_family(const struct engine *g, const struct engine_options *o, struct err *e)
{
    if (!family_is_qwen(g->config.family))
        return 0;
    if (o->state == STATE_FP16)
        return err_set(e, ERR_USAGE,
                       "model '%s': the states of this family are kept in fp32; leave out --state fp16",
                       o->dir);
    return 0;
}

/* Checks that the weights can be multiplied with the requested activations: int8 activations need integer
 * weights, fp8 activations fp8 weights. */
static int check_activations(const struct engine_options *o, struct err *e)
{
    bool f8 = o->activations == ACTIVATIONS_FP8;
    if (o->activations == ACTIVATIONS_AUTO)
        return 0;
    if (o->f32)
        return err_set(e, ERR_USAGE, "activations are either f32 or %s: leave out --f32 or --activations",
                       f8                                   ? "fp8"
                       : o->activations == ACTIVATIONS_BF16 ? "bf16"
                                                            : "int8");
    if (o->activations == ACTIVATIONS_BF16)
        return 0;
    if (f8 && o->weights != WEIGHTS_AUTO && o->weights != WEIGHTS_FP8)
        return err_set(e, ERR_USAGE, "fp8 activations require fp8 weights: use --weights auto or fp8");
    if (!f8 && (o->weights == WEIGHTS_BF16 || o->weights == WEIGHTS_FP8))
        return err_set(e, ERR_USAGE,
                       "int8 activations require integer weights: use --weights auto, int8 or int4");
    return 0;
}

/* Checks that the backend has products with the requested activations. */
static int check_rounding(const struct ops *b, const struct engine_options *o, struct err *e)
{
    bool f8 = o->activations == ACTIVATIONS_FP8;
    if (!activations_rounded(o->activations) || (b->round_activations && b->rounds_to_f8 == f8))
        return 0;
    if (f8)
        return err_set(e, ERR_USAGE,
                       "backend '%s' does not support fp8 activations: use a GPU of compute capability "
                       "8.9 or later, or leave out --activations",
                       b->name);
    return err_set(e, ERR_USAGE, "backend '%s' does not support int8 activations: leave out --activations",
                   b->name);
}

/* Opens the backend and decides where the weights are stored: they are copied into GPU memory; on a CPU
 * they may stay memory-mapped. Sets g->plan and *hold. */
static int open_backend(struct engine *g, const struct engine_options *o, const struct safetensors *s,
                        struct weights_placement *hold, struct err *e)
{
    struct plan *p = &g->plan;
    struct engine_options packed = *o;
    packed.weights_in = WEIGHTS_IN_RAM;
    packed.device = "cuda";
    struct err why = ERR_INIT; /* reason for falling back to the CPU */
    bool wanted = o->device && !strncmp(o->device, "cuda", 4),
         cannot =
             backend_gpu_list(NULL, 0, NULL) > 0 && plan_make(p, &g->config, s, &packed, wanted ? e : &why);
    if ((cannot && wanted) || plan_placement(hold, &g->config, s, o, e))
        return err_prefix(e, "model '%s'", o->dir);
    plan_fit(p, 0); /* 0: never below the smallest chunks, even if they do not fit */
    g->backend = backend_open(cannot ? "cpu" : o->device, o->isa, plan_own(p, 1, 0), g->pool, e);
    if (g->backend && (!g->backend->ops->borrow || o->random))
        *hold = (struct weights_placement){false, 0};
    return g->backend ? check_rounding(g->backend->ops, o, e) : -1;
}

/* Chooses the largest chunks of the plan for which the device has memory. */
static void choose_chunks(struct engine *g, const struct engine_options *o)
{
    struct plan *p = &g->plan;
    if (!g->backend->ops->memory_left)
        return;
    size_t left = g->backend->ops->memory_left(g->backend);
    plan_fit(p, left - (left < o->state_memory ? left : o->state_memory));
    g->backend->prompt_rows = p->chunks[p->chunk].prompt_rows;
    g->backend->picture_tiles = p->chunks[p->chunk].picture_tiles;
}

static int open_weights(struct engine *g, const struct engine_options *o, struct err *e)
{
    struct safetensors *s = safetensors_open(o->dir, e);
    if (!s)
        return -1;
    g->hash = hash_model(o->dir, s, SAMPLE);
    struct weights_placement hold = {false, 0};
    if (open_backend(g, o, s, &hold, e)) {
        safetensors_close(s);
        return -1;
    }
    choose_chunks(g, o);
    struct bind_options bind = {.f32 = o->f32,
                                .progress = o->progress,
                                .progress_arg = o->progress_arg,
                                .storage = options_storage(o),
                                .coarse = activations_rounded(o->activations),
                                .coarse_blocks = !o->f32 && (o->activations == ACTIVATIONS_AUTO ||
                                                             o->activations == ACTIVATIONS_INT8),
                                .tower8 = o->tower == TOWER_INT8,
                                .embed_on_host = g->plan.pinned > 0,
                                .mapped = hold.mapped,
                                .resident = hold.resident,
                                .random = o->random};
    bool tower8 = bind.tower8 || o->activations == ACTIVATIONS_INT8; /* INT8 vision weights are not part of
                                                                      * the cache key */
    if (o->cache && !o->random && !tower8 && o->weights != WEIGHTS_AUTO && o->weights != WEIGHTS_BF16)
        bind.cache = g->cache =
            weight_cache_open(o->dir, s, g->hash, o->weights, g->backend->ops->quant_layout);
    int rc = weights_bind(&g->weights, &g->config, s, g->backend, &bind, e);
    if (rc == 0)
        rc = check_ids(g, e);
    if (rc)
        err_prefix(e, "model '%s'", o->dir);
    else if (g->weights.forms)
        warn("matrices in formats without kernels are converted: %s", g->weights.forms);
    weight_cache_finish(g->cache, rc == 0);
    if (hold.mapped || g->weights.embed_codes.rows) { /* pages of weights that were copied are not needed */
        safetensors_release_all(s);
        g->files = s;
    } else {
        safetensors_close(s);
    }
    malloc_trim(0); /* returns the memory that the JSON readers freed */
    return rc;
}

/* Reserves the scratch memory of the operations before sessions take the rest. */
static int reserve_scratch(struct engine *g, struct err *e)
{
    struct work_need n = {g->plan.scratch, tokenizer_size(g->tokenizer), config_groups(&g->config.lm)};
    return g->backend->ops->reserve ? g->backend->ops->reserve(g->backend, &n, e) : 0;
}

/* Creates the state pool. By default states may use 19/20 of the device memory left by the weights, less
 * the memory for encoding images. */
static int open_state_pool(struct engine *g, const struct engine_options *o, struct err *e)
{
    enum { SPARE_PART = 20 };
    struct recurrent one;
    recurrent_set_shapes(&one, &g->config.lm, g->types);
    size_t least = (size_t)one.block.cols, left = 0;
    size_t spare = g->config.vision ? VISION_CACHE_BYTES + plan_picture(&g->plan, &g->config, 1920, 1080) : 0;
    recurrent_free_shapes(&one);
    if (g->backend->ops->memory_left)
        left = g->backend->ops->memory_left(g->backend) / SPARE_PART * (SPARE_PART - 1);
    left -= left < spare ? left : spare;
    g->state_pool =
        (struct state_pool){.backend = g->backend, .bound = o->state_memory ? o->state_memory : left};
    if (g->state_pool.bound && g->state_pool.bound < least)
        return err_set(e, o->state_memory ? ERR_USAGE : ERR_ENV,
                       "the state of one session takes %.2f MiB; %s %.2f MiB", (double)least / (1 << 20),
                       o->state_memory ? "state memory is limited to" : "the weights leave",
                       (double)g->state_pool.bound / (1 << 20));
    return 0;
}

struct engine *engine_open(const struct engine_options *o, struct err *e)
{
    struct engine *g = xcalloc(1, sizeof *g);
    g->dir = xstrdup(o->dir);
    g->types = state_types(o->f32, o->state, o->kv);
    g->act = g->types.act;
    g->round8 = o->round8;
    g->speculate = o->speculate < ENGINE_MAX_SPECULATE ? o->speculate : ENGINE_MAX_SPECULATE;
    if (check_activations(o, e) || config_load(&g->config, o->dir, e) || check_family(g, o, e) ||
        config_limit_pixels(&g->config, o->min_pixels, o->max_pixels, e) ||
        !(g->tokenizer = tokenizer_open(o->dir, e)))
        goto fail;
    g->chat = chat_open_template(g);
    g->pool = pool_new(o->threads);
    if (open_weights(g, o, e))
        goto fail;
    g->types.ring = state_ring(g->types, &g->config.lm, g->backend->ops->ssm_flush != NULL);
    language_init(&g->language, &g->config.lm, &g->weights, g->backend, g->act);
    if (g->config.vision)
        vision_init(&g->vision, &g->config, &g->weights.vision, g->backend, g->act);
    if (reserve_scratch(g, e) || open_state_pool(g, o, e) ||
        (o->state == STATE_FP16 && !o->random && !o->any_drift && drift_gate(g, o, e)))
        goto fail;
    g->language.cancel = g->vision.cancel = o->cancel; /* set after drift_gate(), which must not be
                                                        * cancelled */
    if (o->shared)
        g->scheduler = scheduler_new(session_serve, g, o->cancel);
    g->vision.between_tiles = o->shared ? session_yield : NULL;
    return g;
fail:
    engine_close(g);
    return NULL;
}

void engine_close(struct engine *g)
{
    if (!g)
        return;
    prefix_cache_free(&g->prefixes);
    scheduler_free(g->scheduler);
    if (g->backend) {
        vision_free(&g->vision);
        language_free(&g->language);
        weights_free(&g->weights, &g->config, g->backend);
    }
    safetensors_close(g->files);
    weight_cache_close(g->cache);
    backend_free(g->backend);
    pool_free(g->pool);
    tokenizer_free(g->tokenizer);
    chat_template_free(g->chat);
    free(g->dir);
    free(g);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Attaches the GPU to the calling thread, which may not be the one that opened it. */
static void attach(struct engine *g)
{
    if (g->backend->ops->attach)
        g->backend->ops->attach(g->backend);
}

void engine_enter(struct engine *g, struct scheduler_client *c)
{
    if (g->scheduler)
        scheduler_acquire(g->scheduler, c, false);
    attach(g);
}

int engine_try_enter(struct engine *g, struct scheduler_client *c, struct err *e)
{
    if (g->scheduler && scheduler_acquire(g->scheduler, c, true))
        return session_err_stopped(e);
    attach(g);
    return 0;
}

void engine_leave(struct engine *g)
{
    if (g->scheduler)
        scheduler_release(g->scheduler);
}

struct scheduler_stats engine_scheduler_stats(const struct engine *g)
{
    return g->scheduler ? scheduler_stats(g->scheduler) : (struct scheduler_stats){0};
}

/* ---- accessors ------------------------------------------------------------------------------- */

const char *engine_dir(const struct engine *g)
{
    return g->dir;
}

const struct model_config *engine_config(const struct engine *g)
{
    return &g->config;
}

const struct tokenizer *engine_tokenizer(const struct engine *g)
{
    return g->tokenizer;
}

const char *engine_isa(const struct engine *g)
{
    return g->backend->ops->name;
}

int engine_threads(const struct engine *g)
{
    return pool_threads(g->pool);
}

int engine_vocab(const struct engine *g)
{
    return g->weights.vocab;
}

double engine_bytes_per_weight(const struct engine *g)
{
    return g->weights.element_bytes;
}

enum kv_storage engine_kv_storage(const struct engine *g)
{
    return g->types.kv == DT_F8E4M3 ? KV_FP8 : KV_AUTO;
}

uint64_t engine_hash(const struct engine *g)
{
    return g->hash;
}

struct state_memory engine_state_memory(const struct engine *g)
{
    struct engine *entered = (struct engine *)(uintptr_t)g;
    const struct state_pool *r = &g->state_pool;
    engine_enter(entered, NULL);
    struct state_memory m = {r->bound, r->used, r->most, r->spilled, r->restored};
    engine_leave(entered);
    return m;
}

size_t engine_memory_left(const struct engine *g)
{
    struct engine *entered = (struct engine *)(uintptr_t)g;
    struct backend *b = g->backend;
    engine_enter(entered, NULL);
    size_t left = b->ops->memory_left ? b->ops->memory_left(b) : 0;
    engine_leave(entered);
    return left;
}

struct speculation_counts engine_speculation(const struct engine *g)
{
    struct engine *entered = (struct engine *)(uintptr_t)g;
    engine_enter(entered, NULL);
    struct speculation_counts n = g->drafts;
    engine_leave(entered);
    return n;
}

enum state_storage engine_state_storage(const struct engine *g)
{
    return g->types.ssm == DT_F16 ? STATE_FP16 : STATE_FP32;
}

const struct drift *engine_drift(const struct engine *g)
{
    return &g->drift;
}

int engine_image_tokens(const struct engine *g, int w, int h, int *cols, int *rows)
{
    struct tile_grid grid = {0};
    if (g->config.vision)
        grid = preprocess_grid(&g->config, w, h);
    if (cols)
        *cols = grid.cols;
    if (rows)
        *rows = grid.rows;
    return (int)preprocess_tokens(&grid);
}

int engine_limit_pixels(struct engine *g, int most, struct err *e)
{
    return config_limit_pixels(&g->config, 0, most, e);
}

bool engine_is_stop(const struct engine *g, int32_t id)
{
    for (int i = 0; i < g->n_stops; i++)
        if (g->stops[i] == id)
            return true;
    return false;
}
