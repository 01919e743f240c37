/* gguf_model.c - see gguf_model.h. */
#include "gguf_model.h"

#include "check.h"

#include "checkpoint/gguf_model.h"
#include "ops/gguf_rows.h"
#include "ops/quant.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LM "model.language_model."

struct writer {
    const struct golden *g; /* NULL: data are holes, and values are NULL */
    const char *from;       /* folder of config.json and tokenizer.json */
    json_t *config, *text;  /* whole file, and the language model's part */
    struct gguf_form form;
    uint32_t turn;       /* previous type, for GGML_MIXED */
    struct gguf file[2]; /* text, vision */
    struct buf data[2];
};

/* A tensor to be stored: its values, and its shape in the file. */
struct values {
    char name[160]; /* published, with both prefixes */
    float *v;
    int64_t shape[4], n;
    int dims;
};

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* Returns the model's architecture name in GGUF. */
static const char *arch_of(const struct writer *w)
{
    const char *type = json_string_value(json_object_get(w->config, "model_type"));
    if (type && (!strcmp(type, "qwen2") || !strcmp(type, "qwen3")))
        return type;
    return json_object_get(w->text, "num_experts") ? "qwen35moe" : "qwen35";
}

static bool is_text(const struct writer *w)
{
    return strncmp(arch_of(w), "qwen35", 6) != 0;
}

static bool has(const struct values *t, const char *part)
{
    return strstr(t->name, part);
}

/* ---- conversions of the converter -----------------------------------------------------------------------
 */

/* [keys][per][width] -> [per][keys][width] for heads of width * inner numbers. */
static void tile_heads(const struct writer *w, float *v, int64_t width, int64_t inner)
{
    int64_t keys = number(w->text, "linear_num_key_heads"), heads = number(w->text, "linear_num_value_heads");
    size_t each = (size_t)(width * inner) * sizeof *v;
    float *old = malloc((size_t)heads * each);
    memcpy(old, v, (size_t)heads * each);
    for (int64_t h = 0; h < heads; h++)
        memcpy(v + (h % (heads / keys) * keys + h / (heads / keys)) * width * inner, old + h * width * inner,
               each);
    free(old);
}

static void reorder(const struct writer *w, struct values *t)
{
    int64_t keys = 2 * number(w->text, "linear_num_key_heads") * number(w->text, "linear_key_head_dim");
    int64_t value = number(w->text, "linear_value_head_dim"), cols = t->n / t->shape[0];
    if (has(t, "in_proj_qkv") || has(t, "conv1d"))
        tile_heads(w, t->v + keys * cols, value, cols);
    else if (has(t, "in_proj_z"))
        tile_heads(w, t->v, value, cols);
    else if (has(t, "in_proj_a") || has(t, "in_proj_b"))
        tile_heads(w, t->v, 1, cols);
    else if (has(t, "A_log") || has(t, "dt_bias"))
        tile_heads(w, t->v, 1, 1);
    else if (has(t, "linear_attn.out_proj"))
        for (int64_t r = 0; r < t->shape[0]; r++)
            tile_heads(w, t->v + r * cols, value, 1);
}

static void change(const struct writer *w, struct values *t)
{
    bool vision = has(t, "model.visual."), norm = has(t, "norm.weight") && !has(t, "linear_attn.norm");
    for (int64_t i = 0; norm && !vision && !is_text(w) && i < t->n; i++)
        t->v[i] += 1;
    for (int64_t i = 0; has(t, "A_log") && i < t->n; i++)
        t->v[i] = -expf(t->v[i]);
    if (has(t, "linear_attn."))
        reorder(w, t);
    if (has(t, "conv1d")) {
        t->shape[1] = t->shape[2];
        t->dims = 2;
    }
}

/* ---- storing ------------------------------------------------------------------------------------------- */

/* Returns the next type whose blocks divide rows of `cols` numbers; after NVFP4 the list starts again. */
static enum ggml_type next_type(struct writer *w, int64_t cols)
{
    do
        w->turn = (w->turn + 1) % GGML_TYPES;
    while (!gguf_is_coded(w->turn) || cols % ggml_block(w->turn));
    return (enum ggml_type)w->turn;
}

static enum ggml_type type_of(struct writer *w, const struct values *t)
{
    bool plain = t->dims == 1 || has(t, "conv1d") || has(t, "mlp.gate.") || has(t, "shared_expert_gate") ||
                 has(t, "pos_embed") || has(t, "patch_embed");
    if (w->form.matrices == (enum ggml_type)GGML_MIXED && !plain)
        return next_type(w, t->shape[t->dims - 1]);
    if (w->form.matrices == (enum ggml_type)GGML_MIXED)
        return t->dims == 1 && strlen(t->name) % 2 ? GGML_F64 : GGML_F32;
    bool whole = t->shape[t->dims - 1] % ggml_block(w->form.matrices) == 0;
    if (!w->g && !plain && has(t, "model.visual."))
        return GGML_BF16;
    return plain || !whole ? GGML_F32 : w->form.matrices;
}

static uint16_t half_of(float f) /* for values that f16 represents with little or no error */
{
    for (uint32_t h = 0; h < 0x7c00; h++)
        if (f16_to_f32((uint16_t)h) >= fabsf(f))
            return (uint16_t)(h | (f < 0 ? 0x8000 : 0));
    return 0;
}

/* Draws blocks whose numbers have a root mean square near 1/20. */
static uint8_t *draw_blocks(enum ggml_type type, uint64_t seed, size_t n)
{
    uint8_t *out = malloc(n);
    float numbers[256];
    double apart = 1e9;
    int best = 0, span = ggml_block(type);
    for (int e = 1; e < 31; e++) {
        double sum = 0;
        gguf_draw(type, seed, e, out, (size_t)ggml_block_bytes(type));
        gguf_row(type, out, span, numbers);
        for (int i = 0; i < span; i++)
            sum += (double)numbers[i] * (double)numbers[i] / span;
        double off = sum > 0 ? fabs(log2(sum) - log2(1 / 400.0)) : 1e8;
        best = off < apart ? e : best;
        apart = off < apart ? off : apart;
    }
    gguf_draw(type, seed, best, out, n);
    return out;
}

/* Returns the scale of matrix k of a tensor; the embedding has none. */
static float scale_of(const struct values *t, int64_t k)
{
    if (has(t, "embed_tokens"))
        return 1;
    return t->dims == 3 ? 0.5f + 0.03125f * (float)k : 0.5f;
}

static void put_drawn(struct writer *w, struct buf *b, const struct values *t, enum ggml_type type)
{
    size_t n = gguf_row_bytes(type, t->n);
    uint8_t *blocks = type == GGML_F64 ? malloc(n) : draw_blocks(type, 7 + strlen(t->name), n);
    float *numbers = malloc((size_t)t->n * sizeof *numbers);
    for (int64_t i = 0; type == GGML_F64 && i < t->n; i++)
        memcpy(blocks + 8 * i, &(double){(double)t->v[i]}, sizeof(double));
    gguf_row(type, blocks, t->n, numbers);
    for (int64_t i = 0; type == GGML_NVFP4 && w->form.scales && i < t->n; i++)
        numbers[i] *= scale_of(t, i * t->shape[0] / t->n);
    buf_put(b, w->form.numbers ? (const void *)numbers : blocks,
            w->form.numbers ? (size_t)t->n * sizeof *numbers : n);
    free(numbers);
    free(blocks);
}

static void put_values(struct writer *w, struct buf *b, const struct values *t, enum ggml_type type)
{
    if (gguf_is_coded(type) && (type != GGML_Q8_0 || w->form.matrices == (enum ggml_type)GGML_MIXED)) {
        put_drawn(w, b, t, type);
        return;
    }
    for (int64_t i = 0; i < t->n; i += type == GGML_Q8_0 ? GGUF_BLOCK : 1) {
        struct gguf_q8 block;
        float numbers[GGUF_BLOCK];
        uint16_t half = type == GGML_F16 ? half_of(t->v[i]) : bf16_from_f32(t->v[i]);
        if (type == GGML_F32) {
            buf_put(b, t->v + i, sizeof *t->v);
        } else if (type != GGML_Q8_0) {
            buf_put(b, &half, sizeof half);
        } else {
            gguf_make_q8(t->v + i, &block);
            blocks_row(QUANT_Q8_0, (const uint8_t *)&block, GGUF_BLOCK, numbers);
            buf_put(b, w->form.numbers ? (const void *)numbers : &block,
                    w->form.numbers ? sizeof numbers : sizeof block);
        }
    }
}

static void store_scales(struct writer *w, const struct values *t, const char *name)
{
    const int64_t n = t->dims == 3 ? t->shape[0] : 1;
    char scale[256];
    struct buf *to = &w->data[0];
    snprintf(scale, sizeof scale, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name);
    gguf_tensor(&w->file[0], scale, GGML_F32, &n, 1);
    for (int64_t k = 0; k < n; k++) {
        float v = scale_of(t, k);
        buf_put(to, &v, sizeof v);
    }
    while (to->len % GGUF_ALIGN)
        buf_putc(to, 0);
}

static void store(struct writer *w, const struct values *t, const char *name)
{
    bool vision = has(t, "model.visual.");
    enum ggml_type type = type_of(w, t);
    gguf_tensor(&w->file[vision], name, gguf_is_coded(type) && w->form.numbers ? GGML_F32 : type, t->shape,
                t->dims);
    if (!t->v)
        return;
    put_values(w, &w->data[vision], t, type);
    while (w->data[vision].len % GGUF_ALIGN)
        buf_putc(&w->data[vision], 0);
    if (type == GGML_NVFP4 && w->form.scales && !w->form.numbers && !has(t, "embed_tokens"))
        store_scales(w, t, name);
}

/* Stores one half (gate or up) of the middle dimension of [E, 2M, D]. */
static void store_half(struct writer *w, const struct values *both, int half, const char *part)
{
    struct values t = *both;
    int64_t rows = t.shape[1] / 2, each = rows * t.shape[2];
    char name[256];
    t.shape[1] = rows;
    t.n /= 2;
    t.v = both->v ? malloc((size_t)t.n * sizeof *t.v) : NULL;
    for (int64_t e = 0; t.v && e < t.shape[0]; e++)
        memcpy(t.v + e * each, both->v + (2 * e + half) * each, (size_t)each * sizeof *t.v);
    snprintf(t.name, sizeof t.name, "%.*s%s", (int)(strstr(both->name, "gate_up_proj") - both->name),
             both->name, part);
    gguf_spelling(t.name, false, name);
    store(w, &t, name);
    free(t.v);
}

/* Stores one frame of [W, 3, frames, side, side]. */
static void store_frame(struct writer *w, const struct values *all, const int64_t shape[5], int frame)
{
    struct values t = *all;
    int64_t area = shape[3] * shape[4];
    t.dims = 4;
    memcpy(t.shape, (const int64_t[4]){shape[0], 3, shape[3], shape[4]}, sizeof t.shape);
    t.n /= shape[2];
    t.v = all->v ? malloc((size_t)t.n * sizeof *t.v) : NULL;
    for (int64_t i = 0; t.v && i < shape[0] * 3; i++)
        memcpy(t.v + i * area, all->v + (i * shape[2] + frame) * area, (size_t)area * sizeof *t.v);
    store(w, &t, frame ? "v.patch_embd.weight.1" : "v.patch_embd.weight");
    free(t.v);
}

/* Stores a tensor with the names and parts of the converter. */
static void store_parts(struct writer *w, const struct values *t, const int64_t shape[5])
{
    char spelled[256];
    gguf_spelling(t->name, is_text(w), spelled);
    if (has(t, "experts.gate_up_proj")) {
        store_half(w, t, 0, "gate_proj");
        store_half(w, t, 1, "up_proj");
    } else if (has(t, "patch_embed.proj.weight")) {
        store_frame(w, t, shape, 0);
        store_frame(w, t, shape, 1);
    } else {
        store(w, t, spelled);
    }
}

static void convert(struct writer *w, const json_t *entry)
{
    struct values t = {.n = 1};
    const char *name = json_string_value(json_object_get(entry, "name"));
    bool whole = !strncmp(name, LM, strlen(LM)) || !strncmp(name, "model.visual.", 13) ||
                 !strcmp(name, "lm_head.weight");
    int64_t shape[5] = {0};
    size_t i;
    json_t *dim;
    snprintf(t.name, sizeof t.name, "%s%s", whole ? "" : LM, whole ? name : name + strlen("model."));
    json_array_foreach(json_object_get(entry, "shape"), i, dim)
    {
        shape[i] = json_integer_value(dim);
        t.n *= shape[i];
    }
    t.dims = (int)i;
    memcpy(t.shape, shape, sizeof t.shape);
    uint16_t *drawn = malloc((size_t)t.n * sizeof *drawn);
    t.v = malloc((size_t)t.n * sizeof *t.v);
    golden_draw(w->g->seed, name, 0, t.n, number(entry, "offset"),
                (float)json_number_value(json_object_get(entry, "unit")), drawn);
    for (int64_t k = 0; k < t.n; k++)
        t.v[k] = bf16_to_f32(drawn[k]);
    change(w, &t);
    store_parts(w, &t, shape);
    free(drawn);
    free(t.v);
}

static void convert_hole(struct writer *w, const struct full_tensor *from)
{
    struct values t = {.n = 1, .dims = from->dims};
    snprintf(t.name, sizeof t.name, "%s", from->name);
    for (int i = 0; i < from->dims; i++)
        t.n *= from->shape[i];
    memcpy(t.shape, from->shape, sizeof t.shape);
    if (has(&t, "conv1d")) {
        t.shape[1] = t.shape[2];
        t.dims = 2;
    }
    store_parts(w, &t, from->shape);
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

static void put_int(struct gguf *g, const char *front, const char *key, int64_t v)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", front, key);
    gguf_int(g, name, (uint32_t)v);
}

static void put_float(struct gguf *g, const char *front, const char *key, double v)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", front, key);
    gguf_float(g, name, (float)v);
}

/* Writes the keys that only Qwen3.5 has. */
static void put_hybrid(struct writer *w, const char *front, const json_t *rope)
{
    struct gguf *g = &w->file[0];
    uint32_t section[4] = {0};
    char name[64];
    put_int(g, front, "ssm.inner_size",
            number(w->text, "linear_num_value_heads") * number(w->text, "linear_value_head_dim"));
    put_int(g, front, "full_attention_interval", 4);
    put_int(g, front, "rope.dimension_count",
            (int64_t)((double)number(w->text, "head_dim") *
                      json_number_value(json_object_get(rope, "partial_rotary_factor"))));
    for (size_t i = 0; i < 3; i++)
        section[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(rope, "mrope_section"), i));
    snprintf(name, sizeof name, "%srope.dimension_sections", front);
    gguf_ints(g, name, section, 4);
}

static void put_language(struct writer *w)
{
    static const char *const same[][2] = {
        {"num_hidden_layers", "block_count"},
        {"hidden_size", "embedding_length"},
        {"intermediate_size", "feed_forward_length"},
        {"max_position_embeddings", "context_length"},
        {"num_attention_heads", "attention.head_count"},
        {"num_key_value_heads", "attention.head_count_kv"},
        {"head_dim", "attention.key_length"},
        {"head_dim", "attention.value_length"},
        {"linear_conv_kernel_dim", "ssm.conv_kernel"},
        {"linear_key_head_dim", "ssm.state_size"},
        {"linear_num_key_heads", "ssm.group_count"},
        {"linear_num_value_heads", "ssm.time_step_rank"},
        {"num_experts", "expert_count"},
        {"num_experts_per_tok", "expert_used_count"},
        {"moe_intermediate_size", "expert_feed_forward_length"},
        {"shared_expert_intermediate_size", "expert_shared_feed_forward_length"}};
    struct gguf *g = &w->file[0];
    const json_t *rope = json_object_get(w->text, "rope_parameters"),
                 *theta = json_object_get(rope ? rope : w->text, "rope_theta");
    char front[32];
    snprintf(front, sizeof front, "%s.", arch_of(w));
    gguf_text(g, "general.architecture", arch_of(w));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (json_object_get(w->text, same[i][0]))
            put_int(g, front, same[i][1], number(w->text, same[i][0]));
    put_float(g, front, "attention.layer_norm_rms_epsilon",
              json_number_value(json_object_get(w->text, "rms_norm_eps")));
    put_float(g, front, "rope.freq_base", json_number_value(theta));
    if (!is_text(w))
        put_hybrid(w, front, rope);
}

static void put_tower(struct writer *w)
{
    static const char *const same[][2] = {{"depth", "block_count"},
                                          {"hidden_size", "embedding_length"},
                                          {"intermediate_size", "feed_forward_length"},
                                          {"num_heads", "attention.head_count"},
                                          {"patch_size", "patch_size"},
                                          {"out_hidden_size", "projection_dim"},
                                          {"spatial_merge_size", "spatial_merge_size"}};
    const float half[3] = {0.5f, 0.5f, 0.5f};
    const json_t *vision = json_object_get(w->config, "vision_config");
    struct gguf *g = &w->file[1];
    gguf_text(g, "general.architecture", "clip");
    gguf_text(g, "clip.projector_type", "qwen3vl_merger");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (json_object_get(vision, same[i][0]))
            put_int(g, "clip.vision.", same[i][1], number(vision, same[i][0]));
    if (!json_object_get(vision, "out_hidden_size"))
        put_int(g, "clip.vision.", "projection_dim", number(w->text, "hidden_size"));
    gguf_floats(g, "clip.vision.image_mean", half, 3);
    gguf_floats(g, "clip.vision.image_std", half, 3);
}

void gguf_merges(struct gguf *g, const json_t *merges)
{
    size_t i;
    json_t *pair;
    gguf_texts(g, "tokenizer.ggml.merges", json_array_size(merges));
    json_array_foreach(merges, i, pair)
    {
        char *both = xasprintf("%s %s", json_string_value(json_array_get(pair, 0)),
                               json_string_value(json_array_get(pair, 1)));
        gguf_item(g, both, strlen(both));
        free(both);
    }
}

/* Writes the tokens by id, from tokenizer.json; rows without a token get an unused one. */
static void put_tokenizer(struct writer *w)
{
    size_t i, n = (size_t)number(w->text, "vocab_size");
    char *path = xasprintf("%s/tokenizer.json", w->from), **words = xcalloc(n, sizeof *words);
    json_t *root = json_load_file(path, 0, NULL), *v, *model = json_object_get(root, "model");
    uint32_t *types = xcalloc(n, sizeof *types);
    const char *key;
    json_object_foreach(json_object_get(model, "vocab"), key, v)
    {
        words[json_integer_value(v)] = xstrdup(key);
        types[json_integer_value(v)] = 1;
    }
    json_array_foreach(json_object_get(root, "added_tokens"), i, v)
    {
        words[number(v, "id")] = xstrdup(json_string_value(json_object_get(v, "content")));
        types[number(v, "id")] = json_is_true(json_object_get(v, "special")) ? 3 : 4;
    }
    struct gguf *g = &w->file[0];
    for (i = 0; root && i < n; i++)
        if (!words[i]) {
            words[i] = xasprintf("[PAD%zu]", i);
            types[i] = 5;
        }
    if (root) {
        gguf_text(g, "tokenizer.ggml.model", "gpt2");
        gguf_text(g, "tokenizer.ggml.pre", is_text(w) ? "qwen2" : "qwen35");
        gguf_texts(g, "tokenizer.ggml.tokens", n);
        for (i = 0; i < n; i++)
            gguf_item(g, words[i], strlen(words[i]));
        gguf_ints(g, "tokenizer.ggml.token_type", types, n);
        gguf_merges(g, json_object_get(model, "merges"));
        gguf_int(g, "tokenizer.ggml.eos_token_id", n > 512 ? 248044 : 256);
    }
    for (i = 0; i < n; i++)
        free(words[i]);
    free(words);
    free(types);
    free(path);
    json_decref(root);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static void write_file(struct writer *w, int which, const char *dir)
{
    struct err e = ERR_INIT;
    struct buf head, all;
    char *path = xasprintf("%s/%s", dir, which ? "mmproj.gguf" : "model.gguf");
    gguf_head(&w->file[which], &head);
    buf_init(&all, 256 << 20);
    buf_put(&all, head.data, head.len);
    buf_put(&all, w->data[which].data, w->data[which].len);
    if (all.full || file_write(path, all.data, all.len, &e))
        fail_msg("%s: %s", path, e.text);
    if (!w->g && truncate(path, (off_t)(head.len + w->file[which].at)))
        fail_msg("%s: %s", path, strerror(errno));
    buf_free(&all);
    buf_free(&head);
    free(path);
}

static void begin(struct writer *w)
{
    char *path = xasprintf("%s/config.json", w->from);
    w->config = json_load_file(path, 0, NULL);
    assert_non_null(w->config);
    free(path);
    w->text = json_object_get(w->config, "text_config");
    w->text = w->text ? w->text : w->config;
    for (int k = 0; k < 2; k++) {
        gguf_init(&w->file[k]);
        buf_init(&w->data[k], 128 << 20);
    }
    put_language(w);
    put_tokenizer(w);
}

static void end(struct writer *w, const char *dir)
{
    bool vision = json_object_get(w->config, "vision_config");
    if (vision)
        put_tower(w);
    for (int k = 0; k <= vision; k++)
        write_file(w, k, dir);
    for (int k = 0; k < 2; k++) {
        gguf_free(&w->file[k]);
        buf_free(&w->data[k]);
    }
    json_decref(w->config);
}

void gguf_model(const struct golden *g, struct gguf_form form, const char *dir)
{
    struct writer w = {.g = g, .from = g->dir, .form = form};
    size_t i;
    json_t *entry;
    begin(&w);
    json_array_foreach(json_object_get(g->root, "weights"), i, entry) convert(&w, entry);
    end(&w, dir);
}

void gguf_holes(const struct full_model *m, enum ggml_type matrices)
{
    struct writer w = {.from = m->dir, .form = {matrices, false}};
    begin(&w);
    for (int i = 0; i < m->n; i++)
        convert_hole(&w, &m->tensors[i]);
    end(&w, m->dir);
}
