/* plan.c - computes the memory of a model before it is loaded (plan.h). */
#include "capacity/plan.h"

#include "capacity/memory.h"
#include "model/language.h"
#include "model/preprocess.h"
#include "model/vision.h"

#include "src/ops/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PANEL = 32,          /* rows of packed matrices are padded to a multiple */
    PROGRAM = 256 << 10, /* heap and stacks of the program without a model */
    SAMPLE = 4096,       /* tokens whose KV cache is counted */
};

/* ---- parts ------------------------------------------------------------------------------------------ */

const char *plan_kind_name(enum plan_kind k)
{
    static const char *const names[PLAN_KINDS] = {
        "embeddings", "output head",   "Mamba layers", "DeltaNet layers", "attention",
        "MLP layers", "expert layers", "vision",       "projector",       "unused"};
    return names[k];
}

/* Returns the kind of layer i of the file; in models where a layer of the file is a mixer and an MLP,
 * `name` decides which of the two. */
static enum plan_kind layer_kind_of(const struct lm_config *c, int i, const char *name)
{
    bool two = strpbrk(c->pattern, "DAR");
    if (two)
        i = 2 * i + (strstr(name, ".mlp.") || strstr(name, "post_attention_"));
    if (i < 0 || i >= c->layers)
        return PLAN_OTHER;
    switch (c->pattern[i]) {
    case LAYER_MAMBA:
        return PLAN_MAMBA;
    case LAYER_DELTA:
        return PLAN_DELTA;
    case LAYER_ATTENTION:
    case LAYER_GATED_ATTENTION:
    case LAYER_ROTARY_ATTENTION:
        return PLAN_ATTENTION;
    case LAYER_MOE:
    case LAYER_SWIGLU_MOE:
        return PLAN_EXPERTS;
    default:
        return PLAN_MLP;
    }
}

enum plan_kind plan_kind_of(const struct lm_config *c, const char *name)
{
    const char *layer = strstr(name, "layers.");
    if (!strncmp(name, "vision_model.", 13))
        return strncmp(name, "vision_model.radio_model.model.", 31) ? PLAN_OTHER : PLAN_VISION;
    if (!strncmp(name, "mlp1.", 5))
        return PLAN_PROJECTOR;
    const char *part = strncmp(name, "model.", 6) ? name : name + 6;
    if (!strncmp(part, "visual.", 7)) /* Qwen */
        return strstr(part, "merger") ? PLAN_PROJECTOR : PLAN_VISION;
    if (strstr(name, "embeddings.") || strstr(name, "embed_tokens."))
        return PLAN_EMBEDDINGS;
    bool mtp = !strncmp(name, "mtp.", 4) || strstr(name, ".mtp.");
    if (strstr(name, "lm_head.") || strstr(name, "norm_f.") ||
        (!layer && !mtp && strstr(name, "model.norm.")))
        return PLAN_HEAD;
    return layer && !mtp ? layer_kind_of(c, atoi(layer + 7), name) : PLAN_OTHER;
}

/* ---- counting backend --------------------------------------------------------------------------------- */

struct counter {
    struct backend backend;
    struct ops ops;
    size_t own, mapped, streamed;
    const struct work_parts *gpu; /* NULL: host memory */
    size_t scratch;               /* scratch of the matrix product that needs most */
    const struct lm_config *config;
    struct plan_part *parts; /* NULL: not by part */
    struct plan_part seen;   /* memory owned and mapped after the last tensor */
    char nothing[64] __attribute__((aligned(64)));
};

static struct counter *counter_of(const struct backend *b)
{
    return b->priv;
}

static struct tensor count_alloc(struct backend *b, enum dtype t, int64_t rows, int64_t cols)
{
    struct counter *k = counter_of(b);
    size_t bytes = (size_t)rows * (size_t)cols * dtype_size(t);
    k->own += k->gpu ? work_tensor(bytes) : bytes;
    return (struct tensor){k->nothing, t, rows, cols, cols};
}

static void count_free(struct backend *b, struct tensor *t)
{
    *t = (struct tensor){0};
}

static void count_copy(struct backend *b, struct tensor dst, struct tensor src)
{
}

static void count_scratch(struct counter *k, size_t bytes)
{
    k->scratch = bytes > k->scratch ? bytes : k->scratch;
}

static struct weight *count_pack(struct backend *b, struct tensor host, enum dtype dtype)
{
    struct counter *k = counter_of(b);
    if (k->gpu) {
        k->own += work_matrix(dtype, host.rows, host.cols);
        count_scratch(k, work_sums(k->gpu, host.rows));
        return (struct weight *)(void *)k->nothing;
    }
    int64_t rows = (host.rows + PANEL - 1) / PANEL * PANEL;
    int64_t cols = dtype == DT_BF16 ? (host.cols + 1) / 2 * 2 : host.cols;
    k->own += (size_t)rows * (size_t)cols * dtype_size(dtype);
    return (struct weight *)(void *)k->nothing;
}

static struct weight *count_borrow(struct backend *b, struct tensor host, bool once)
{
    struct counter *k = counter_of(b);
    size_t bytes = (size_t)host.rows * (size_t)host.cols * dtype_size(host.dtype);
    k->mapped += bytes;
    k->streamed += once ? bytes : 0;
    return (struct weight *)(void *)k->nothing;
}

static size_t count_quant_bytes(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols)
{
    if (counter_of(b)->gpu)
        return work_quantized_matrix(format, rows, cols);
    return quant_panels(format, rows, cols, PANEL).end;
}

static struct weight *count_quant(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                  int64_t rows, int64_t cols)
{
    struct counter *k = counter_of(b);
    k->own += count_quant_bytes(b, format, rows, cols);
    if (k->gpu)
        count_scratch(k, work_quantized(k->gpu, work_room(format, cols)));
    return (struct weight *)(void *)k->nothing;
}

static void count_unpack(struct backend *b, struct weight *w)
{
}

static void counter_init(struct counter *k, const struct lm_config *c, bool gpu)
{
    *k = (struct counter){.config = c,
                          .gpu = gpu ? cuda_work_parts() : NULL,
                          .ops = {.name = "count",
                                  .alloc = count_alloc,
                                  .try_alloc = count_alloc,
                                  .free = count_free,
                                  .upload = count_copy,
                                  .download = count_copy,
                                  .copy = count_copy,
                                  .pack = count_pack,
                                  .borrow = gpu ? NULL : count_borrow,
                                  .quant_bytes = count_quant_bytes,
                                  .quant_weight = count_quant,
                                  .weight_free = count_unpack}};
    k->backend = (struct backend){&k->ops, NULL, k};
}

/* Attributes the memory counted since the last tensor to this one. */
static void count_part(void *arg, double fraction, const char *name)
{
    struct counter *k = arg;
    struct plan_part *p = &k->parts[plan_kind_of(k->config, name)];
    p->own += k->own - k->seen.own;
    p->mapped += k->mapped - k->seen.mapped;
    k->seen.own = k->own;
    k->seen.mapped = k->mapped;
}

/* ---- counting -------------------------------------------------------------------------------- */

static void count_stored(struct plan *p, const struct model_config *c, const struct safetensors *s)
{
    for (int i = 0; i < safetensors_count(s); i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        struct plan_part *part = &p->parts[plan_kind_of(&c->lm, t->name)];
        part->tensors++;
        part->stored += t->bytes;
    }
}

static void count_session(struct plan *p, const struct model_config *c, struct state_types types, bool gpu)
{
    struct counter k;
    struct lm_state s;
    counter_init(&k, &c->lm, gpu);
    state_init(&s, &c->lm, &k.backend, types);
    for (int i = 0; i < c->lm.layers; i++) {
        p->ssm += tensor_bytes(s.now.ssm[i]);
        p->conv += tensor_bytes(s.now.conv[i]);
    }
    p->state = k.own;
    p->session = k.own - p->ssm - p->conv + (size_t)p->vocab * sizeof(float);
    p->kv_token = state_position(&c->lm, types.kv) + PLAN_TOKEN_BYTES;
    for (int i = 0; gpu && i < c->lm.layers; i++)
        p->kv_tensors += 2 * layer_attends(c->lm.pattern[i]);
    state_free(&s, &c->lm, &k.backend);
}

static const struct plan_chunk gpu_chunks[PLAN_CHUNKS] = {
    {.prompt_rows = 4 * LANGUAGE_ROWS, .picture_tiles = 4 * VISION_BATCH},
    {.prompt_rows = 2 * LANGUAGE_ROWS, .picture_tiles = 2 * VISION_BATCH},
    {.prompt_rows = LANGUAGE_ROWS, .picture_tiles = VISION_BATCH},
    {.prompt_rows = LANGUAGE_ROWS, .picture_tiles = 1}};

static void count_engine(struct plan *p, const struct model_config *c, const struct model_weights *w,
                         struct counter *k, enum dtype act)
{
    struct language language;
    struct vision vision;
    k->own = 0;
    language_init(&language, &c->lm, w, &k->backend, act);
    p->language = k->own;
    language_free(&language);
    if (!c->vision)
        return;
    k->own = 0;
    vision_init(&vision, c, &w->vision, &k->backend, act);
    p->tile = (size_t)config_tile_tokens(c) * (size_t)c->lm.hidden * dtype_size(act);
    p->tile_cache = p->tile * (size_t)vision.cache_max;
    if (c->vit.max_patches) { /* the largest canvas */
        vision_reserve(&vision, 1, 2, c->vit.max_patches / 2, NULL);
        p->tile = (size_t)c->vit.max_patches / 4 * (size_t)config_image_cols(c) * dtype_size(act);
        p->tile_cache = VISION_CACHE_BYTES;
    }
    p->vision = k->own;
    p->prefix = (int)w->vision.prefix.rows;
    vision_free(&vision);
}

static void count_chunks(struct plan *p, const struct model_config *c, const struct model_weights *w,
                         struct counter *k, enum dtype act)
{
    for (int i = PLAN_CHUNKS - 1; i >= 0; i--) { /* the largest stays in p */
        struct plan_chunk *chunk = &p->chunks[i];
        *chunk = gpu_chunks[i];
        k->backend.prompt_rows = chunk->prompt_rows;
        k->backend.picture_tiles = chunk->picture_tiles;
        count_engine(p, c, w, k, act);
        p->language -= work_tensor((size_t)p->vocab * sizeof(float)); /* logits belong to sessions */
        chunk->language = p->language;
        chunk->vision = p->vision;
    }
}

void plan_fit(struct plan *p, size_t memory)
{
    for (int i = 0; i <= PLAN_CHUNKS && p->chunks[0].prompt_rows; i++) {
        p->pinned = i ? p->embedding : 0;
        p->chunk = i ? i - 1 : 0;
        p->language = p->chunks[p->chunk].language;
        p->vision = p->chunks[p->chunk].vision;
        if (plan_own(p, 1, SAMPLE) + p->tile_cache <= memory)
            break;
    }
}

/* Counts the GPU's scratch memory of sampling, experts and attention at their largest batches. */
static void count_work(struct plan *p, const struct model_config *c, struct counter *k, enum dtype act)
{
    const struct lm_config *lm = &c->lm;
    const struct moe_config *moe = &lm->moe;
    size_t lists = 0;
    const int64_t chunk = p->chunks[0].prompt_rows;
    count_scratch(k, work_sampling(WORK_SAMPLED_ROWS));
    if (moe->width) {
        int64_t out = moe->latent ? moe->latent : lm->hidden,
                rows = work_expert_rows(k->gpu, moe->route.chosen, moe->width, out, act);
        rows = rows < chunk ? rows : chunk;
        count_scratch(k,
                      work_experts(rows * moe->route.chosen, moe->route.experts, moe->width, out, act).all);
    }
    for (int i = 0; i < lm->layers; i++) {
        if (lm->pattern[i] == LAYER_MOE)
            lists += 2 * work_tensor((size_t)moe->route.experts * 2 * sizeof(void *));
        if (layer_attends(lm->pattern[i])) {
            int64_t each = (int64_t)lm->q_heads * (lm->head_dim + 2);
            size_t one = work_attend(1, WORK_SPLITS, each).all,
                   most = work_attend(chunk, chunk * WORK_SPLITS, each).all;
            most = most < k->gpu->splits ? most : k->gpu->splits;
            count_scratch(k, most > one ? most : one);
        }
    }
    p->scratch = k->scratch;
    p->work = work_tensor(k->scratch) + k->gpu->library + work_masks(p->vocab) +
              work_tensor(work_counts(config_groups(lm))) + lists;
}

size_t plan_picture(struct plan *p, const struct model_config *c, int w, int h)
{
    p->picture = 0;
    if (!c->vision || !p->scratch)
        return 0;
    struct tile_grid g = preprocess_grid(c, w, h);
    size_t work = preprocess_work(c, w, h);
    p->picture = work_tensor(preprocess_image_floats(c, &g) * sizeof(float)) +
                 (work > p->scratch ? work - p->scratch : 0);
    return p->picture;
}

static int count_all(struct plan *p, const struct model_config *c, const struct safetensors *s,
                     const struct engine_options *o, struct weights_placement hold, struct err *e)
{
    struct counter k;
    struct model_weights w;
    enum dtype act = o->f32 ? DT_F32 : DT_BF16;
    bool gpu = o->device && !strncmp(o->device, "cuda", 4);
    *p = (struct plan){.base = gpu ? 0 : PROGRAM};
    counter_init(&k, &c->lm, gpu);
    k.parts = p->parts;
    struct bind_options bind = {.f32 = o->f32,
                                .progress = count_part,
                                .progress_arg = &k,
                                .storage = options_storage(o),
                                .coarse = activations_rounded(o->activations),
                                .tower8 = o->tower == TOWER_INT8,
                                .mapped = hold.mapped,
                                .resident = hold.resident,
                                .shapes_only = true};
    if (weights_bind(&w, c, s, &k.backend, &bind, e))
        return -1;
    p->vocab = w.vocab;
    p->number = w.element_bytes;
    p->records = w.records;
    snprintf(p->forms, sizeof p->forms, "%s", w.forms ? w.forms : "");
    p->parts[PLAN_EMBEDDINGS].mapped += w.embed_mapped ? tensor_bytes(w.embed) : 0;
    p->parts[PLAN_EMBEDDINGS].mapped += (size_t)w.embed_codes.rows * (size_t)w.embed_codes.stored.stride;
    p->streamed = k.streamed;
    p->resident = k.mapped - k.streamed;
    count_stored(p, c, s);
    p->embedding = gpu && !w.embed_codes.rows ? work_tensor(tensor_bytes(w.embed)) : 0;
    (gpu ? count_chunks : count_engine)(p, c, &w, &k, act);
    if (gpu)
        count_work(p, c, &k, act);
    weights_free(&w, c, &k.backend);
    struct state_types types = state_types(o->f32, o->state, o->kv);
    types.ring = state_ring(types, &c->lm, gpu);
    count_session(p, c, types, gpu);
    for (int i = 0; i < PLAN_KINDS; i++) {
        p->weights.tensors += p->parts[i].tensors;
        p->weights.stored += p->parts[i].stored;
        p->weights.own += p->parts[i].own;
        p->weights.mapped += p->parts[i].mapped;
    }
    return 0;
}

/* ---- checking -------------------------------------------------------------------------------- */

int plan_check(const struct plan_check *check, const struct model_config *c, const struct safetensors *s)
{
    struct counter k;
    struct model_weights w;
    counter_init(&k, &c->lm, false);
    struct bind_options bind = {
        .shapes_only = true, .problem = check->problem, .ignored = check->ignored, .look_arg = check->arg};
    if (weights_bind(&w, c, s, &k.backend, &bind, NULL))
        return 0;
    int vocab = w.vocab;
    weights_free(&w, c, &k.backend);
    return vocab;
}

/* ---- placement ------------------------------------------------------------------------------- */

/* Returns 3/4 of the memory; the rest is for the system, other programs and growth. */
static size_t usable(const struct engine_options *o)
{
    size_t memory = o->memory ? o->memory : memory_available();
    return memory / 4 * 3;
}

int plan_placement(struct weights_placement *h, const struct model_config *c, const struct safetensors *s,
                   const struct engine_options *o, struct err *e)
{
    struct plan p;
    size_t room = usable(o);
    *h = (struct weights_placement){false, 0};
    if (count_all(&p, c, s, o, *h, e))
        return -1;
    if (o->weights_in == WEIGHTS_IN_RAM ||
        (o->weights_in == WEIGHTS_IN_AUTO && plan_own(&p, 1, SAMPLE) <= room))
        return 0;
    h->mapped = true;
    if (count_all(&p, c, s, o, *h, e))
        return -1;
    h->resident = plan_own(&p, 1, SAMPLE) < room ? room - plan_own(&p, 1, SAMPLE) : 0;
    return 0;
}

int plan_make(struct plan *p, const struct model_config *c, const struct safetensors *s,
              const struct engine_options *o, struct err *e)
{
    struct weights_placement h;
    return plan_placement(&h, c, s, o, e) ? -1 : count_all(p, c, s, o, h, e);
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* Returns the bytes of keys and values of `tokens` tokens. */
static size_t kv_bytes(const struct plan *p, int64_t tokens)
{
    size_t all = (p->kv_token - PLAN_TOKEN_BYTES) * (size_t)state_capacity(0, tokens),
           tensors = (size_t)p->kv_tensors;
    return tensors ? tensors * work_tensor(all / tensors) : all;
}

size_t plan_session(const struct plan *p, int64_t tokens)
{
    return p->ssm + p->conv + p->session + kv_bytes(p, tokens) +
           PLAN_TOKEN_BYTES * (size_t)state_capacity(0, tokens);
}

size_t plan_state(const struct plan *p, int64_t tokens)
{
    return p->state + kv_bytes(p, tokens);
}

int64_t plan_states(const struct plan *p, size_t memory, int64_t tokens)
{
    return (int64_t)(memory / plan_state(p, tokens));
}

size_t plan_own(const struct plan *p, int sessions, int64_t tokens)
{
    return p->weights.own - p->pinned + p->language + p->vision + p->work + p->picture + p->tokenizer +
           p->base + (size_t)sessions * plan_session(p, tokens);
}

int64_t plan_sessions(const struct plan *p, size_t memory, int64_t tokens)
{
    size_t engine = plan_own(p, 0, 0);
    return memory < engine ? 0 : (int64_t)((memory - engine) / plan_session(p, tokens));
}

int64_t plan_tokens(const struct plan *p, size_t memory, int sessions)
{
    size_t fixed = plan_own(p, sessions, 0);
    int64_t step = state_capacity(0, 1); /* the KV cache grows in steps */
    int64_t n =
        memory < fixed ? 0 : (int64_t)((memory - fixed) / ((size_t)sessions * p->kv_token)) / step * step;
    while (n > 0 && plan_own(p, sessions, n) > memory)
        n -= step;
    return n;
}
