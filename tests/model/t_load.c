/* t_load.c - tests of opening a model: one part of a valid directory is damaged at a time, and the error
 * must name it. */
#include "check.h"
#include "tiny_model.h"

#include "base/file.h"
#include "model/config.h"
#include "session/generate.h"

#include <math.h>
#include <unistd.h>

#define LAYER "language_model.backbone.layers."
#define VIT   "vision_model.radio_model.model."

static struct tiny good(void)
{
    struct tiny t;
    tiny_init(&t, 1);
    return t;
}

/* Opens the directory as written, expects an error with both texts, and removes the directory. */
static void refused_in(struct tiny *t, enum weights_in where, const char *naming, const char *also)
{
    struct err e = ERR_INIT;
    if (!t->dir[0])
        tiny_write(t);
    struct engine_options o = {.dir = t->dir, .isa = "ref", .threads = 1, .weights_in = where};
    struct engine *g = engine_open(&o, &e);
    if (g || !strstr(e.text, naming) || !strstr(e.text, also))
        printf("expected %s ... %s; got '%s'\n", naming, also, g ? "an engine" : e.text);
    assert_null(g);
    assert_int_equal(e.kind, ERR_MODEL);
    check_has(e.text, naming, also, t->dir);
    tiny_free(t);
}

static void refused(struct tiny *t, const char *naming, const char *also)
{
    refused_in(t, WEIGHTS_IN_RAM, naming, also);
}

static void refused_config(const char *from, const char *to, const char *naming)
{
    struct tiny t = good();
    tiny_edit(&t.config, from, to);
    refused(&t, "config.json", naming);
}

/* ---- config ---------------------------------------------------------------------------------- */

static void t_config(void **state)
{
    refused_config("M-*-M-", "M-X-M-", "'X' at layer 2");
    refused_config("M-*-M-", "M-*-M", "5 letters");
    refused_config("M-*-M-", "", "hybrid_override_pattern");
    refused_config("\"hidden_size\":40,", "", "'hidden_size' is missing");
    refused_config("\"hidden_size\":40", "\"hidden_size\":\"40\\u0000\"", "config.json");
    refused_config("\"hidden_size\":40", "\"hidden_size\":40.5", "'hidden_size'");
    refused_config("\"hidden_size\":40", "\"hidden_size\":-40", "'hidden_size'");
    refused_config("\"hidden_size\":40", "\"hidden_size\":1e30", "'hidden_size'");
    refused_config("\"hidden_size\":40", "\"hidden_size\":[40]", "'hidden_size'");
    refused_config("\"hidden_size\":40", "\"hidden_size\":40,\"hidden_size\":40", "duplicate");
    refused_config("\"intermediate_size\":56", "\"intermediate_size\":[56,57]",
                   "'intermediate_size' has 2 entries for 3");
    refused_config("\"intermediate_size\":56", "\"intermediate_size\":0", "layer 1");
    refused_config("\"num_key_value_heads\":2", "\"num_key_value_heads\":3", "4 query heads");
    refused_config("\"n_groups\":2", "\"n_groups\":4", "6 heads cannot share 4 groups");
    refused_config("\"mlp_hidden_act\":\"relu2\"", "\"mlp_hidden_act\":\"silu\"", "only 'relu2'");
    refused_config("\"attention_bias\":false", "\"attention_bias\":true", "'attention_bias' is true");
    refused_config("\"attention_bias\":false", "\"attention_bias\":7", "'attention_bias' is neither");
    refused_config("\"residual_in_fp32\":false", "\"residual_in_fp32\":true", "'residual_in_fp32'");
    refused_config("\"model_type\":\"nemotron_h\"", "\"model_type\":\"llama\"", "only 'nemotron_h'");
    refused_config("\"hybrid_override_pattern\":\"M-*-M-\"", "\"layers_block_type\":[\"mamba\",\"moe\"]",
                   "'num_hidden_layers' is 6");
    refused_config("\"hybrid_override_pattern\":\"M-*-M-\"", "\"layers_block_type\":[\"mamba\",7]",
                   "'?' at layer 1");
    refused_config("[0.0,Infinity]", "[1,0]", "'time_step_limit'");
    refused_config("[0.0,Infinity]", "[0.0,\"many\"]", "'time_step_limit'");
    refused_config("\"ps_version\":\"v2\"", "\"ps_version\":\"v1\"", "only 'v2'");
    refused_config("\"downsample_ratio\":0.5", "\"downsample_ratio\":0.25", "'downsample_ratio'");
    refused_config("\"patch_size\":16", "\"patch_size\":14", "'patch_size'");
    refused_config("\"force_image_size\":64", "\"force_image_size\":72", "not a multiple of 32");
    refused_config("\"norm_std\":[0.27,0.26,0.28]", "\"norm_std\":[0.27,0,0.28]", "'norm_std'");
    refused_config("\"norm_mean\":[0.48,0.46,0.41]", "\"norm_mean\":[0.48,0.46]", "'norm_mean' is not three");
    refused_config("\"model_norm\":false", "\"model_norm\":true", "model_norm");
    refused_config("\"model_norm\":false", "\"min_num_patches\":256,\"max_num_patches\":128",
                   "'max_num_patches' is 128, less than");
    refused_config("\"hidden_size\":24,", "", "'vit_tiny_patch16', whose sizes are not known");
    refused_config("\"num_attention_heads\":2", "\"num_attention_heads\":5", "24 columns");
    refused_config("\"llm_config\"", "\"other_config\"", "'llm_config' is missing");
    refused_config("{\"architectures\"", "{{\"architectures\"", "line 1");
    struct tiny t = good();
    free(t.config);
    t.config = NULL;
    refused(&t, "config.json", "No such file");
    t = good();
    tiny_edit(&t.preprocessor, "6", "0");
    refused(&t, "preprocessor_config.json", "'max_num_tiles'");
    t = good();
    tiny_edit(&t.generation, "[12,2]", "[12,\"x\"]");
    refused(&t, "generation_config.json", "'eos_token_id'");
    t = good();
    tiny_edit(&t.generation, "[12,2]", "[300]");
    refused(&t, "'eos_token_id' 300", "288");
}

static void t_config_values(void **state)
{
    struct tiny t = good();
    struct model_config c;
    struct err e = ERR_INIT;
    struct config_text text = {.config = t.config};
    assert_int_equal(config_parse(&c, &text, &e), 0);
    assert_int_equal(c.max_tiles, 12);
    assert_int_equal(c.n_eos, 1); /* without a generation config: the model's own */
    assert_int_equal(c.eos[0], 12);
    assert_true(c.lm.ssm.dt_min == 0 && isinf(c.lm.ssm.dt_max));
    assert_int_equal(config_proj_rows(&c.lm), 166);
    tiny_edit(&t.config, "\"chunk_size\":", "\"no_chunk_size\":");
    tiny_edit(&t.config, "\"layer_norm_epsilon\":", "\"no_epsilon\":");
    tiny_edit(&t.config, "\"max_position_embeddings\":", "\"no_length\":");
    tiny_edit(&t.config, "\"num_key_value_heads\":", "\"no_kv_heads\":");
    tiny_edit(&t.config, "\"hybrid_override_pattern\":\"M-*-M-\"",
              "\"n_routed_experts\":8,\"layers_block_type\":[\"linear_attention\",\"mlp\",\"full_attention\","
              "\"mlp\","
              "\"mamba\",\"mlp\"]");
    tiny_edit(&t.config, "\"hidden_size\":24,", "");
    tiny_edit(&t.config, "\"num_hidden_layers\":2,\"num_attention_heads\":2,\"intermediate_size\":44,", "");
    tiny_edit(&t.config, "vit_tiny_patch16", "vit_huge_patch16_224");
    tiny_edit(&t.config, "\"norm_mean\":[0.48,0.46,0.41],\"norm_std\":[0.27,0.26,0.28],", "");
    text = (struct config_text){
        .config = t.config,
        .preprocessor = "{\"image_mean\":[0,0.5,1],\"image_std\":[1,2,3]}",
        .generation = "{\"eos_token_id\":2,\"x\":\"\\\"Infinity\\\" NaN\",\"y\":-Infinity,\"z\":NaN}"};
    if (config_parse(&c, &text, &e))
        fail_msg("%s", e.text);
    assert_string_equal(c.lm.pattern, "M-*-M-");
    assert_int_equal(c.vit.hidden, 1280);
    assert_int_equal(c.vit.blocks, 32);
    assert_int_equal(c.vit.heads, 16);
    assert_int_equal(c.vit.mlp, 5120);
    assert_true(c.mean[1] == 0.5f && c.std[2] == 3);
    assert_int_equal(c.eos[0], 2);
    assert_int_equal(c.lm.ssm.chunk, 128);
    assert_int_equal(c.lm.max_tokens, 131072);
    assert_int_equal(c.lm.kv_heads, c.lm.q_heads);
    assert_true(c.lm.eps == 1e-5f && c.lm.conv_bias && !c.lm.tied);
    text.processor = "{\"image_processor\":{\"max_num_tiles\":7,\"norm_mean\":[3,2,1],\"norm_std\":[1,1,1]}}";
    assert_int_equal(config_parse(&c, &text, &e), 0);
    assert_true(c.max_tiles == 12 && c.mean[1] == 0.5f); /* a separate file takes precedence */
    text.preprocessor = NULL;
    assert_int_equal(config_parse(&c, &text, &e), 0);
    assert_true(c.max_tiles == 7 && c.mean[0] == 3);
    tiny_edit(&t.config, "\"args\"", "\"min_num_patches\":256,\"max_num_patches\":1024,\"args\"");
    text.config = t.config;
    assert_int_equal(config_parse(&c, &text, &e), 0);
    assert_true(c.vit.min_patches == 256 && c.vit.max_patches == 1024);
    tiny_free(&t);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void spoil_shape(const char *name, int dim, int64_t size, const char *found, const char *expected)
{
    struct tiny t = good();
    struct tiny_tensor *x = tiny_find(&t, name);
    int64_t old = x->shape[dim];
    x->shape[dim] = size;
    x->bytes = x->bytes / (size_t)old * (size_t)size;
    x->data = realloc(x->data, x->bytes);
    memset(x->data, 0, x->bytes);
    char *also = xasprintf("%s; the config requires %s", found, expected);
    refused(&t, name, also);
    free(also);
}

static void t_tensors(void **state)
{
    spoil_shape(LAYER "0.mixer.in_proj.weight", 0, 165, "[165, 40]", "[166, 40]");
    spoil_shape(LAYER "0.mixer.conv1d.weight", 2, 3, "[112, 1, 3]", "[112, 1, 4]");
    spoil_shape(LAYER "2.mixer.k_proj.weight", 0, 48, "[48, 40]", "[24, 40]");
    spoil_shape(LAYER "4.mixer.A_log", 0, 5, "[5]", "[6]");
    spoil_shape("language_model.lm_head.weight", 0, 287, "[287, 40]", "[288, 40]");
    spoil_shape(VIT "blocks.1.mlp.fc2.weight", 1, 45, "[24, 45]", "[24, 44]");
    spoil_shape("mlp1.1.weight", 1, 95, "[36, 95]", "[36, 96]");
    static const char *const needed[] = {
        "language_model.backbone.embeddings.weight",
        LAYER "3.norm.weight",
        LAYER "0.mixer.dt_bias",
        LAYER "5.mixer.down_proj.weight",
        "language_model.lm_head.weight",
        "language_model.backbone.norm_f.weight",
        VIT "patch_generator.cls_token.token",
        VIT "patch_generator.pos_embed",
        VIT "blocks.0.attn.qkv.bias",
        "mlp1.3.weight",
    };
    struct tiny t;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        t = good();
        tiny_drop(&t, needed[i]);
        refused(&t, needed[i], "is missing");
    }
    t = good();
    tiny_find(&t, "mlp1.0.weight")->type = "I32";
    tiny_find(&t, "mlp1.0.weight")->shape[0] = 48;
    refused(&t, "'mlp1.0.weight'", "i32; expected bf16");
    t = good();
    tiny_find(&t, LAYER "1.mixer.up_proj.weight")->type = "F8_E4M3";
    tiny_find(&t, LAYER "1.mixer.up_proj.weight")->shape[1] = 80;
    refused(&t, LAYER "1.mixer.up_proj.weight", "f8e4m3 without a matching 'weight_scale'");
    t = good();
    tiny_find(&t, VIT "patch_generator.pos_embed")->shape[1] = 32;
    tiny_find(&t, VIT "patch_generator.pos_embed")->shape[2] = 48;
    refused(&t, "pos_embed", "[1, a square, 24]");
    t = good();
    tiny_edit(&t.config, "\"vocab_size\":288", "\"vocab_size\":289");
    refused(&t, "embeddings.weight", "289 rows");
}

static void t_extra(void **state)
{
    struct tiny t = good();
    tiny_add(&t, LAYER "0.mixer.gate.weight", 0, 1, (const int64_t[]){3, 0});
    refused(&t, LAYER "0.mixer.gate.weight", "is not part of this model");
    t = good();
    tiny_add(&t, VIT "blocks.0.ls1.gamma", 1, 0.1, (const int64_t[]){24, 0});
    refused(&t, "ls1", "is not part of this model");
    t = good(); /* a tensor known to be unused, and a scale of one */
    tiny_add(&t, VIT "blocks.0.ls1.gamma", 1, 0, (const int64_t[]){24, 0});
    tiny_add(&t, "vision_model.radio_model.summary_idxs", 1, 0, (const int64_t[]){4, 0});
    tiny_add(&t, "mtp.layers.0.norm.weight", 1, 0, (const int64_t[]){4, 0});
    tiny_write(&t);
    engine_close(tiny_open(&t, "ref", 1, false));
    tiny_free(&t);
    t = good();
    tiny_add(&t, "what.is.this", 1, 0, (const int64_t[]){4, 0});
    refused(&t, "what.is.this", "is not part of this model");
}

/* ---- NaN and infinity ------------------------------------------------------------------------- */

static void spoil(const char *name, uint16_t value, size_t at)
{
    struct tiny t = good();
    struct tiny_tensor *x = tiny_find(&t, name);
    assert_true(2 * at < x->bytes);
    memcpy(x->data + 2 * at, &value, sizeof value);
    refused(&t, name, "1 values that are NaN or infinite");
}

/* Mapped weights are checked partially when the model is opened. */
static void spoil_mapped(const char *name)
{
    struct tiny t = good();
    struct tiny_tensor *x = tiny_find(&t, name);
    assert_true(2 * 1002 < x->bytes);
    memcpy((char *)x->data + 2 * 1001, &(uint16_t){0x7fc0}, 2);
    refused_in(&t, WEIGHTS_IN_MMAP, name, "1 values that are NaN or infinite");
}

/* If finite weights overflow during inference, the run ends with one line. */
static void t_overflow(void **state)
{
    struct tiny t = good();
    struct err e = ERR_INIT;
    struct generated out;
    struct tiny_tensor *x = tiny_find(&t, "language_model.lm_head.weight");
    memset(x->data, 0x7f, x->bytes); /* 3.4e38 */
    tiny_write(&t);
    struct engine *g = tiny_open(&t, "ref", 1, false);
    struct session *s = session_new(g, 1);
    tiny_append_text(s, "<s>Once upon a time");
    assert_int_equal(generate(s, &(struct generation){.sampling = {0, 1, 5}}, &out, &e), -1);
    assert_int_equal(e.kind, ERR_MODEL);
    assert_non_null(strstr(e.text, "the model's output is not a number: a weight is NaN or infinite"));
    generated_free(&out);
    session_free(s);
    engine_close(g);
    tiny_free(&t);
}

static void t_finite(void **state)
{
    spoil(LAYER "0.norm.weight", 0x7fc0, 3);
    spoil(LAYER "0.mixer.A_log", 0xff80, 0);
    spoil(LAYER "0.mixer.conv1d.weight", 0x7f80, 7);
    spoil(LAYER "1.mixer.up_proj.weight", 0xffff, 1001);
    spoil("language_model.backbone.embeddings.weight", 0x7f81, 11519);
    spoil(VIT "blocks.1.attn.proj.bias", 0x7fc0, 23);
    spoil("mlp1.1.weight", 0x7fc0, 17);
    spoil_mapped(LAYER "1.mixer.up_proj.weight");
    spoil_mapped("language_model.backbone.embeddings.weight");
}

/* ---- directories saved by transformers 5 --------------------------------------------------------------- */

static void t_transformers(void **state)
{
    struct tiny t = good();
    tiny_add(&t, VIT "blocks.0.layer_scale1.lambda1", 1, 0, (const int64_t[]){24, 0});
    tiny_add(&t, VIT "blocks.1.layer_scale2.lambda1", 1, 0, (const int64_t[]){24, 0});
    tiny_edit(&t.config, "\"norm_mean\":[0.48,0.46,0.41],\"norm_std\":[0.27,0.26,0.28],", "");
    tiny_edit(&t.config, "\"vision_config\":{",
              "\"vision_config\":{\"norm_mean\":[0.5,0.25,0.125],"
              "\"norm_std\":[0.75,0.5,0.25],");
    tiny_write(&t);
    struct engine *g = tiny_open(&t, "ref", 1, false);
    const struct model_config *c = engine_config(g);
    assert_true(c->mean[0] == 0.5f && c->mean[1] == 0.25f && c->mean[2] == 0.125f);
    assert_true(c->std[0] == 0.75f && c->std[1] == 0.5f && c->std[2] == 0.25f);
    engine_close(g);
    tiny_free(&t);
    t = good();
    tiny_add(&t, VIT "blocks.0.layer_scale1.lambda1", 1, 0.1, (const int64_t[]){24, 0});
    refused(&t, "layer_scale1", "is not part of this model");
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Changes bytes of the weight file. */
static void patch(struct tiny *t, const char *from, const char *to, long cut)
{
    char *path = xasprintf("%s/model.safetensors", t->dir), *data;
    size_t len;
    assert_int_equal(file_read(path, 1 << 26, &data, &len, NULL), 0);
    if (from) {
        char *at = memmem(data, len, from, strlen(from));
        assert_non_null(at);
        assert_int_equal(strlen(from), strlen(to));
        memcpy(at, to, strlen(to));
    }
    assert_int_equal(file_write(path, data, (size_t)((long)len - cut), NULL), 0);
    free(data);
    free(path);
}

static void t_files(void **state)
{
    struct tiny t = good();
    tiny_write(&t);
    patch(&t, NULL, NULL, 1);
    refused(&t, "model.safetensors", "lies outside");
    t = good();
    tiny_write(&t);
    patch(&t, "\"shape\":[288,40]", "\"shape\":[288,41]", 0);
    refused(&t, "embeddings.weight", "bytes, but its shape needs");
    t = good();
    tiny_write(&t);
    patch(&t, "norm_f.weight", "norm_g.weight", 0);
    refused(&t, "norm_f.weight", "is missing");
    t = good();
    t.shards = 3;
    tiny_write(&t);
    char *path = xasprintf("%s/model-00002-of-00003.safetensors", t.dir);
    unlink(path);
    free(path);
    refused(&t, "model-00002-of-00003.safetensors", "No such file");
    t = good();
    tiny_edit(&t.tokenizer, "\"model\"", "\"Model\"");
    refused(&t, "tokenizer.json", "BPE");
    t = good();
    tiny_edit(&t.tokenizer, "\"id\":274", "\"id\":290");
    refused(&t, "ids up to 290", "288 rows");
    t = good();
    tiny_edit(&t.tokenizer, "<img>", "<imp>");
    refused(&t, "tokenizer", "<img>");
    t = good();
    tiny_edit(&t.tokenizer, "\"content\":\"<image>\"", "\"content\":\"<other>\"");
    tiny_edit(&t.tokenizer, "<SPECIAL_3>", "<image>");
    refused(&t, "'img_context_token_id' is 272", "'<image>' is 3");
    t = good();
    tiny_edit(&t.tokenizer, "\"content\":\"<image>\"", "\"content\":\"<other>\"");
    tiny_edit(&t.config, "\"img_context_token_id\":272,", "");
    refused(&t, "no 'img_context_token_id'", "no token '<image>'");
    t = good();
    free(t.tokenizer);
    t.tokenizer = NULL;
    refused(&t, "tokenizer.json", "No such file");
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = "/nonexistent"};
    assert_null(engine_open(&o, &e));
    assert_non_null(strstr(e.text, "/nonexistent"));
}

/* A header of odd length leads to unaligned bf16 data. */
static void t_unaligned(void **state)
{
    struct tiny t = good(), u = good();
    tiny_write(&t);
    struct tiny_tensor *x = tiny_find(&u, "vision_model.radio_model.input_conditioner.norm_mean");
    strcat(x->name, "0");
    tiny_write(&u);
    struct engine *a = tiny_open(&t, "ref", 1, false), *b = tiny_open(&u, "ref", 1, false);
    int32_t ids[] = {30, 60, 90};
    struct session *p = session_new(a, 1), *q = session_new(b, 1);
    assert_int_equal(session_append(p, ids, 3, NULL), 0);
    assert_int_equal(session_append(q, ids, 3, NULL), 0);
    assert_memory_equal(session_logits(p), session_logits(q), (size_t)engine_vocab(a) * sizeof(float));
    session_free(p);
    session_free(q);
    engine_close(a);
    engine_close(b);
    tiny_free(&t);
    tiny_free(&u);
}

static void t_flips(void **state)
{
    uint64_t rng = check_seed();
    struct tiny t = good();
    tiny_write(&t);
    char *path = xasprintf("%s/model.safetensors", t.dir), *data;
    size_t len, header = 0;
    assert_int_equal(file_read(path, 1 << 26, &data, &len, NULL), 0);
    memcpy(&header, data, 8);
    int opened = 0;
    for (int round = 0; round < 150; round++) {
        size_t at = (size_t)(check_random(&rng) * (double)(header + 8));
        char bit = (char)(1 << (int)(check_random(&rng) * 8));
        data[at] ^= bit;
        assert_int_equal(file_write(path, data, len, NULL), 0);
        struct err e = ERR_INIT;
        struct engine_options o = {.dir = t.dir, .isa = "ref", .threads = 1};
        struct engine *g = engine_open(&o, &e);
        assert_true(g || e.text[0]);
        opened += g != NULL;
        engine_close(g);
        data[at] ^= bit;
    }
    check_note("150 flipped bits in the header: %d without consequence", opened);
    free(data);
    free(path);
    tiny_free(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("every config value that is not supported is refused by its key", t_config),
    CLAIM("values that the config leaves out have the defaults of the family", t_config_values),
    CLAIM("a missing tensor, shape or type error gives the name, the found and the expected value",
          t_tensors),
    CLAIM("a NaN or an infinity in a weight is refused when the model is opened", t_finite),
    CLAIM("an output that is NaN ends the text with one line", t_overflow),
    CLAIM("a directory saved by transformers 5 opens, with its own image statistics", t_transformers),
    CLAIM("unused tensors are refused unless they are known to be unused", t_extra),
    CLAIM("damaged and missing files are refused by their name", t_files),
    CLAIM("unaligned weights give the same bits", t_unaligned),
    CLAIM("a flipped bit in the header causes at most an error", t_flips),
};

CHECK_MAIN()
