/* tiny_model.c - see tiny_model.h. */
#include "tiny_model.h"

#include "check.h"
#include "place.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"
#include "ops/quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static double normal(uint64_t *rng)
{
    double u = check_random(rng), v = check_random(rng);
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

static uint64_t stream; /* random state for added tensors */

struct tiny_tensor *tiny_add(struct tiny *t, const char *name, double mean, double spread,
                             const int64_t *shape)
{
    t->tensors = realloc(t->tensors, (size_t)(t->n + 1) * sizeof *t->tensors);
    struct tiny_tensor *x = &t->tensors[t->n++];
    *x = (struct tiny_tensor){.type = t->f32 ? "F32" : "BF16"};
    snprintf(x->name, sizeof x->name, "%s", name);
    size_t count = 1;
    for (; shape[x->dims]; x->dims++)
        count *= (size_t)(x->shape[x->dims] = shape[x->dims]);
    x->bytes = count * (t->f32 ? 4 : 2);
    x->data = malloc(x->bytes);
    for (size_t i = 0; i < count; i++) {
        float v = (float)(mean + spread * normal(&stream));
        uint16_t h = bf16_from_f32(v);
        memcpy(x->data + i * (t->f32 ? 4 : 2), t->f32 ? (void *)&v : (void *)&h, t->f32 ? 4 : 2);
    }
    return x;
}

#define ADD(t, mean, spread, name, ...) tiny_add(t, name, mean, spread, (const int64_t[]){__VA_ARGS__, 0})

static void add_layer(struct tiny *t, int i, char kind)
{
    char base[64], name[96];
    snprintf(base, sizeof base, "language_model.backbone.layers.%d", i);
#define PART(mean, spread, part, ...)                                                                        \
    (snprintf(name, sizeof name, "%s.%s", base, part), ADD(t, mean, spread, name, __VA_ARGS__))
    PART(1, 0.1, "norm.weight", 40);
    if (kind == 'M') {
        PART(0, 0.3, "mixer.in_proj.weight", 166, 40); /* z 48, x 48, B 32, C 32, dt 6 */
        PART(0, 0.4, "mixer.conv1d.weight", 112, 1, 4);
        PART(0, 0.2, "mixer.conv1d.bias", 112);
        PART(-1, 0.7, "mixer.dt_bias", 6);
        PART(0.5, 0.6, "mixer.A_log", 6);
        PART(1, 0.3, "mixer.D", 6);
        PART(1, 0.1, "mixer.norm.weight", 48);
        PART(0, 0.15, "mixer.out_proj.weight", 40, 48);
    } else if (kind == '*') {
        PART(0, 0.4, "mixer.q_proj.weight", 48, 40);
        PART(0, 0.4, "mixer.k_proj.weight", 24, 40);
        PART(0, 0.2, "mixer.v_proj.weight", 24, 40);
        PART(0, 0.2, "mixer.o_proj.weight", 40, 48);
    } else {
        PART(0, 0.2, "mixer.up_proj.weight", 56, 40);
        PART(0, 0.1, "mixer.down_proj.weight", 40, 56);
    }
#undef PART
}

static void add_block(struct tiny *t, int i)
{
    char base[64], name[96];
    snprintf(base, sizeof base, "vision_model.radio_model.model.blocks.%d", i);
#define PART(mean, spread, part, ...)                                                                        \
    (snprintf(name, sizeof name, "%s.%s", base, part), ADD(t, mean, spread, name, __VA_ARGS__))
    PART(1, 0.1, "norm1.weight", 24);
    PART(0, 0.1, "norm1.bias", 24);
    PART(0, 0.3, "attn.qkv.weight", 72, 24);
    PART(0, 0.1, "attn.qkv.bias", 72);
    PART(0, 0.2, "attn.proj.weight", 24, 24);
    PART(0, 0.1, "attn.proj.bias", 24);
    PART(1, 0.1, "norm2.weight", 24);
    PART(0, 0.1, "norm2.bias", 24);
    PART(0, 0.2, "mlp.fc1.weight", 44, 24);
    PART(0, 0.1, "mlp.fc1.bias", 44);
    PART(0, 0.2, "mlp.fc2.weight", 24, 44);
    PART(0, 0.1, "mlp.fc2.bias", 24);
#undef PART
}

static void add_tensors(struct tiny *t)
{
    ADD(t, 0, 1, "language_model.backbone.embeddings.weight", 288, 40);
    for (int i = 0; i < 6; i++)
        add_layer(t, i, "M-*-M-"[i]);
    ADD(t, 1, 0.1, "language_model.backbone.norm_f.weight", 40);
    ADD(t, 0, 0.3, "language_model.lm_head.weight", 288, 40);
    ADD(t, 0, 0.1, "vision_model.radio_model.model.patch_generator.embedder.weight", 24, 768);
    ADD(t, 0, 0.3, "vision_model.radio_model.model.patch_generator.pos_embed", 1, 64, 24);
    ADD(t, 0, 0.5, "vision_model.radio_model.model.patch_generator.cls_token.token", 3, 24);
    ADD(t, 0.5, 0.1, "vision_model.radio_model.input_conditioner.norm_mean", 3, 1, 1);
    for (int i = 0; i < 2; i++)
        add_block(t, i);
    ADD(t, 1, 0.1, "mlp1.0.weight", 96);
    ADD(t, 0, 0.15, "mlp1.1.weight", 36, 96);
    ADD(t, 0, 0.3, "mlp1.3.weight", 40, 36);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static const char config[] =
    "{\"architectures\":[\"NemotronH_Nano_VL_V2\"],\"force_image_size\":64,\"patch_size\":16,"
    "\"downsample_ratio\":0.5,\"ps_version\":\"v2\",\"image_tag_type\":\"internvl\",\"use_thumbnail\":true,"
    "\"projector_hidden_size\":36,\"norm_mean\":[0.48,0.46,0.41],\"norm_std\":[0.27,0.26,0.28],"
    "\"img_context_token_id\":272,"
    "\"llm_config\":{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"M-*-M-\",\"num_hidden_"
    "layers\":6,"
    "\"vocab_size\":288,\"hidden_size\":40,\"intermediate_size\":56,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":12,\"mamba_num_heads\":6,\"mamba_head_dim\":8,\"ssm_state_size\":"
    "16,"
    "\"n_groups\":2,\"conv_kernel\":4,\"chunk_size\":8,\"use_conv_bias\":true,\"attention_bias\":false,"
    "\"mlp_hidden_act\":\"relu2\",\"mamba_hidden_act\":\"silu\",\"time_step_limit\":[0.0,Infinity],"
    "\"layer_norm_epsilon\":1e-05,\"residual_in_fp32\":false,\"max_position_embeddings\":4096,\"eos_token_"
    "id\":12},"
    "\"vision_config\":{\"hidden_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"intermediate_size\":44,\"args\":{\"model\":\"vit_tiny_patch16\",\"model_norm\":false}}}";

/* Tokens 16 + b are bytes in GPT-2's spelling; the special tokens are those of the family. */
static char *make_tokenizer(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, "{\"added_tokens\":[");
    for (int i = 0; i < 16; i++) {
        static const char *const low[] = {"<unk>", "<s>", "</s>"};
        char name[32];
        snprintf(name, sizeof name, i < 3 ? "%s" : "<SPECIAL_%s%d>", i < 3 ? low[i] : "", i);
        buf_printf(&b, "{\"id\":%d,\"content\":\"%s\"},", i, name);
    }
    buf_puts(&b, "{\"id\":272,\"content\":\"<image>\"},{\"id\":273,\"content\":\"<img>\"},"
                 "{\"id\":274,\"content\":\"</img>\"}],\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                 "\"add_prefix_space\":false,\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"merges\":[],"
                 "\"vocab\":{");
    int other = 0;
    for (int i = 0; i < 256; i++) {
        bool plain = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        char s[4];
        int n = utf8_encode(plain ? (uint32_t)i : 256 + (uint32_t)other++, s);
        buf_printf(&b, "%s\"%s%.*s\":%d", i ? "," : "", i == '"' || i == '\\' ? "\\" : "", n, s, 16 + i);
    }
    buf_puts(&b, "}}}");
    char *text = buf_take(&b);
    buf_free(&b);
    return text;
}

void tiny_edit(char **text, const char *from, const char *to)
{
    char *at = strstr(*text, from);
    if (!at)
        die(ERR_FAILED, "'%s' is not in the text to edit", from);
    size_t head = (size_t)(at - *text);
    char *out = xasprintf("%.*s%s%s", (int)head, *text, to, at + strlen(from));
    free(*text);
    *text = out;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void put(const struct tiny *t, const char *name, const char *data, size_t len)
{
    if (!data)
        return;
    char *path = xasprintf("%s/%s", t->dir, name);
    struct err e = ERR_INIT;
    if (file_write(path, data, len, &e))
        die(ERR_FAILED, "%s", e.text);
    free(path);
}

static void put_shard(const struct tiny *t, const char *file, int begin, int end)
{
    struct buf header, out;
    buf_init(&header, 1 << 20);
    buf_init(&out, 64 << 20);
    size_t at = 0;
    buf_puts(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = begin; i < end; i++) {
        const struct tiny_tensor *x = &t->tensors[i];
        buf_printf(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", x->name, x->type);
        for (int k = 0; k < x->dims; k++)
            buf_printf(&header, "%s%lld", k ? "," : "", (long long)x->shape[k]);
        buf_printf(&header, "],\"data_offsets\":[%zu,%zu]}", at, at + x->bytes);
        at += x->bytes;
    }
    buf_putc(&header, '}');
    uint64_t n = header.len;
    buf_put(&out, &n, sizeof n);
    buf_put(&out, header.data, header.len);
    for (int i = begin; i < end; i++)
        buf_put(&out, t->tensors[i].data, t->tensors[i].bytes);
    put(t, file, out.data, out.len);
    buf_free(&header);
    buf_free(&out);
}

static void put_weights(const struct tiny *t)
{
    if (t->shards == 1) {
        put_shard(t, "model.safetensors", 0, t->n);
        return;
    }
    struct buf index;
    buf_init(&index, 1 << 20);
    buf_puts(&index, "{\"weight_map\":{");
    for (int k = 0; k < t->shards; k++) {
        char file[64];
        int begin = t->n * k / t->shards, end = t->n * (k + 1) / t->shards;
        snprintf(file, sizeof file, "model-%05d-of-%05d.safetensors", k + 1, t->shards);
        put_shard(t, file, begin, end);
        for (int i = begin; i < end; i++)
            buf_printf(&index, "%s\"%s\":\"%s\"", i ? "," : "", t->tensors[i].name, file);
    }
    buf_puts(&index, "}}");
    put(t, "model.safetensors.index.json", index.data, index.len);
    buf_free(&index);
}

void tiny_write(struct tiny *t)
{
    if (!t->dir[0] && !mkdtemp(place_template(t->dir)))
        die(ERR_ENV, "cannot make folder '%s'", t->dir);
    put(t, "config.json", t->config, t->config ? strlen(t->config) : 0);
    put(t, "preprocessor_config.json", t->preprocessor, t->preprocessor ? strlen(t->preprocessor) : 0);
    put(t, "generation_config.json", t->generation, t->generation ? strlen(t->generation) : 0);
    put(t, "tokenizer.json", t->tokenizer, t->tokenizer ? strlen(t->tokenizer) : 0);
    put_weights(t);
}

/* ---- lifetime -------------------------------------------------------------------------------- */

void tiny_init(struct tiny *t, uint64_t seed)
{
    *t = (struct tiny){.shards = 1};
    stream = seed * 0x9e3779b97f4a7c15u | 1;
    t->config = xstrdup(config);
    t->preprocessor = xstrdup("{\"max_num_tiles\":6}");
    t->generation = xstrdup("{\"eos_token_id\":[12,2]}");
    t->tokenizer = make_tokenizer();
    add_tensors(t);
}

void tiny_free(struct tiny *t)
{
    if (t->dir[0] && place_remove(t->dir))
        warn("cannot remove '%s'", t->dir);
    for (int i = 0; i < t->n; i++)
        free(t->tensors[i].data);
    free(t->tensors);
    free(t->config);
    free(t->preprocessor);
    free(t->generation);
    free(t->tokenizer);
    *t = (struct tiny){0};
}

struct tiny_tensor *tiny_find(struct tiny *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->tensors[i].name, name))
            return &t->tensors[i];
    die(ERR_FAILED, "no tensor '%s'", name);
}

void tiny_drop(struct tiny *t, const char *name)
{
    struct tiny_tensor *x = tiny_find(t, name);
    free(x->data);
    *x = t->tensors[--t->n];
}

static struct engine *open_model(const struct engine_options *o)
{
    struct err e = ERR_INIT;
    struct engine *g = engine_open(o, &e);
    if (!g)
        die(ERR_FAILED, "%s", e.text);
    return g;
}

struct engine *tiny_open(const struct tiny *t, const char *isa, int threads, bool f32)
{
    return open_model(&(struct engine_options){.dir = t->dir, .isa = isa, .threads = threads, .f32 = f32});
}

struct engine *tiny_open_on(const struct tiny *t, const char *device, const char *isa, bool f32)
{
    return open_model(
        &(struct engine_options){.dir = t->dir, .device = device, .isa = isa, .threads = 1, .f32 = f32});
}

double tiny_distance(const float *a, const float *b, int n)
{
    double diff = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        diff += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        sum += (double)a[i] * a[i];
    }
    return isfinite(diff) && sum > 0 ? sqrt(diff / sum) : INFINITY;
}

struct image tiny_image(int w, int h, uint64_t seed)
{
    struct image im;
    uint64_t rng = seed * 2 + 1;
    if (image_alloc(&im, w, h, NULL))
        die(ERR_FAILED, "no image of %dx%d", w, h);
    for (int i = 0; i < w * h * 3; i++)
        im.rgb[i] = (uint8_t)(check_random(&rng) * 256);
    return im;
}

void tiny_append(struct session *s, int first, int n)
{
    struct err e = ERR_INIT;
    for (int i = 0; i < n; i++)
        if (session_append(s, &(int32_t){16 + (first * 31 + i * 7) % 256}, 1, &e))
            fail_msg("%s", e.text);
}

void tiny_logits(const struct tiny *t, const char *isa, float *out)
{
    struct engine *g = tiny_open(t, isa, 1, true);
    struct session *s = session_new(g, 1);
    tiny_append(s, 3, 25);
    memcpy(out, session_logits(s), 288 * sizeof *out);
    session_free(s);
    engine_close(g);
}

void tiny_append_text(struct session *s, const char *text)
{
    struct err e = ERR_INIT;
    struct tokens ids = {0};
    tokenizer_encode(engine_tokenizer(session_engine(s)), text, strlen(text), true, &ids);
    if (session_append(s, ids.ids, ids.n, &e))
        fail_msg("%s", e.text);
    tokens_free(&ids);
}

void tiny_append_image(struct session *s, uint64_t seed)
{
    struct err e = ERR_INIT;
    struct image im = tiny_image(90, 60, seed);
    if (session_append_image(s, &im, &e))
        fail_msg("%s", e.text);
    image_free(&im);
}

void tiny_refused(struct engine_options o, const char *says)
{
    struct err e = ERR_INIT;
    struct engine *g = engine_open(&o, &e);
    if (g || !strstr(e.text, says))
        fail_msg("expected %s; got '%s'", says, g ? "an engine" : e.text);
    assert_int_equal(e.kind, ERR_USAGE);
    assert_null(strchr(e.text, '\n'));
}

void tiny_quantization(struct tiny *t, const char *members)
{
    char *text = xasprintf("{\"quantization_config\":{%s},\"architectures\"", members);
    tiny_edit(&t->config, "{\"architectures\"", text);
    free(text);
}

void tiny_damaged(struct tiny *t, const char *naming, const char *also)
{
    struct err e = ERR_INIT;
    tiny_write(t);
    struct engine *g = engine_open(&(struct engine_options){.dir = t->dir, .isa = "ref", .threads = 1}, &e);
    if (g || !strstr(e.text, naming) || !strstr(e.text, also))
        fail_msg("expected %s ... %s; got '%s'", naming, also, g ? "an engine" : e.text);
    assert_null(strchr(e.text, '\n'));
    assert_int_equal(e.kind, ERR_MODEL);
    tiny_free(t);
}

void tiny_put(struct tiny *t, const char *name, const char *suffix, const char *type, const void *data,
              int64_t rows, int64_t cols)
{
    char *whole = xasprintf("%s%s", name, suffix);
    struct tiny_tensor *x = tiny_add(t, whole, 0, 1, (const int64_t[]){1, 0});
    free(whole);
    free(x->data);
    x->bytes = (size_t)(rows * (cols ? cols : 1)) * (strstr(type, "32") ? 4 : strstr(type, "16") ? 2 : 1);
    x->data = malloc(x->bytes);
    memcpy(x->data, data, x->bytes);
    x->type = type;
    x->dims = cols ? 2 : 1;
    x->shape[0] = rows;
    x->shape[1] = cols;
}

int tiny_nearest_code(enum quant_format format, float x)
{
    int best = 0, n = format == QUANT_F4 ? 16 : 256;
    for (int i = 1; i < n; i++)
        if (fabsf(quant_value(format, i) - x) < fabsf(quant_value(format, best) - x))
            best = i;
    return best;
}

void tiny_widen(struct tiny *t)
{
    for (int i = 0; i < t->n; i++) {
        struct tiny_tensor *x = &t->tensors[i];
        size_t n = x->bytes / 2;
        if (strcmp(x->type, "BF16") != 0)
            continue;
        float *wide = malloc(n * sizeof *wide);
        for (size_t k = 0; k < n; k++)
            wide[k] = bf16_to_f32(((const uint16_t *)(const void *)x->data)[k]);
        free(x->data);
        x->data = (uint8_t *)wide;
        x->bytes = n * sizeof *wide;
        x->type = "F32";
    }
}

void tiny_clear(struct tiny *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->tensors[i].data);
    t->n = 0;
    free(t->config);
    free(t->preprocessor);
    free(t->generation);
    free(t->tokenizer);
    t->config = t->preprocessor = t->generation = t->tokenizer = NULL;
}

double tiny_worst(struct tiny *t, struct tiny *plain)
{
    const char *names[8];
    float have[288], want[288];
    double worst = 0;
    int n = backend_cpu_list(names, 8);
    tiny_write(t);
    tiny_write(plain);
    tiny_logits(plain, "ref", want);
    for (int i = 0; i < n; i++) {
        tiny_logits(t, names[i], have);
        worst = check_worse(worst, tiny_distance(want, have, 288));
    }
    tiny_free(t);
    tiny_free(plain);
    return worst;
}
