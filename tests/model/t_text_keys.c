/* t_text_keys.c - tests of GGUF files of the text models Qwen2 and Qwen3: configurations read from keys,
 * and refusals. */
#include "check.h"
#include "gguf.h"

#include "checkpoint/gguf_model.h"
#include "model/config.h"

#include <stdlib.h>
#include <string.h>

/* A key to add to the file, or to omit (kind 0). */
struct key {
    const char *name;
    char kind; /* i: whole number, f: number, t: text, n: false */
    double value;
    const char *text;
};

static void put(struct gguf *g, const struct key *k)
{
    if (k->kind == 'i')
        gguf_int(g, k->name, (uint32_t)k->value);
    else if (k->kind == 'f')
        gguf_float(g, k->name, (float)k->value);
    else if (k->kind == 't')
        gguf_text(g, k->name, k->text);
    else if (k->kind == 'n')
        gguf_false(g, k->name);
}

/* The keys of Qwen2.5-Coder-0.5B-Instruct and of Qwen3-0.6B as written by llama.cpp's converter. */
static const struct key keys2[] = {
    {"general.architecture", 't', 0, "qwen2"},
    {"qwen2.block_count", 'i', 24, NULL},
    {"qwen2.context_length", 'i', 32768, NULL},
    {"qwen2.embedding_length", 'i', 896, NULL},
    {"qwen2.feed_forward_length", 'i', 4864, NULL},
    {"qwen2.attention.head_count", 'i', 14, NULL},
    {"qwen2.attention.head_count_kv", 'i', 2, NULL},
    {"qwen2.rope.freq_base", 'f', 1e6, NULL},
    {"qwen2.attention.layer_norm_rms_epsilon", 'f', 1e-6, NULL},
    {"tokenizer.ggml.eos_token_id", 'i', 151645, NULL},
};
static const struct key keys3[] = {
    {"general.architecture", 't', 0, "qwen3"},
    {"qwen3.block_count", 'i', 28, NULL},
    {"qwen3.context_length", 'i', 40960, NULL},
    {"qwen3.embedding_length", 'i', 1024, NULL},
    {"qwen3.feed_forward_length", 'i', 3072, NULL},
    {"qwen3.attention.head_count", 'i', 16, NULL},
    {"qwen3.attention.head_count_kv", 'i', 8, NULL},
    {"qwen3.rope.freq_base", 'f', 1e6, NULL},
    {"qwen3.attention.layer_norm_rms_epsilon", 'f', 1e-6, NULL},
    {"qwen3.attention.key_length", 'i', 128, NULL},
    {"qwen3.attention.value_length", 'i', 128, NULL},
    {"tokenizer.ggml.eos_token_id", 'i', 151645, NULL},
};
enum { KEYS2 = sizeof keys2 / sizeof *keys2, KEYS3 = sizeof keys3 / sizeof *keys3 };

/* Reads a file with these keys, one of them changed or added, and an embedding of 151,936 rows.  Only the
 * file's head is parsed, so the embedding has no data. */
static int read_keys(const struct key *keys, int n, const struct key *change, bool head,
                     struct model_config *c, struct err *e)
{
    struct gguf g;
    struct buf out;
    char *config = NULL, *preprocessor = NULL;
    bool put_it = change && change->kind;
    gguf_init(&g);
    for (int i = 0; i < n; i++)
        if (!change || strcmp(keys[i].name, change->name) != 0)
            put(&g, &keys[i]);
        else if (put_it)
            put(&g, change), put_it = false;
    if (put_it)
        put(&g, change);
    const int64_t shape[2] = {151936, 1};
    gguf_tensor(&g, "token_embd.weight", GGML_F16, shape, 2);
    if (head)
        gguf_tensor(&g, "output.weight", GGML_F16, shape, 2);
    gguf_head(&g, &out);
    size_t len = out.len + (size_t)g.at;
    char *whole = xcalloc(len, 1);
    memcpy(whole, out.data, out.len);
    struct gguf_file *f = gguf_parse("text.gguf", whole, len, e);
    int rc = f ? gguf_config(f, NULL, &config, &preprocessor, e) : -1;
    assert_true(!f || gguf_is_text_model(f) || rc);
    if (rc == 0)
        rc = config_parse(c, &(struct config_text){.config = config}, e);
    assert_null(preprocessor);
    gguf_close(f);
    free(config);
    free(whole);
    buf_free(&out);
    gguf_free(&g);
    return rc;
}

static void t_read(void **state)
{
    struct model_config c;
    struct err e = ERR_INIT;
    if (read_keys(keys2, KEYS2, NULL, true, &c, &e))
        fail_msg("%s", e.text);
    assert_true(c.family == FAMILY_QWEN25VL && !c.vision && !c.lm.tied && c.lm.vocab == 151936);
    assert_true(c.lm.layers == 48 && c.lm.hidden == 896 && c.lm.mlp[1] == 4864 && c.lm.head_dim == 64);
    assert_true(c.lm.q_heads == 14 && c.lm.kv_heads == 2 && c.lm.max_tokens == 32768 && c.lm.eps == 1e-6f);
    assert_true(c.lm.rope.theta == 1e6f && c.lm.rope.dims == 64 && c.n_eos == 1 && c.eos[0] == 151645);
    if (read_keys(keys3, KEYS3, NULL, false, &c, &e))
        fail_msg("%s", e.text);
    assert_true(c.family == FAMILY_QWEN3VL && !c.vision && c.lm.tied);
    assert_true(c.lm.layers == 56 && c.lm.hidden == 1024 && c.lm.head_dim == 128 && c.lm.q_heads == 16);
}

/* Keys with values that are the default of the computation. */
static void t_harmless(void **state)
{
    static const struct key more[] = {
        {"qwen2.rope.scaling.type", 't', 0, "none"},   {"qwen2.rope.scaling.factor", 'f', 1, NULL},
        {"qwen2.pooling_type", 'i', 0, NULL},          {"qwen2.attention.sliding_window", 'i', 0, NULL},
        {"qwen2.rope.dimension_count", 'i', 64, NULL}, {"qwen2.attention.key_length", 'i', 64, NULL},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        struct model_config c;
        struct err e = ERR_INIT;
        if (read_keys(keys2, KEYS2, &more[i], true, &c, &e))
            fail_msg("%s: %s", more[i].name, e.text);
        assert_true(c.lm.head_dim == 64 && c.lm.rope.dims == 64);
    }
}

static void t_refused(void **state)
{
    static const struct {
        struct key key;
        const char *says;
    } wrong[] = {
        {{"general.architecture", 't', 0, "qwen2moe"}, "architecture 'qwen2moe' is not implemented"},
        {{"qwen2.attention.sliding_window", 'i', 4096, NULL}, "'qwen2.attention.sliding_window' is 4096"},
        {{"qwen2.attention.causal", 'n', 0, NULL}, "'qwen2.attention.causal' is 0: it attends in both"},
        {{"qwen2.pooling_type", 'i', 3, NULL}, "'qwen2.pooling_type' is 3: it computes embeddings"},
        {{"qwen2.rope.scale_linear", 'f', 2, NULL}, "'qwen2.rope.scaling.factor' is 2"},
        {{"qwen2.rope.scaling.factor", 'f', 4, NULL}, "'qwen2.rope.scaling.factor' is 4"},
        {{"qwen2.rope.scaling.type", 't', 0, "longrope"}, "'qwen2.rope.scaling.type' is 'longrope'"},
        {{"qwen2.rope.freq_base", 0, 0, NULL}, "'qwen2.rope.freq_base' is missing"},
        {{"qwen2.attention.head_count", 0, 0, NULL}, "'qwen2.attention.head_count' is missing"},
        {{"qwen2.attention.head_count", 'i', 0, NULL}, "'num_attention_heads'"},
        {{"qwen2.attention.head_count", 'i', 13, NULL}, "'head_dim'"},
        {{"qwen2.rope.dimension_count", 'i', 32, NULL}, "'partial_rotary_factor'"},
        {{"qwen2.attention.layer_norm_rms_epsilon", 0, 0, NULL}, "layer_norm_rms_epsilon' is missing"},
        {{"qwen2.block_count", 'i', 100000, NULL}, "'num_hidden_layers'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct model_config c;
        struct err e = ERR_INIT;
        if (read_keys(keys2, KEYS2, &wrong[i].key, true, &c, &e) == 0)
            fail_msg("%s is accepted", wrong[i].says);
        if (!strstr(e.text, wrong[i].says))
            fail_msg("'%s' does not say: %s", e.text, wrong[i].says);
    }
}

static void t_names(void **state)
{
    char name[256];
    gguf_spelling("model.language_model.layers.7.post_attention_layernorm.weight", true, name);
    assert_string_equal(name, "blk.7.ffn_norm.weight");
    gguf_spelling("model.language_model.layers.7.post_attention_layernorm.weight", false, name);
    assert_string_equal(name, "blk.7.post_attention_norm.weight");
    gguf_spelling("model.language_model.layers.0.self_attn.q_proj.bias", true, name);
    assert_string_equal(name, "blk.0.attn_q.bias");
    gguf_published("blk.3.post_attention_norm.weight", true, 24, name);
    assert_string_equal(name, "blk.3.post_attention_norm.weight");
}

static const struct CMUnitTest tests[] = {
    CLAIM("the keys that llama.cpp's converter writes are sufficient", t_read),
    CLAIM("keys that change nothing are accepted", t_harmless),
    CLAIM("a key that changes the computation is refused with its value and a remedy", t_refused),
    CLAIM("tensors are named as the file names them", t_names),
};

CHECK_MAIN()
