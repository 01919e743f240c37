/* full_model.c - see full_model.h; shapes as Holotron-12B publishes them. */
#include "full_model.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATTERN "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-"
#define LM      "language_model.backbone."
#define VIT     "vision_model.radio_model.model."

enum { LAYERS = 62, BLOCKS = 32, SPECIALS = 1000, BASE = 131072, HEADER_MAX = 1 << 20 };

static const char config[] =
    "{\"architectures\":[\"NemotronH_Nano_VL_V2\"],\"model_type\":\"NemotronH_Nano_VL_V2\","
    "\"force_image_size\":512,\"patch_size\":16,\"downsample_ratio\":0.5,\"ps_version\":\"v2\","
    "\"image_tag_type\":\"internvl\",\"vit_hidden_size\":1280,\"projector_hidden_size\":20480,"
    "\"use_thumbnail\":true,\"norm_mean\":[0.48145466,0.4578275,0.40821073],"
    "\"norm_std\":[0.26862954,0.26130258,0.27577711],\"img_context_token_id\":131072,"
    "\"torch_dtype\":\"bfloat16\",\"llm_config\":{\"architectures\":[\"NemotronHForCausalLM\"],"
    "\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"" PATTERN "\",\"num_hidden_layers\":62,"
    "\"hidden_size\":5120,\"intermediate_size\":20480,\"num_attention_heads\":40,\"num_key_value_heads\":8,"
    "\"head_dim\":128,\"mamba_num_heads\":128,\"mamba_head_dim\":80,\"ssm_state_size\":128,\"n_groups\":8,"
    "\"expand\":2,\"conv_kernel\":4,\"use_conv_bias\":true,\"use_bias\":false,\"mlp_bias\":false,"
    "\"attention_bias\":false,\"mamba_proj_bias\":false,\"mamba_hidden_act\":\"silu\","
    "\"mlp_hidden_act\":\"relu2\",\"chunk_size\":128,\"time_step_limit\":[0.0,Infinity],"
    "\"layer_norm_epsilon\":1e-05,\"residual_in_fp32\":false,\"rescale_prenorm_residual\":true,"
    "\"tie_word_embeddings\":false,\"max_position_embeddings\":131072,\"vocab_size\":132096,"
    "\"bos_token_id\":1,\"eos_token_id\":12},\"vision_config\":{\"args\":{\"model\":"
    "\"vit_huge_patch16_224\",\"cpe_max_size\":2048,\"cls_token_per_teacher\":true,"
    "\"register_multiple\":16},\"patch_size\":16,\"max_resolution\":2048,\"preferred_resolution\":[512,512],"
    "\"version\":\"radio_v2.5-h\"}}";

/* ---- tensors ----------------------------------------------------------------------------------------- */

struct full_tensor *full_add(struct full_model *m, const char *name, int shard, int dims,
                             const int64_t *shape)
{
    m->tensors = xrealloc(m->tensors, (unsigned long)m->n + 1, sizeof *m->tensors);
    struct full_tensor *t = &m->tensors[m->n++];
    *t = (struct full_tensor){.dtype = "BF16", .dims = dims, .shard = shard, .index_shard = -2};
    snprintf(t->name, sizeof t->name, "%s", name);
    memcpy(t->shape, shape, (size_t)dims * sizeof *shape);
    return t;
}

#define ADD(shard, name, ...)                                                                                \
    full_add(m, name, shard, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                      \
             (const int64_t[]){__VA_ARGS__})

static const char *part(const char *front, int i, const char *what)
{
    static char name[96];
    snprintf(name, sizeof name, "%s%d.%s", front, i, what);
    return name;
}

static void add_layer(struct full_model *m, int i)
{
#define PART(what, ...) ADD(i / 13, part(LM "layers.", i, what), __VA_ARGS__)
    PART("norm.weight", 5120);
    if (PATTERN[i] == 'M') {
        PART("mixer.in_proj.weight", 22656, 5120);
        PART("mixer.conv1d.weight", 12288, 1, 4);
        PART("mixer.conv1d.bias", 12288);
        PART("mixer.dt_bias", 128);
        PART("mixer.A_log", 128);
        PART("mixer.D", 128);
        PART("mixer.norm.weight", 10240);
        PART("mixer.out_proj.weight", 5120, 10240);
    } else if (PATTERN[i] == '*') {
        PART("mixer.q_proj.weight", 5120, 5120);
        PART("mixer.k_proj.weight", 1024, 5120);
        PART("mixer.v_proj.weight", 1024, 5120);
        PART("mixer.o_proj.weight", 5120, 5120);
    } else {
        PART("mixer.up_proj.weight", 20480, 5120);
        PART("mixer.down_proj.weight", 5120, 20480);
    }
#undef PART
}

static void add_block(struct full_model *m, int i)
{
#define PART(what, ...) ADD(5, part(VIT "blocks.", i, what), __VA_ARGS__)
    PART("norm1.weight", 1280);
    PART("norm1.bias", 1280);
    PART("attn.qkv.weight", 3840, 1280);
    PART("attn.qkv.bias", 3840);
    PART("attn.proj.weight", 1280, 1280);
    PART("attn.proj.bias", 1280);
    PART("norm2.weight", 1280);
    PART("norm2.bias", 1280);
    PART("mlp.fc1.weight", 5120, 1280);
    PART("mlp.fc1.bias", 5120);
    PART("mlp.fc2.weight", 1280, 5120);
    PART("mlp.fc2.bias", 1280);
#undef PART
}

void full_init(struct full_model *m)
{
    *m = (struct full_model){.without = -1};
    ADD(0, LM "embeddings.weight", FULL_VOCAB, 5120);
    for (int i = 0; i < LAYERS; i++)
        add_layer(m, i);
    ADD(4, LM "norm_f.weight", 5120);
    ADD(4, "language_model.lm_head.weight", FULL_VOCAB, 5120);
    ADD(5, VIT "patch_generator.embedder.weight", 1280, 768);
    ADD(5, VIT "patch_generator.pos_embed", 1, 16384, 1280);
    ADD(5, VIT "patch_generator.cls_token.token", 16, 1280);
    for (int i = 0; i < BLOCKS; i++)
        add_block(m, i);
    ADD(5, "mlp1.0.weight", 5120);
    ADD(5, "mlp1.1.weight", 20480, 5120);
    ADD(5, "mlp1.3.weight", 5120, 20480);
}

void full_free(struct full_model *m)
{
    if (m->dir[0]) {
        char *rm = xasprintf("rm -rf '%s'", m->dir);
        if (system(rm))
            warn("cannot remove '%s'", m->dir);
        free(rm);
    }
    free(m->tensors);
    *m = (struct full_model){0};
}

struct full_tensor *full_find(struct full_model *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->tensors[i].name, name))
            return &m->tensors[i];
    die(ERR_FAILED, "no tensor '%s'", name);
}

void full_drop(struct full_model *m, const char *name)
{
    struct full_tensor *t = full_find(m, name);
    memmove(t, t + 1, (size_t)(&m->tensors[--m->n] - t) * sizeof *t);
}

int64_t full_bytes(const struct full_tensor *t)
{
    int64_t bytes = !strcmp(t->dtype, "F32") ? 4 : !strcmp(t->dtype, "BF16") ? 2 : 1;
    for (int i = 0; i < t->dims; i++)
        bytes *= t->shape[i];
    return bytes;
}

/* ---- tokenizer ------------------------------------------------------------------------------------------ */

/* The i-th text of n letters, and the merge it comes from: all but its last letter, and that. */
static int spell(char *out, int i, int n)
{
    for (int k = n - 1; k >= 0; k--, i /= 26)
        out[k] = (char)('a' + i % 26);
    out[n] = 0;
    return n;
}

static void put_words(struct buf *b, bool merges)
{
    static const int count[] = {676, 17576, BASE - SPECIALS - 256 - 676 - 17576};
    int id = SPECIALS + 256;
    for (int n = 2; n <= 4; n++)
        for (int i = 0; i < count[n - 2]; i++, id++) {
            char s[8];
            int len = spell(s, i, n);
            if (merges)
                buf_printf(b, "%s[\"%.*s\",\"%s\"]", id == SPECIALS + 256 ? "" : ",", len - 1, s,
                           s + len - 1);
            else
                buf_printf(b, ",\"%s\":%d", s, id);
        }
}

static void put_added(struct buf *b)
{
    static const char *const marks[] = {"<image>", "<img>",  "</img>", "<quad>", "</quad>",
                                        "<ref>",   "</ref>", "<box>",  "</box>"};
    for (int i = 0; i < SPECIALS; i++) {
        static const char *const low[] = {"<unk>", "<s>", "</s>"};
        char name[32];
        snprintf(name, sizeof name, i < 3 ? "%s" : "<SPECIAL_%s%d>", i < 3 ? low[i] : "", i);
        buf_printf(b, "{\"id\":%d,\"content\":\"%s\",\"special\":true},", i, name);
    }
    for (int i = 0; i < 9; i++)
        buf_printf(b, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", i ? "," : "", BASE + i, marks[i]);
}

/* As many tokens and merges as the real one: 256 bytes and texts of letters, each a merge of two others. */
static void put_tokenizer(struct buf *b)
{
    buf_puts(b, "{\"added_tokens\":[");
    put_added(b);
    buf_puts(b, "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
                "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    int other = 0;
    for (int i = 0; i < 256; i++) {
        bool plain = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        char s[4];
        int n = utf8_encode(plain ? (uint32_t)i : 256 + (uint32_t)other++, s);
        buf_printf(b, "%s\"%s%.*s\":%d", i ? "," : "", i == '"' || i == '\\' ? "\\" : "", n, s, SPECIALS + i);
    }
    put_words(b, false);
    buf_puts(b, "},\"merges\":[");
    put_words(b, true);
    buf_puts(b, "]}}");
}

/* ---- files ------------------------------------------------------------------------------------------------ */

static void put_file(const struct full_model *m, const char *name, const char *data, size_t len)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/%s", m->dir, name);
    if (file_write(path, data, len, &e))
        die(ERR_FAILED, "%s", e.text);
    free(path);
}

static void shard_name(int shard, char out[64])
{
    snprintf(out, 64, "model-%05d-of-%05d.safetensors", shard + 1, FULL_SHARDS);
}

/* The header, padded so that the data behind it stands at a multiple of 8, and how long the data is. */
static int64_t put_header(const struct full_model *m, int shard, struct buf *b)
{
    int64_t at = 0;
    buf_puts(b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < m->n; i++) {
        const struct full_tensor *t = &m->tensors[i];
        if (t->shard != shard || t->only_in_index)
            continue;
        buf_printf(b, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, t->dtype);
        for (int k = 0; k < t->dims; k++)
            buf_printf(b, "%s%lld", k ? "," : "", (long long)t->shape[k]);
        int64_t end = at + full_bytes(t);
        buf_printf(b, "],\"data_offsets\":[%lld,%lld]}", (long long)(at + t->begin_off),
                   (long long)(end + t->end_off));
        at = end;
    }
    buf_putc(b, '}');
    while (b->len % 8)
        buf_putc(b, ' ');
    return at;
}

static void put_shard(const struct full_model *m, int shard)
{
    struct buf header;
    struct err e = ERR_INIT;
    char name[64];
    buf_init(&header, HEADER_MAX);
    int64_t data = put_header(m, shard, &header);
    uint64_t len = header.len;
    shard_name(shard, name);
    char *path = xasprintf("%s/%s", m->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die(ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    if (file_write_all(fd, path, &len, sizeof len, &e) ||
        file_write_all(fd, path, header.data, header.len, &e))
        die(ERR_ENV, "%s", e.text);
    int64_t size = (int64_t)sizeof len + (int64_t)header.len + data - (shard == FULL_SHARDS - 1 ? m->cut : 0);
    if (ftruncate(fd, size) || close(fd))
        die(ERR_ENV, "cannot make '%s' %lld bytes long: %s", path, (long long)size, strerror(errno));
    free(path);
    buf_free(&header);
}

static void put_index(const struct full_model *m)
{
    struct buf b;
    int first = 1;
    buf_init(&b, HEADER_MAX);
    buf_puts(&b, "{\"metadata\":{},\"weight_map\":{");
    for (int i = 0; i < m->n; i++) {
        const struct full_tensor *t = &m->tensors[i];
        char file[64];
        int shard = t->index_shard == -2 ? t->shard : t->index_shard;
        if (shard < 0)
            continue;
        shard_name(shard, file);
        buf_printf(&b, "%s\"%s\":\"%s\"", first ? "" : ",", t->name, file);
        first = 0;
    }
    buf_puts(&b, "}}");
    put_file(m, "model.safetensors.index.json", b.data, b.len);
    buf_free(&b);
}

void full_write_shards(const struct full_model *m)
{
    for (int i = 0; i < FULL_SHARDS; i++) {
        char name[64];
        shard_name(i, name);
        char *path = xasprintf("%s/%s", m->dir, name);
        if (i == m->without)
            unlink(path);
        else
            put_shard(m, i);
        free(path);
    }
    put_index(m);
}

void full_write(struct full_model *m)
{
    struct buf b;
    if (!m->dir[0]) {
        strcpy(m->dir, "/tmp/holorun-full-XXXXXX");
        if (!mkdtemp(m->dir))
            die(ERR_ENV, "cannot make a folder in /tmp");
    }
    put_file(m, "config.json", config, sizeof config - 1);
    put_file(m, "generation_config.json", "{\"eos_token_id\":[12]}", 21);
    put_file(m, "preprocessor_config.json", "{\"max_num_tiles\":12,\"use_thumbnail\":true}", 41);
    buf_init(&b, 32 << 20);
    put_tokenizer(&b);
    put_file(m, "tokenizer.json", b.data, b.len);
    buf_free(&b);
    full_write_shards(m);
}
