/* random.c - see random.h.  Shapes as published for Holotron-12B and Nemotron 3 Nano. */
#include "bench/random_impl.h"

#include "base/file.h"
#include "base/utf8.h"
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LM  "language_model.backbone."
#define VIT "vision_model.radio_model.model."

enum { HEADER_MAX = 4 << 20 };

/* ---- the models ------------------------------------------------------------------------------ */

#define CLIP_NORM                                                                                            \
    "\"norm_mean\":[0.48145466,0.4578275,0.40821073],\"norm_std\":[0.26862954,0.26130258,0.27577711],"
#define HOLOTRON_PATTERN "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-"

static const char holotron[] =
    "{\"architectures\":[\"NemotronH_Nano_VL_V2\"],\"force_image_size\":512,\"patch_size\":16,"
    "\"downsample_ratio\":0.5,\"ps_version\":\"v2\",\"image_tag_type\":\"internvl\",\"use_thumbnail\":true,"
    "\"projector_hidden_size\":20480," CLIP_NORM "\"img_context_token_id\":131072,"
    "\"llm_config\":{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"" HOLOTRON_PATTERN "\","
    "\"num_hidden_layers\":62,\"hidden_size\":5120,\"intermediate_size\":20480,\"num_attention_heads\":40,"
    "\"num_key_value_heads\":8,\"head_dim\":128,\"mamba_num_heads\":128,\"mamba_head_dim\":80,"
    "\"ssm_state_size\":128,\"n_groups\":8,\"conv_kernel\":4,\"use_conv_bias\":true,\"chunk_size\":128,"
    "\"mamba_hidden_act\":\"silu\",\"mlp_hidden_act\":\"relu2\",\"time_step_limit\":[0.0,Infinity],"
    "\"layer_norm_epsilon\":1e-05,\"max_position_embeddings\":131072,\"vocab_size\":132096,"
    "\"eos_token_id\":12},\"vision_config\":{\"args\":{\"model\":\"vit_huge_patch16_224\"}}}";

static const struct random_special holotron_named[] = {
    {0, "<unk>"},      {1, "<s>"},         {2, "</s>"},        {131072, "<image>"},
    {131073, "<img>"}, {131074, "</img>"}, {131075, "<quad>"}, {131076, "</quad>"},
    {131077, "<ref>"}, {131078, "</ref>"}, {131079, "<box>"},  {131080, "</box>"},
    {0, NULL}};

static const char nano[] =
    "{\"architectures\":[\"NemotronH_Nano_Omni_Reasoning_V3\"],\"patch_size\":16,\"downsample_ratio\":0.5,"
    "\"ps_version\":\"v2\",\"projector_hidden_size\":20480," CLIP_NORM "\"img_context_token_id\":18,"
    "\"llm_config\":{\"model_type\":\"nemotron_h\",\"vocab_size\":131072,\"hidden_size\":2688,"
    "\"hybrid_override_pattern\":\"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME\","
    "\"num_hidden_layers\":52,\"intermediate_size\":1856,\"num_attention_heads\":32,"
    "\"num_key_value_heads\":2,\"head_dim\":128,\"mamba_num_heads\":64,\"mamba_head_dim\":64,"
    "\"ssm_state_size\":128,\"n_groups\":8,\"conv_kernel\":4,\"chunk_size\":128,\"use_conv_bias\":true,"
    "\"max_position_embeddings\":262144,\"layer_norm_epsilon\":1e-05,\"mlp_hidden_act\":\"relu2\","
    "\"mamba_hidden_act\":\"silu\",\"n_routed_experts\":128,\"num_experts_per_tok\":6,"
    "\"moe_intermediate_size\":1856,\"moe_shared_expert_intermediate_size\":3712,\"n_shared_experts\":1,"
    "\"n_group\":1,\"topk_group\":1,\"norm_topk_prob\":true,\"routed_scaling_factor\":2.5},"
    "\"vision_config\":{\"hidden_size\":1280,\"num_hidden_layers\":32,\"num_attention_heads\":16,"
    "\"intermediate_size\":5120,\"args\":{\"min_num_patches\":1024,\"max_num_patches\":13312}}}";

static const struct random_special nano_named[] = {{0, "<unk>"},         {1, "<s>"},         {2, "</s>"},
                                                   {10, "<|im_start|>"}, {11, "<|im_end|>"}, {12, "<think>"},
                                                   {13, "</think>"},     {18, "<image>"},    {21, "<img>"},
                                                   {22, "</img>"},       {0, NULL}};

static const char tiny[] =
    "{\"architectures\":[\"NemotronH_Nano_VL_V2\"],\"force_image_size\":64,\"patch_size\":16,"
    "\"downsample_ratio\":0.5,\"ps_version\":\"v2\",\"image_tag_type\":\"internvl\",\"use_thumbnail\":true,"
    "\"projector_hidden_size\":64,\"norm_mean\":[0.48,0.46,0.41],\"norm_std\":[0.27,0.26,0.28],"
    "\"img_context_token_id\":1024,\"llm_config\":{\"model_type\":\"nemotron_h\","
    "\"hybrid_override_pattern\":\"M-*-M-\",\"num_hidden_layers\":6,\"vocab_size\":1040,\"hidden_size\":64,"
    "\"intermediate_size\":128,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,"
    "\"mamba_num_heads\":4,\"mamba_head_dim\":16,\"ssm_state_size\":16,\"n_groups\":2,\"conv_kernel\":4,"
    "\"chunk_size\":32,\"use_conv_bias\":true,\"attention_bias\":false,\"mlp_hidden_act\":\"relu2\","
    "\"mamba_hidden_act\":\"silu\",\"time_step_limit\":[0.0,Infinity],\"layer_norm_epsilon\":1e-05,"
    "\"residual_in_fp32\":false,\"max_position_embeddings\":16384,\"eos_token_id\":12},"
    "\"vision_config\":{\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"intermediate_size\":128,\"args\":{\"model\":\"vit_tiny_patch16\",\"model_norm\":false}}}";

static const struct random_special tiny_named[] = {
    {0, "<unk>"}, {1, "<s>"}, {2, "</s>"}, {1024, "<image>"}, {1025, "<img>"}, {1026, "</img>"}, {0, NULL}};

#define QWEN_STOPS "{\"eos_token_id\":[248046,248044]}"

static const struct random_model models[] = {
    {"holotron-12b", holotron, "{\"eos_token_id\":[12]}", "{\"max_num_tiles\":12,\"use_thumbnail\":true}",
     1000, 131072, 16, 128, holotron_named},
    {"holotron4-30b", nano, "{\"eos_token_id\":[11]}", NULL, 1000, 131072, 10, 128, nano_named},
    {"qwen3.5-0.8b", random_qwen_small, QWEN_STOPS, NULL, 0, 248044, 0, 0, random_qwen_named},
    {"qwen3.5-4b", random_qwen_middle, QWEN_STOPS, NULL, 0, 248044, 0, 0, random_qwen_named},
    {"qwen3.5-9b", random_qwen_large, QWEN_STOPS, NULL, 0, 248044, 0, 0, random_qwen_named},
    {"qwen3.5-35b-a3b", random_qwen_experts, QWEN_STOPS, NULL, 0, 248044, 0, 0, random_qwen_named},
    {"tiny", tiny, "{\"eos_token_id\":[12]}", "{\"max_num_tiles\":12,\"use_thumbnail\":true}", 100, 1024, 3,
     8, tiny_named},
};

const struct random_model *random_find(const char *name, struct err *e)
{
    char names[256] = "";
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!strcmp(models[i].name, name))
            return &models[i];
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", models[i].name);
    }
    return err_set(e, ERR_USAGE, "unknown model size '%s': one of %s", name, names), NULL;
}

static struct model_config random_config(const struct random_model *m)
{
    struct model_config c;
    struct err e = ERR_INIT;
    const struct config_text text = {
        .config = m->config, .preprocessor = m->preprocessor, .generation = m->generation};
    if (config_parse(&c, &text, &e))
        bug("%s: %s", m->name, e.text);
    return c;
}

/* ---- tensors --------------------------------------------------------------------------------- */

void random_list(const struct listing *l, const char *name, int dims, const int64_t *shape)
{
    char whole[128];
    if (l->front)
        snprintf(whole, sizeof whole, "%s%d.%s", l->front, l->number, name);
    l->fn(l->arg, l->front ? whole : name, dims, shape);
}

static void list_mamba(const struct listing *l, const struct lm_config *c)
{
    ADD(l, "mixer.in_proj.weight", config_proj_rows(c), c->hidden);
    ADD(l, "mixer.conv1d.weight", config_conv_dim(c), 1, c->ssm.conv);
    ADD(l, "mixer.conv1d.bias", config_conv_dim(c));
    ADD(l, "mixer.dt_bias", c->ssm.heads);
    ADD(l, "mixer.A_log", c->ssm.heads);
    ADD(l, "mixer.D", c->ssm.heads);
    ADD(l, "mixer.norm.weight", config_inner(c));
    ADD(l, "mixer.out_proj.weight", c->hidden, config_inner(c));
}

static void list_experts(const struct listing *l, const struct lm_config *c)
{
    const struct moe_config *m = &c->moe;
    ADD(l, "mixer.gate.weight", m->route.experts, c->hidden);
    ADD(l, "mixer.gate.e_score_correction_bias", m->route.experts);
    ADD(l, "mixer.shared_experts.up_proj.weight", m->shared, c->hidden);
    ADD(l, "mixer.shared_experts.down_proj.weight", c->hidden, m->shared);
    for (int i = 0; i < m->route.experts; i++) {
        char name[64];
        snprintf(name, sizeof name, "mixer.experts.%d.up_proj.weight", i);
        ADD(l, name, m->width, c->hidden);
        snprintf(name, sizeof name, "mixer.experts.%d.down_proj.weight", i);
        ADD(l, name, c->hidden, m->width);
    }
}

static void list_layer(const struct listing *l, const struct lm_config *c)
{
    int64_t q = (int64_t)c->q_heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    ADD(l, "norm.weight", c->hidden);
    switch (c->pattern[l->number]) {
    case LAYER_MAMBA:
        list_mamba(l, c);
        break;
    case LAYER_ATTENTION:
        ADD(l, "mixer.q_proj.weight", q, c->hidden);
        ADD(l, "mixer.k_proj.weight", kv, c->hidden);
        ADD(l, "mixer.v_proj.weight", kv, c->hidden);
        ADD(l, "mixer.o_proj.weight", c->hidden, q);
        break;
    case LAYER_MOE:
        list_experts(l, c);
        break;
    default:
        ADD(l, "mixer.up_proj.weight", c->mlp[l->number], c->hidden);
        ADD(l, "mixer.down_proj.weight", c->hidden, c->mlp[l->number]);
    }
}

static void list_block(const struct listing *l, const struct vit_config *v)
{
    int64_t w = v->hidden;
    ADD(l, "norm1.weight", w);
    ADD(l, "norm1.bias", w);
    ADD(l, "attn.qkv.weight", 3 * w, w);
    ADD(l, "attn.qkv.bias", 3 * w);
    ADD(l, "attn.proj.weight", w, w);
    ADD(l, "attn.proj.bias", w);
    ADD(l, "norm2.weight", w);
    ADD(l, "norm2.bias", w);
    ADD(l, "mlp.fc1.weight", v->mlp, w);
    ADD(l, "mlp.fc1.bias", v->mlp);
    ADD(l, "mlp.fc2.weight", w, v->mlp);
    ADD(l, "mlp.fc2.bias", w);
}

void random_tensors(const struct random_model *m, random_tensor *fn, void *arg)
{
    struct model_config c = random_config(m);
    const struct listing all = {fn, arg, NULL, 0};
    if (family_is_qwen(c.family)) {
        random_list_qwen(&c, fn, arg);
        return;
    }
    ADD(&all, LM "embeddings.weight", c.lm.vocab, c.lm.hidden);
    for (int i = 0; i < c.lm.layers; i++)
        list_layer(&(struct listing){fn, arg, LM "layers.", i}, &c.lm);
    ADD(&all, LM "norm_f.weight", c.lm.hidden);
    ADD(&all, "language_model.lm_head.weight", c.lm.vocab, c.lm.hidden);
    int64_t w = c.vit.hidden;
    ADD(&all, VIT "patch_generator.embedder.weight", w, (int64_t)3 * c.vit.patch * c.vit.patch);
    ADD(&all, VIT "patch_generator.pos_embed", 1, (int64_t)m->side * m->side, w);
    ADD(&all, VIT "patch_generator.cls_token.token", m->prefix, w);
    for (int i = 0; i < c.vit.blocks; i++)
        list_block(&(struct listing){fn, arg, VIT "blocks.", i}, &c.vit);
    ADD(&all, "mlp1.0.weight", 4 * w);
    ADD(&all, "mlp1.1.weight", c.vit.projector, 4 * w);
    ADD(&all, "mlp1.3.weight", c.lm.hidden, c.vit.projector);
}

/* ---- tokenizer ------------------------------------------------------------------------------- */

/* Writes the i-th text of n letters, which is the merge of all letters but the last with the last one.
 * Returns n. */
static int spell(char *out, int i, int n)
{
    for (int k = n - 1; k >= 0; k--, i /= 26)
        out[k] = (char)('a' + i % 26);
    out[n] = 0;
    return n;
}

static void put_words(const struct random_model *m, struct buf *b, bool merges)
{
    static const int count[] = {26 * 26, 26 * 26 * 26, 26 * 26 * 26 * 26};
    int first = m->specials + 256, id = first;
    for (int n = 2; n <= 4; n++)
        for (int i = 0; i < count[n - 2] && id < m->words; i++, id++) {
            char s[8];
            int len = spell(s, i, n);
            if (merges)
                buf_printf(b, "%s[\"%.*s\",\"%s\"]", id == first ? "" : ",", len - 1, s, s + len - 1);
            else
                buf_printf(b, ",\"%s\":%d", s, id);
        }
}

static void put_special(struct buf *b, int id, const char *text)
{
    buf_printf(b, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", b->data[b->len - 1] == '[' ? "" : ",",
               id, text);
}

static void put_specials(const struct random_model *m, struct buf *b)
{
    const struct random_special *next = m->named; /* in the order of their ids */
    for (int i = 0; i < m->specials; i++) {
        char name[32];
        snprintf(name, sizeof name, "<SPECIAL_%d>", i);
        bool named = next->text && next->id == i;
        put_special(b, i, named ? next->text : name);
        next += named;
    }
    for (; next->text; next++)
        put_special(b, next->id, next->text);
}

void random_put_tokenizer(const struct random_model *m, struct buf *b)
{
    buf_puts(b, "{\"added_tokens\":[");
    put_specials(m, b);
    buf_puts(b, "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
                "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    int other = 0;
    for (int i = 0; i < 256; i++) {
        bool plain = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        char s[4];
        int n = utf8_encode(plain ? (uint32_t)i : 256 + (uint32_t)other++, s);
        buf_printf(b, "%s\"%s%.*s\":%d", i ? "," : "", i == '"' || i == '\\' ? "\\" : "", n, s,
                   m->specials + i);
    }
    put_words(m, b, false);
    buf_puts(b, "},\"merges\":[");
    put_words(m, b, true);
    buf_puts(b, "]}}");
}

/* ---- the directory --------------------------------------------------------------------------- */

struct header {
    struct buf text;
    int64_t end; /* bytes of data so far */
};

static void put_tensor(void *arg, const char *name, int dims, const int64_t *shape)
{
    struct header *h = arg;
    int64_t bytes = 2;
    buf_printf(&h->text, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[", name);
    for (int i = 0; i < dims; i++) {
        buf_printf(&h->text, "%s%lld", i ? "," : "", (long long)shape[i]);
        bytes *= shape[i];
    }
    buf_printf(&h->text, "],\"data_offsets\":[%lld,%lld]}", (long long)h->end, (long long)(h->end + bytes));
    h->end += bytes;
}

static int put_weights(const char *path, const struct random_model *m, struct err *e)
{
    struct header h = {.end = 0};
    buf_init(&h.text, HEADER_MAX);
    buf_puts(&h.text, "{\"__metadata__\":{\"format\":\"pt\"}");
    random_tensors(m, put_tensor, &h);
    buf_putc(&h.text, '}');
    while (h.text.len % 8)
        buf_putc(&h.text, ' ');
    uint64_t len = h.text.len;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc = -1;
    if (fd < 0)
        err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    else if (!file_write_all(fd, path, &len, sizeof len, e) &&
             !file_write_all(fd, path, h.text.data, h.text.len, e))
        rc = ftruncate(fd, (off_t)(sizeof len + len) + h.end);
    if (fd >= 0 && rc && !e->text[0])
        err_set(e, ERR_ENV, "cannot make '%s' a sparse file of %lld bytes: %s", path, (long long)h.end,
                strerror(errno));
    if (fd >= 0)
        close(fd);
    buf_free(&h.text);
    return rc;
}

static const char *const file_names[] = {"config.json", "generation_config.json", "preprocessor_config.json",
                                         "tokenizer.json", "model.safetensors"};
enum { FILES = sizeof file_names / sizeof *file_names };

static int put_files(const char *dir, const struct random_model *m, struct err *e)
{
    autobuf tokens = buf_of(32 << 20);
    random_put_tokenizer(m, &tokens);
    const char *texts[FILES] = {m->config, m->generation, m->preprocessor, tokens.data, NULL};
    int rc = 0;
    for (int i = 0; i < FILES && rc == 0; i++) {
        autofree char *path = xasprintf("%s/%s", dir, file_names[i]);
        bench_temp_file(path);
        if (texts[i])
            rc = file_write(path, texts[i], strlen(texts[i]), e);
        else if (i == FILES - 1)
            rc = put_weights(path, m, e);
    }
    return rc;
}

char *random_write(const struct random_model *m, struct err *e)
{
    autofree char *place = file_place(PLACE_RUNTIME, e);
    if (!place)
        return NULL;
    char *dir = xasprintf("%s/random-XXXXXX", place);
    if (!mkdtemp(dir)) {
        err_set(e, ERR_ENV, "cannot create directory '%s': %s", dir, strerror(errno));
        free(dir);
        return NULL;
    }
    bench_temp_file(dir);
    if (put_files(dir, m, e)) {
        random_remove(dir);
        return NULL;
    }
    return dir;
}

void random_remove(char *dir)
{
    for (int i = 0; dir && i < FILES; i++) {
        autofree char *path = xasprintf("%s/%s", dir, file_names[i]);
        unlink(path);
    }
    if (dir && rmdir(dir))
        warn("cannot remove '%s'", dir);
    free(dir);
}
