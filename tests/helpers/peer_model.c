/* peer_model - writes one random model in the formats of two programs, to time both on the same weights:
 *
 *     peer_model DIR
 *
 * writes DIR/model (the published layout, for holorun), DIR/text.gguf and DIR/eyes.gguf (for llama.cpp),
 * DIR/text-8bit.gguf with every matrix of the first in Q8_0, and DIR/tile.ppm, an image of one tile.  The
 * language model has a quarter of Holotron's widths and 27 of its layers, 403 million parameters; the tower
 * is complete: 32 blocks of width 1280.
 *
 * A table has a row for each tensor, with its name in both formats.  Values come from a generator seeded
 * with the tensor's position and are bf16 in both; llama.cpp requires vectors and convolution weights in
 * f32, and -exp(A_log) instead of A_log.
 */
#include "gguf.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"
#include "ops/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATTERN "M-M-M-M*-M-M-M-M*-M-M-M-M*-"
#define LM      "language_model.backbone."
#define VIT     "vision_model.radio_model.model."

enum {
    LAYERS = sizeof PATTERN - 1,
    HIDDEN = 1280,
    MLP = 5120,
    VOCAB = 32768,
    HEADS = 32,
    INNER = HEADS * 80,
    GROUPS = 8,
    BC = 2 * GROUPS * 128,
    Q = 10 * 128,
    KV = 2 * 128,
    BLOCKS = 32,
    WIDTH = 1280,
    VIT_MLP = 5120,
    PREFIX = 16,
    TILE = 512,
    PATCHES = TILE / 16 * (TILE / 16),
    PROJECTOR = 20480,
    MAX_TENSORS = 1024,
    MARKS = VOCAB - 8, /* the first special token */
    TEXT_MAX = 16 << 20,
    VALUES = 1 << 16, /* values per write */
};

/* ---- tensors ------------------------------------------------------------------------------------------ */

enum form {             /* published -> peer */
            MATRIX,     /* [rows, cols] in bf16 */
            ROWS,       /* [1, rows, cols] -> [rows, cols] in f32 */
            PLAIN_ROWS, /* [rows, cols] -> the same in f32 */
            VECTOR,     /* [rows] -> the same in f32 */
            COLUMN,     /* [rows] -> [rows, 1] in f32 */
            DECAY,      /* [rows] -> [rows, 1] in f32, -exp of it */
            GROUPED,    /* [rows] -> [GROUPS, rows / GROUPS] in f32 */
            TAPS,       /* [rows, 1, cols] -> [rows, cols] in f32 */
            PATCH,      /* [rows, cols] -> [rows, 3, 16, 16] in f32 */
};

struct part {
    char
        where; /* letter of the layer pattern; a: every layer, t: once, v: each block, e: once in the tower */
    const char *name, *peer;
    enum form form;
    int64_t rows, cols;
    float mean, spread; /* of a matrix: such that products have the size of their input */
};

static const struct part parts[] = {
    {'t', LM "embeddings.weight", "token_embd.weight", MATRIX, VOCAB, HIDDEN, 0, 1},
    {'t', LM "norm_f.weight", "output_norm.weight", VECTOR, HIDDEN, 0, 1, 0.1f},
    {'t', "language_model.lm_head.weight", "output.weight", MATRIX, VOCAB, HIDDEN, 0, 0},
    {'a', "norm.weight", "attn_norm.weight", VECTOR, HIDDEN, 0, 1, 0.1f},
    {'M', "mixer.in_proj.weight", "ssm_in.weight", MATRIX, 2 * INNER + BC + HEADS, HIDDEN, 0, 0},
    {'M', "mixer.conv1d.weight", "ssm_conv1d.weight", TAPS, INNER + BC, 4, 0, 0.5f},
    {'M', "mixer.conv1d.bias", "ssm_conv1d.bias", VECTOR, INNER + BC, 0, 0, 0.1f},
    {'M', "mixer.dt_bias", "ssm_dt.bias", VECTOR, HEADS, 0, -3, 1},
    {'M', "mixer.A_log", "ssm_a", DECAY, HEADS, 0, 1, 1},
    {'M', "mixer.D", "ssm_d", COLUMN, HEADS, 0, 1, 0.5f},
    {'M', "mixer.norm.weight", "ssm_norm.weight", GROUPED, INNER, 0, 1, 0.1f},
    {'M', "mixer.out_proj.weight", "ssm_out.weight", MATRIX, HIDDEN, INNER, 0, 0},
    {'*', "mixer.q_proj.weight", "attn_q.weight", MATRIX, Q, HIDDEN, 0, 0},
    {'*', "mixer.k_proj.weight", "attn_k.weight", MATRIX, KV, HIDDEN, 0, 0},
    {'*', "mixer.v_proj.weight", "attn_v.weight", MATRIX, KV, HIDDEN, 0, 0},
    {'*', "mixer.o_proj.weight", "attn_output.weight", MATRIX, HIDDEN, Q, 0, 0},
    {'-', "mixer.up_proj.weight", "ffn_up.weight", MATRIX, MLP, HIDDEN, 0, 0},
    {'-', "mixer.down_proj.weight", "ffn_down.weight", MATRIX, HIDDEN, MLP, 0, 0},
    {'e', VIT "patch_generator.embedder.weight", "v.patch_embd.weight", PATCH, WIDTH, 768, 0, 0},
    {'e', VIT "patch_generator.pos_embed", "v.position_embd.weight", ROWS, PATCHES, WIDTH, 0, 0.1f},
    {'e', VIT "patch_generator.cls_token.token", "v.class_embd", PLAIN_ROWS, PREFIX, WIDTH, 0, 1},
    {'v', "norm1.weight", "ln1.weight", VECTOR, WIDTH, 0, 1, 0.1f},
    {'v', "norm1.bias", "ln1.bias", VECTOR, WIDTH, 0, 0, 0.1f},
    {'v', "attn.qkv.weight", "attn_qkv.weight", MATRIX, 3 * WIDTH, WIDTH, 0, 0},
    {'v', "attn.qkv.bias", "attn_qkv.bias", VECTOR, 3 * WIDTH, 0, 0, 0.1f},
    {'v', "attn.proj.weight", "attn_out.weight", MATRIX, WIDTH, WIDTH, 0, 0},
    {'v', "attn.proj.bias", "attn_out.bias", VECTOR, WIDTH, 0, 0, 0.1f},
    {'v', "norm2.weight", "ln2.weight", VECTOR, WIDTH, 0, 1, 0.1f},
    {'v', "norm2.bias", "ln2.bias", VECTOR, WIDTH, 0, 0, 0.1f},
    {'v', "mlp.fc1.weight", "ffn_up.weight", MATRIX, VIT_MLP, WIDTH, 0, 0},
    {'v', "mlp.fc1.bias", "ffn_up.bias", VECTOR, VIT_MLP, 0, 0, 0.1f},
    {'v', "mlp.fc2.weight", "ffn_down.weight", MATRIX, WIDTH, VIT_MLP, 0, 0},
    {'v', "mlp.fc2.bias", "ffn_down.bias", VECTOR, WIDTH, 0, 0, 0.1f},
    {'e', "mlp1.0.weight", "mm.model.mlp.0.weight", VECTOR, 4 * WIDTH, 0, 1, 0.1f},
    {'e', "mlp1.1.weight", "mm.model.mlp.1.weight", MATRIX, PROJECTOR, 4 * WIDTH, 0, 0},
    {'e', "mlp1.3.weight", "mm.model.mlp.3.weight", MATRIX, HIDDEN, PROJECTOR, 0, 0},
};

enum { PARTS = sizeof parts / sizeof *parts };

struct item {
    const struct part *part;
    char name[96], peer[64];
    bool eyes; /* in llama.cpp's second file */
};

static struct item items[MAX_TENSORS];
static int n_items;

static void add(const struct part *p, const char *front, const char *peer_front, int i)
{
    struct item *t = &items[n_items++];
    *t = (struct item){.part = p, .eyes = p->where == 'v' || p->where == 'e'};
    if (i < 0) {
        snprintf(t->name, sizeof t->name, "%s", p->name);
        snprintf(t->peer, sizeof t->peer, "%s", p->peer);
    } else {
        snprintf(t->name, sizeof t->name, "%s%d.%s", front, i, p->name);
        snprintf(t->peer, sizeof t->peer, "%s%d.%s", peer_front, i, p->peer);
    }
}

static void list_tensors(void)
{
    for (int k = 0; k < PARTS; k++)
        if (parts[k].where == 't' || parts[k].where == 'e')
            add(&parts[k], "", "", -1);
    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < PARTS; k++)
            if (parts[k].where == 'a' || parts[k].where == PATTERN[i])
                add(&parts[k], LM "layers.", "blk.", i);
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < PARTS; k++)
            if (parts[k].where == 'v')
                add(&parts[k], VIT "blocks.", "v.blk.", i);
}

static int64_t count(const struct part *p)
{
    return p->rows * (p->cols ? p->cols : 1);
}

/* Writes the shape, slowest dimension first; returns the number of dimensions. */
static int shape_of(const struct part *p, int64_t s[4], bool peer)
{
    const int64_t all[][4] = {{p->rows, p->cols},  {1, p->rows, p->cols}, {p->rows, 1, p->cols},
                              {p->rows},           {p->rows, 1},          {GROUPS, p->rows / GROUPS},
                              {p->rows, 3, 16, 16}};
    static const int dims[] = {2, 3, 3, 1, 2, 2, 4};
    int k = p->cols ? 0 : 3;
    if (!peer && (p->form == ROWS || p->form == TAPS))
        k = p->form == ROWS ? 1 : 2;
    else if (peer && (p->form == COLUMN || p->form == DECAY))
        k = 4;
    else if (peer && p->form == GROUPED)
        k = 5;
    else if (peer && p->form == PATCH)
        k = 6;
    memcpy(s, all[k], sizeof all[k]);
    return dims[k];
}

/* Generates the values of a tensor in order, as bf16. */
struct values {
    const struct part *part;
    uint32_t state;
    float spread;
};

static struct values values_of(int item)
{
    const struct part *p = items[item].part;
    float spread = p->form == MATRIX && p->spread == 0 ? sqrtf(3.0f / (float)p->cols) : p->spread;
    return (struct values){p, (uint32_t)item * 2654435761u + 1, spread};
}

static uint16_t next_value(struct values *v)
{
    v->state = v->state * 1664525 + 1013904223;
    return bf16_from_f32(v->part->mean + v->spread * ((float)(v->state >> 8) * 0x1p-23f - 1.0f));
}

/* ---- files -------------------------------------------------------------------------------------------- */

struct out {
    char *path;
    int fd;
};

static void put(struct out *o, const void *data, size_t n)
{
    struct err e = ERR_INIT;
    if (file_write_all(o->fd, o->path, data, n, &e))
        die(ERR_ENV, "%s", e.text);
}

static struct out create(const char *dir, const char *name)
{
    struct out o = {xasprintf("%s/%s", dir, name), -1};
    o.fd = open(o.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (o.fd < 0)
        die(ERR_ENV, "cannot write '%s': %s", o.path, strerror(errno));
    return o;
}

static void finish(struct out *o)
{
    if (close(o->fd))
        die(ERR_ENV, "cannot write '%s': %s", o->path, strerror(errno));
    free(o->path);
}

static void put_values(struct out *o, int item)
{
    static uint16_t narrow[VALUES];
    struct values v = values_of(item);
    for (int64_t left = count(v.part), n; left > 0; left -= n) {
        n = left < VALUES ? left : VALUES;
        for (int64_t i = 0; i < n; i++)
            narrow[i] = next_value(&v);
        put(o, narrow, (size_t)n * sizeof *narrow);
    }
}

/* ---- the published layout -------------------------------------------------------------------- */

static const char config[] =
    "{\"architectures\":[\"NemotronH_Nano_VL_V2\"],\"model_type\":\"NemotronH_Nano_VL_V2\","
    "\"force_image_size\":512,\"patch_size\":16,\"downsample_ratio\":0.5,\"ps_version\":\"v2\","
    "\"image_tag_type\":\"internvl\",\"vit_hidden_size\":1280,\"projector_hidden_size\":20480,"
    "\"use_thumbnail\":true,\"norm_mean\":[0.48145466,0.4578275,0.40821073],"
    "\"norm_std\":[0.26862954,0.26130258,0.27577711],\"img_context_token_id\":32760,"
    "\"torch_dtype\":\"bfloat16\",\"llm_config\":{\"architectures\":[\"NemotronHForCausalLM\"],"
    "\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"" PATTERN "\",\"num_hidden_layers\":27,"
    "\"hidden_size\":1280,\"intermediate_size\":5120,\"num_attention_heads\":10,\"num_key_value_heads\":2,"
    "\"head_dim\":128,\"mamba_num_heads\":32,\"mamba_head_dim\":80,\"ssm_state_size\":128,\"n_groups\":8,"
    "\"expand\":2,\"conv_kernel\":4,\"use_conv_bias\":true,\"use_bias\":false,\"mlp_bias\":false,"
    "\"attention_bias\":false,\"mamba_proj_bias\":false,\"mamba_hidden_act\":\"silu\","
    "\"mlp_hidden_act\":\"relu2\",\"chunk_size\":128,\"time_step_limit\":[0.0,Infinity],"
    "\"layer_norm_epsilon\":1e-05,\"residual_in_fp32\":false,\"tie_word_embeddings\":false,"
    "\"max_position_embeddings\":131072,\"vocab_size\":32768,\"bos_token_id\":32763,\"eos_token_id\":32764},"
    "\"vision_config\":{\"args\":{\"model\":\"vit_huge_patch16_224\",\"cpe_max_size\":512,"
    "\"cls_token_per_teacher\":true,\"register_multiple\":16},\"patch_size\":16,\"max_resolution\":512,"
    "\"preferred_resolution\":[512,512],\"version\":\"radio_v2.5-h\"}}";

static const char *const marks[] = {"<image>",      "<img>",        "</img>",       "<SPECIAL_11>",
                                    "<SPECIAL_12>", "<SPECIAL_13>", "<SPECIAL_14>", "<SPECIAL_15>"};

/* Spells plain token i: a byte in the spelling of byte-level BPE, then letters that no merge produces. */
static int spell(int i, char s[8])
{
    if (i < 256) {
        int other = 0;
        for (int k = 0; k < i; k++)
            other += !((k >= 33 && k <= 126) || (k >= 161 && k <= 172) || k >= 174);
        bool plain = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        return utf8_encode(plain ? (uint32_t)i : 256 + (uint32_t)other, s);
    }
    for (int k = 3, rest = i; k >= 0; k--, rest /= 26)
        s[k] = (char)('a' + rest % 26);
    return 4;
}

static void put_text(const char *dir, const char *name, const char *text, size_t len)
{
    struct out o = create(dir, name);
    put(&o, text, len);
    finish(&o);
}

static void write_tokenizer(const char *dir)
{
    struct buf b;
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, "{\"added_tokens\":[");
    for (int i = 0; i < VOCAB - MARKS; i++)
        buf_printf(&b, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", i ? "," : "", MARKS + i,
                   marks[i]);
    buf_puts(&b, "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
                 "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < MARKS; i++) {
        char s[8];
        int n = spell(i, s);
        buf_puts(&b, i ? "," : "");
        buf_put_json(&b, s, (size_t)n);
        buf_printf(&b, ":%d", i);
    }
    buf_puts(&b, "},\"merges\":[]}}");
    put_text(dir, "tokenizer.json", b.data, b.len);
    buf_free(&b);
}

static void write_weights(const char *dir)
{
    struct buf b;
    int64_t at = 0, shape[4];
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < n_items; i++) {
        int dims = shape_of(items[i].part, shape, false);
        buf_printf(&b, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[", items[i].name);
        for (int k = 0; k < dims; k++)
            buf_printf(&b, "%s%lld", k ? "," : "", (long long)shape[k]);
        int64_t end = at + 2 * count(items[i].part);
        buf_printf(&b, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)end);
        at = end;
    }
    buf_putc(&b, '}');
    while (b.len % 64 != 56) /* so that the data after the length is aligned */
        buf_putc(&b, ' ');
    struct out o = create(dir, "model.safetensors");
    uint64_t len = b.len;
    put(&o, &len, sizeof len);
    put(&o, b.data, b.len);
    buf_free(&b);
    for (int i = 0; i < n_items; i++)
        put_values(&o, i);
    finish(&o);
}

static void write_published(const char *dir)
{
    static const char preprocessor[] = "{\"max_num_tiles\":12,\"use_thumbnail\":true}",
                      generation[] = "{\"eos_token_id\":[32764]}";
    struct err e = ERR_INIT;
    if (dir_make(dir, &e))
        die(ERR_ENV, "%s", e.text);
    put_text(dir, "config.json", config, sizeof config - 1);
    put_text(dir, "preprocessor_config.json", preprocessor, sizeof preprocessor - 1);
    put_text(dir, "generation_config.json", generation, sizeof generation - 1);
    write_tokenizer(dir);
    write_weights(dir);
}

/* ---- llama.cpp's format ---------------------------------------------------------------------- */

enum peer_file { TEXT, TEXT_8BIT, EYES };

/* Writes v for each layer with this letter, and 0 for the others. */
static void of_layers(struct gguf *g, const char *name, char letter, uint32_t v)
{
    uint32_t all[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        all[i] = PATTERN[i] == letter ? v : 0;
    gguf_ints(g, name, all, LAYERS);
}

static void vocabulary(struct gguf *g)
{
    static uint32_t types[VOCAB];
    gguf_text(g, "tokenizer.ggml.model", "gpt2");
    gguf_text(g, "tokenizer.ggml.pre", "gpt-2");
    gguf_texts(g, "tokenizer.ggml.tokens", VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        char s[8];
        if (i < MARKS)
            gguf_item(g, s, (size_t)spell(i, s));
        else
            gguf_item(g, marks[i - MARKS], strlen(marks[i - MARKS]));
        types[i] = i < MARKS ? 1 : 3; /* normal, control */
    }
    gguf_ints(g, "tokenizer.ggml.token_type", types, VOCAB);
    gguf_texts(g, "tokenizer.ggml.merges", 1);
    gguf_item(g, "a b", 3);
    gguf_int(g, "tokenizer.ggml.bos_token_id", MARKS + 3);
    gguf_int(g, "tokenizer.ggml.eos_token_id", MARKS + 4);
}

static void text_keys(struct gguf *g, bool small)
{
    gguf_text(g, "general.architecture", "nemotron_h");
    gguf_int(g, "general.file_type", small ? 7 : 32); /* mostly Q8_0, bf16 */
    gguf_int(g, "nemotron_h.block_count", LAYERS);
    gguf_int(g, "nemotron_h.context_length", 131072);
    gguf_int(g, "nemotron_h.embedding_length", HIDDEN);
    gguf_int(g, "nemotron_h.vocab_size", VOCAB);
    of_layers(g, "nemotron_h.feed_forward_length", '-', MLP);
    gguf_int(g, "nemotron_h.attention.head_count", Q / 128);
    of_layers(g, "nemotron_h.attention.head_count_kv", '*', KV / 128);
    gguf_int(g, "nemotron_h.attention.key_length", 128);
    gguf_int(g, "nemotron_h.attention.value_length", 128);
    gguf_float(g, "nemotron_h.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_float(g, "nemotron_h.attention.layer_norm_epsilon", 1e-5f);
    gguf_int(g, "nemotron_h.ssm.conv_kernel", 4);
    gguf_int(g, "nemotron_h.ssm.inner_size", INNER);
    gguf_int(g, "nemotron_h.ssm.state_size", 128);
    gguf_int(g, "nemotron_h.ssm.time_step_rank", HEADS);
    gguf_int(g, "nemotron_h.ssm.group_count", GROUPS);
    gguf_int(g, "nemotron_h.rope.dimension_count", 128);
    vocabulary(g);
}

static void eyes_keys(struct gguf *g)
{
    gguf_text(g, "general.architecture", "clip");
    gguf_int(g, "general.file_type", 32);
    gguf_flag(g, "clip.has_vision_encoder");
    gguf_flag(g, "clip.use_gelu");
    gguf_text(g, "clip.projector_type", "nemotron_v2_vl");
    gguf_int(g, "clip.vision.image_size", TILE);
    gguf_int(g, "clip.vision.patch_size", 16);
    gguf_int(g, "clip.vision.embedding_length", WIDTH);
    gguf_int(g, "clip.vision.feed_forward_length", VIT_MLP);
    gguf_int(g, "clip.vision.projection_dim", HIDDEN);
    gguf_int(g, "clip.vision.block_count", BLOCKS);
    gguf_int(g, "clip.vision.attention.head_count", 16);
    gguf_float(g, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
    gguf_int(g, "clip.vision.projector.scale_factor", 2);
    gguf_floats(g, "clip.vision.image_mean", (const float[]){0.48145466f, 0.4578275f, 0.40821073f}, 3);
    gguf_floats(g, "clip.vision.image_std", (const float[]){0.26862954f, 0.26130258f, 0.27577711f}, 3);
}

static bool is_in(int item, enum peer_file f)
{
    return items[item].eyes == (f == EYES);
}

static enum ggml_type type_of(const struct part *p, enum peer_file f)
{
    return p->form != MATRIX ? GGML_F32 : f == TEXT_8BIT ? GGML_Q8_0 : GGML_BF16;
}

static void put_peer_values(struct out *o, int item, enum ggml_type type)
{
    static float wide[VALUES];
    static uint16_t narrow[VALUES];
    static struct gguf_q8 blocks[VALUES / GGUF_BLOCK];
    static const char zeros[GGUF_ALIGN];
    const void *const data[] = {[GGML_F32] = wide, [GGML_Q8_0] = blocks, [GGML_BF16] = narrow};
    struct values v = values_of(item);
    for (int64_t left = count(v.part), n; left > 0; left -= n) {
        n = left < VALUES ? left : VALUES;
        for (int64_t i = 0; i < n; i++) {
            narrow[i] = next_value(&v);
            wide[i] = bf16_to_f32(narrow[i]);
            if (v.part->form == DECAY)
                wide[i] = -expf(wide[i]);
        }
        for (int64_t i = 0; type == GGML_Q8_0 && i < n; i += GGUF_BLOCK)
            gguf_make_q8(wide + i, &blocks[i / GGUF_BLOCK]);
        put(o, data[type], gguf_bytes(type, (uint64_t)n));
    }
    put(o, zeros, -gguf_bytes(type, (uint64_t)count(v.part)) % GGUF_ALIGN);
}

static void write_peer(const char *dir, const char *name, enum peer_file f)
{
    struct gguf g;
    struct buf head;
    int64_t shape[4];
    gguf_init(&g);
    if (f == EYES)
        eyes_keys(&g);
    else
        text_keys(&g, f == TEXT_8BIT);
    for (int i = 0; i < n_items; i++)
        if (is_in(i, f)) {
            int dims = shape_of(items[i].part, shape, true);
            gguf_tensor(&g, items[i].peer, type_of(items[i].part, f), shape, dims);
        }
    gguf_head(&g, &head);
    gguf_free(&g);
    struct out o = create(dir, name);
    put(&o, head.data, head.len);
    buf_free(&head);
    for (int i = 0; i < n_items; i++)
        if (is_in(i, f))
            put_peer_values(&o, i, type_of(items[i].part, f));
    finish(&o);
}

/* ---- main ------------------------------------------------------------------------------------ */

static void write_picture(const char *dir)
{
    static uint8_t rgb[TILE * TILE * 3];
    static const char head[] = "P6\n512 512\n255\n";
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof rgb; i++) {
        state = state * 1664525 + 1013904223;
        rgb[i] = (uint8_t)(state >> 24);
    }
    struct out o = create(dir, "tile.ppm");
    put(&o, head, sizeof head - 1);
    put(&o, rgb, sizeof rgb);
    finish(&o);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "peer_model: say which folder to write\n");
        return ERR_USAGE;
    }
    char *model = xasprintf("%s/model", argv[1]);
    list_tensors();
    write_published(model);
    write_peer(argv[1], "text.gguf", TEXT);
    write_peer(argv[1], "text-8bit.gguf", TEXT_8BIT);
    write_peer(argv[1], "eyes.gguf", EYES);
    write_picture(argv[1]);
    int64_t text = 0, eyes = 0;
    for (int i = 0; i < n_items; i++)
        *(items[i].eyes ? &eyes : &text) += count(items[i].part);
    printf("%lld parameters of text, %lld of the tower and projector\n", (long long)text, (long long)eyes);
    free(model);
    return 0;
}
