/* t_qwen_config.c - tests of config files of Qwen3.5, Qwen3-VL, Qwen2.5-VL, Qwen2 and Qwen3: values and
 * refusals.
 *
 * The texts have the keys of the published files of 0.8B and 35B-A3B, of Qwen3-VL-4B and Qwen2.5-VL-7B, and
 * of files saved by transformers 5.
 */
#include "check.h"

#include "model/config.h"

#include <stdlib.h>
#include <string.h>

/* 0.8B as published: layer rule and list, rope_parameters, an MTP layer without tensors. */
static const char dense[] =
    "{\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\","
    "\"image_token_id\":248056,\"video_token_id\":248057,\"vision_start_token_id\":248053,"
    "\"vision_end_token_id\":248054,\"tie_word_embeddings\":true,"
    "\"text_config\":{\"model_type\":\"qwen3_5_text\",\"hidden_size\":1024,\"intermediate_size\":3584,"
    "\"num_hidden_layers\":8,\"full_attention_interval\":4,"
    "\"layer_types\":[\"linear_attention\",\"linear_attention\",\"linear_attention\",\"full_attention\","
    "\"linear_attention\",\"linear_attention\",\"linear_attention\",\"full_attention\"],"
    "\"num_attention_heads\":8,\"num_key_value_heads\":2,\"head_dim\":256,\"attn_output_gate\":true,"
    "\"attention_bias\":false,\"linear_num_key_heads\":16,\"linear_num_value_heads\":16,"
    "\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,\"linear_conv_kernel_dim\":4,"
    "\"mamba_ssm_dtype\":\"float32\",\"mlp_only_layers\":[],\"mtp_num_hidden_layers\":1,"
    "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-06,\"vocab_size\":248320,\"eos_token_id\":248044,"
    "\"tie_word_embeddings\":true,\"max_position_embeddings\":262144,"
    "\"rope_parameters\":{\"mrope_interleaved\":true,\"mrope_section\":[11,11,10],"
    "\"rope_type\":\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}},"
    "\"vision_config\":{\"model_type\":\"qwen3_5\",\"depth\":12,\"hidden_size\":768,"
    "\"intermediate_size\":3072,\"num_heads\":12,\"out_hidden_size\":1024,\"patch_size\":16,"
    "\"temporal_patch_size\":2,\"spatial_merge_size\":2,\"in_channels\":3,"
    "\"num_position_embeddings\":2304,\"hidden_act\":\"gelu_pytorch_tanh\","
    "\"deepstack_visual_indexes\":[]}}";

/* 35B-A3B with the keys that transformers 5 writes: the list only, no output gate, rope type as "type". */
static const char moe[] =
    "{\"architectures\":[\"Qwen3_5MoeForConditionalGeneration\"],\"model_type\":\"qwen3_5_moe\","
    "\"image_token_id\":248056,\"vision_start_token_id\":248053,\"vision_end_token_id\":248054,"
    "\"text_config\":{\"model_type\":\"qwen3_5_moe_text\",\"hidden_size\":2048,\"num_hidden_layers\":4,"
    "\"layer_types\":[\"linear_attention\",\"linear_attention\",\"linear_attention\",\"full_attention\"],"
    "\"num_attention_heads\":16,\"num_key_value_heads\":2,\"head_dim\":256,"
    "\"linear_num_key_heads\":16,\"linear_num_value_heads\":32,\"linear_key_head_dim\":128,"
    "\"linear_value_head_dim\":128,\"linear_conv_kernel_dim\":4,\"num_experts\":256,"
    "\"num_experts_per_tok\":8,\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512,"
    "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-06,\"vocab_size\":248320,"
    "\"max_position_embeddings\":262144,\"rope_theta\":10000000,\"partial_rotary_factor\":0.25,"
    "\"rope_parameters\":{\"mrope_section\":[11,11,10],\"type\":\"default\"}},"
    "\"vision_config\":{\"model_type\":\"qwen3_5_moe_vision\",\"depth\":27,\"hidden_size\":1152,"
    "\"intermediate_size\":4304,\"num_heads\":16,\"out_hidden_size\":2048,\"patch_size\":16,"
    "\"temporal_patch_size\":2,\"spatial_merge_size\":2,\"num_position_embeddings\":2304,"
    "\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"axial\"}}}";

static const char pre[] =
    "{\"size\":{\"longest_edge\":16777216,\"shortest_edge\":65536},\"patch_size\":16,"
    "\"temporal_patch_size\":2,\"merge_size\":2,\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5],"
    "\"image_processor_type\":\"Qwen2VLImageProcessorFast\"}";

static const char vl3[] =
    "{\"architectures\":[\"Qwen3VLForConditionalGeneration\"],\"model_type\":\"qwen3_vl\","
    "\"image_token_id\":151655,\"video_token_id\":151656,\"vision_start_token_id\":151652,"
    "\"vision_end_token_id\":151653,\"tie_word_embeddings\":true,"
    "\"text_config\":{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":151643,"
    "\"dtype\":\"bfloat16\",\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
    "\"hidden_size\":2560,\"initializer_range\":0.02,\"intermediate_size\":9728,"
    "\"max_position_embeddings\":262144,\"model_type\":\"qwen3_vl_text\",\"num_attention_heads\":32,"
    "\"num_hidden_layers\":36,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,"
    "\"rope_scaling\":{\"mrope_interleaved\":true,\"mrope_section\":[24,20,20],\"rope_type\":\"default\"},"
    "\"rope_theta\":5000000,\"tie_word_embeddings\":true,\"use_cache\":true,\"vocab_size\":151936},"
    "\"vision_config\":{\"deepstack_visual_indexes\":[5,11,17],\"depth\":24,"
    "\"hidden_act\":\"gelu_pytorch_tanh\",\"hidden_size\":1024,\"in_channels\":3,"
    "\"intermediate_size\":4096,\"model_type\":\"qwen3_vl\",\"num_heads\":16,"
    "\"num_position_embeddings\":2304,\"out_hidden_size\":2560,\"patch_size\":16,"
    "\"spatial_merge_size\":2,\"temporal_patch_size\":2}}";

static const char vl25[] =
    "{\"architectures\":[\"Qwen2_5_VLForConditionalGeneration\"],\"attention_dropout\":0.0,"
    "\"bos_token_id\":151643,\"eos_token_id\":151645,\"vision_start_token_id\":151652,"
    "\"vision_end_token_id\":151653,\"vision_token_id\":151654,\"image_token_id\":151655,"
    "\"video_token_id\":151656,\"hidden_act\":\"silu\",\"hidden_size\":3584,\"initializer_range\":0.02,"
    "\"intermediate_size\":18944,\"max_position_embeddings\":128000,\"max_window_layers\":28,"
    "\"model_type\":\"qwen2_5_vl\",\"num_attention_heads\":28,\"num_hidden_layers\":28,"
    "\"num_key_value_heads\":4,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,\"sliding_window\":32768,"
    "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"use_cache\":true,"
    "\"use_sliding_window\":false,\"vision_config\":{\"depth\":32,\"hidden_act\":\"silu\","
    "\"hidden_size\":1280,\"intermediate_size\":3420,\"num_heads\":16,\"in_chans\":3,"
    "\"out_hidden_size\":3584,\"patch_size\":14,\"spatial_merge_size\":2,\"spatial_patch_size\":14,"
    "\"window_size\":112,\"fullatt_block_indexes\":[7,15,23,31],\"tokens_per_second\":2,"
    "\"temporal_patch_size\":2},"
    "\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[16,24,24]},\"vocab_size\":152064}";

/* Qwen2.5-0.5B-Instruct and Qwen3-0.6B as published. */
static const char text2[] =
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
    "\"eos_token_id\":151645,\"hidden_act\":\"silu\",\"hidden_size\":896,\"initializer_range\":0.02,"
    "\"intermediate_size\":4864,\"max_position_embeddings\":32768,\"max_window_layers\":21,"
    "\"model_type\":\"qwen2\",\"num_attention_heads\":14,\"num_hidden_layers\":24,"
    "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,\"sliding_window\":32768,"
    "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"use_cache\":true,"
    "\"use_sliding_window\":false,\"vocab_size\":151936}";

static const char text3[] =
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
    "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
    "\"hidden_size\":1024,\"initializer_range\":0.02,\"intermediate_size\":3072,"
    "\"max_position_embeddings\":40960,\"max_window_layers\":28,\"model_type\":\"qwen3\","
    "\"num_attention_heads\":16,\"num_hidden_layers\":28,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,"
    "\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,\"tie_word_embeddings\":true,"
    "\"torch_dtype\":\"bfloat16\",\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":151936}";

/* Returns a copy of `text` with its first `from` replaced; the caller frees it. */
static char *edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("'%s' is not in the text", from);
    return xasprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void t_dense(void **state)
{
    struct model_config c;
    struct err e = ERR_INIT;
    struct config_text t = {
        .config = dense, .preprocessor = pre, .generation = "{\"eos_token_id\":[248046,248044]}"};
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_int_equal(c.family, FAMILY_QWEN35);
    assert_string_equal(c.lm.pattern, "DSDSDSASDSDSDSAS");
    assert_int_equal(c.lm.layers, 16);
    assert_true(c.lm.mlp[1] == 3584 && c.lm.mlp[0] == 0 && c.lm.mlp[15] == 3584);
    assert_true(c.lm.q_heads == 8 && c.lm.kv_heads == 2 && c.lm.head_dim == 256);
    assert_true(c.lm.delta.key_heads == 16 && c.lm.delta.value_heads == 16 && c.lm.delta.key == 128 &&
                c.lm.delta.value == 128 && c.lm.delta.conv == 4);
    assert_true(c.lm.rope.dims == 64 && c.lm.rope.theta == 1e7f);
    assert_true(c.lm.rope.section[0] == 11 && c.lm.rope.section[1] == 11 && c.lm.rope.section[2] == 10);
    assert_true(c.lm.tied && c.lm.eps == 1e-6f && c.lm.vocab == 248320 && c.lm.max_tokens == 262144);
    assert_true(c.vision && c.vit.blocks == 12 && c.vit.heads == 12 && c.vit.mlp == 3072);
    assert_true(c.vit.patch == 16 && c.vit.frames == 2 && c.vit.merge == 2 && c.vit.table_side == 48);
    assert_true(c.vit.min_pixels == 65536 && c.vit.max_pixels == 16777216 && c.vit.projector == 3072);
    assert_true(c.mean[0] == 0.5f && c.std[2] == 0.5f);
    assert_true(c.image_token == 248056 && c.image_open == 248053 && c.image_close == 248054);
    assert_true(c.n_eos == 2 && c.eos[0] == 248046);
    t = (struct config_text){.config = dense}; /* stop token of the text model, published pixel limits */
    assert_int_equal(config_parse(&c, &t, &e), 0);
    assert_true(c.n_eos == 1 && c.eos[0] == 248044 && c.vit.max_pixels == 16777216);
    t.processor = "{\"image_processor\":{\"min_pixels\":3136,\"max_pixels\":1310720,\"patch_size\":16}}";
    assert_int_equal(config_parse(&c, &t, &e), 0);
    assert_true(c.vit.min_pixels == 3136 && c.vit.max_pixels == 1310720);
}

static void t_moe(void **state)
{
    struct model_config c;
    struct err e = ERR_INIT;
    struct config_text t = {.config = moe};
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_string_equal(c.lm.pattern, "DXDXDXAX");
    assert_true(c.lm.moe.route.experts == 256 && c.lm.moe.route.chosen == 8 && c.lm.moe.width == 512 &&
                c.lm.moe.shared == 512 && c.lm.moe.latent == 0);
    assert_true(c.lm.moe.route.softmax && c.lm.moe.route.normalise && c.lm.moe.route.scale == 1);
    assert_true(c.lm.rope.theta == 1e7f && c.lm.rope.dims == 64);
    assert_true(!c.lm.tied && c.lm.delta.value_heads == 32);
}

static void t_vl3(void **state)
{
    struct model_config c;
    struct err e = ERR_INIT;
    struct config_text t = {.config = vl3, .preprocessor = pre};
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_int_equal(c.family, FAMILY_QWEN3VL);
    assert_true(c.lm.layers == 72 && !strncmp(c.lm.pattern, "RSRSRS", 6) && strlen(c.lm.pattern) == 72);
    assert_true(c.lm.q_heads == 32 && c.lm.kv_heads == 8 && c.lm.head_dim == 128 && c.lm.tied);
    assert_true(c.lm.rope.dims == 128 && c.lm.rope.theta == 5e6f && !c.lm.rope.sectioned);
    assert_true(c.lm.rope.section[0] == 24 && c.lm.rope.section[1] == 20 && c.lm.rope.section[2] == 20);
    assert_true(c.vit.n_deepstack == 3 && c.vit.deepstack[0] == 5 && c.vit.deepstack[1] == 11 &&
                c.vit.deepstack[2] == 17);
    assert_true(config_image_cols(&c) == 4 * 2560 && c.vit.table_side == 48 && !c.vit.window);
    assert_true(c.image_token == 151655 && c.eos[0] == 151645 && c.mean[0] == 0.5f);
}

static void t_vl25(void **state)
{
    struct model_config c;
    struct err e = ERR_INIT;
    struct config_text t = {.config = vl25};
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_int_equal(c.family, FAMILY_QWEN25VL);
    assert_true(c.lm.layers == 56 && !strncmp(c.lm.pattern, "RSRSRS", 6));
    assert_true(c.lm.q_heads == 28 && c.lm.kv_heads == 4 && c.lm.head_dim == 128 && !c.lm.tied);
    assert_true(c.lm.rope.dims == 128 && c.lm.rope.theta == 1e6f && c.lm.rope.sectioned);
    assert_true(c.lm.rope.section[0] == 16 && c.lm.rope.section[1] == 24 && c.lm.rope.section[2] == 24);
    assert_true(c.vit.window == 4 && c.vit.full_attention[7] && c.vit.full_attention[31] &&
                !c.vit.full_attention[8]);
    assert_true(c.vit.patch == 14 && c.vit.mlp == 3420 && config_image_cols(&c) == 3584);
    assert_true(c.vit.min_pixels == 3136 && c.vit.max_pixels == 12845056 && c.vit.max_patches == 65536);
    assert_true(c.mean[0] == 0.48145466f && c.std[2] == 0.27577711f && c.image_open == 151652);
    char *nested =
        edited(vl25, "\"hidden_act\":\"silu\",\"hidden_size\":3584,", /* nested, as saved by transformers 5 */
               "\"text_config\":{\"hidden_act\":\"silu\",\"hidden_size\":3584,");
    char *text = edited(nested, "\"use_sliding_window\":false,",
                        "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e6,"
                        "\"mrope_section\":[16,24,24]},\"vocab_size\":152064},");
    t.config = text;
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_true(c.lm.hidden == 3584 && c.lm.rope.section[1] == 24 && c.vit.window == 4);
    free(nested);
    free(text);
}

static void check_text(const char *config, enum model_family family)
{
    struct model_config c;
    struct err e = ERR_INIT;
    struct config_text t = {.config = config, .generation = "{\"eos_token_id\":[151645,151643]}"};
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_int_equal(c.family, family);
    assert_true(!c.vision && c.image_token == -1 && c.lm.tied && c.lm.vocab == 151936 && c.lm.eps == 1e-6f);
    assert_true(c.lm.rope.theta == 1e6f && c.lm.rope.dims == c.lm.head_dim);
    assert_true(c.lm.rope.section[0] == c.lm.head_dim / 2 && !c.lm.rope.section[1] && !c.lm.rope.section[2]);
    assert_true(c.n_eos == 2 && c.eos[0] == 151645 && c.eos[1] == 151643);
    if (family == FAMILY_QWEN25VL)
        assert_true(c.lm.layers == 48 && c.lm.q_heads == 14 && c.lm.kv_heads == 2 && c.lm.head_dim == 64 &&
                    c.lm.mlp[1] == 4864 && c.lm.hidden == 896 && c.lm.max_tokens == 32768);
    else
        assert_true(c.lm.layers == 56 && c.lm.q_heads == 16 && c.lm.kv_heads == 8 && c.lm.head_dim == 128 &&
                    c.lm.mlp[55] == 3072 && c.lm.hidden == 1024 && c.lm.max_tokens == 40960);
}

/* Files saved by transformers 5 have rope_parameters and a type for each layer. */
static void t_text(void **state)
{
    static const char rope[] = "\"rope_parameters\":{\"rope_theta\":1000000.0,\"rope_type\":\"default\"}";
    check_text(text2, FAMILY_QWEN25VL);
    check_text(text3, FAMILY_QWEN3VL);
    char *a = edited(text2, "\"rope_theta\":1000000.0", rope);
    char *b = edited(text3, "\"rope_scaling\":null,\"rope_theta\":1000000", rope);
    char *c = edited(b, "\"sliding_window\":null", "\"sliding_window\":4096");
    check_text(a, FAMILY_QWEN25VL);
    check_text(b, FAMILY_QWEN3VL);
    check_text(c, FAMILY_QWEN3VL); /* another key says that it is not used */
    free(a);
    free(b);
    free(c);
}

/* A text model has its keys at the top level; a rule alone defines the layers; the outer
 * tie_word_embeddings counts. */
static void t_spellings(void **state)
{
    struct model_config c;
    struct err e = ERR_INIT;
    const char *begin = strstr(moe, "\"text_config\":{") + strlen("\"text_config\":{");
    const char *end = strstr(begin, ",\"vision_config\"");
    char *text = xasprintf("{\"architectures\":[\"Qwen3_5MoeForCausalLM\"],%.*s", (int)(end - begin), begin);
    struct config_text t = {.config = text};
    if (config_parse(&c, &t, &e))
        fail_msg("%s", e.text);
    assert_true(!c.vision && c.image_token == -1 && c.lm.hidden == 2048);
    free(text);
    text = edited(moe,
                  "\"layer_types\":[\"linear_attention\",\"linear_attention\",\"linear_attention\","
                  "\"full_attention\"],",
                  "");
    t.config = text;
    assert_int_equal(config_parse(&c, &t, &e), 0);
    assert_string_equal(c.lm.pattern, "DXDXDXAX");
    free(text);
    text = edited(dense, "\"tie_word_embeddings\":true", "\"tie_word_embeddings\":false");
    t.config = text;
    assert_int_equal(config_parse(&c, &t, &e), 0);
    assert_false(c.lm.tied);
    free(text);
}

struct wrong {
    const char *from, *to, *says; /* says: part of the error message */
};

static void refused(const char *text, const struct wrong *w, const char *preprocessor)
{
    struct model_config c;
    struct err e = ERR_INIT;
    char *config = edited(text, w->from, w->to);
    struct config_text t = {.config = config, .preprocessor = preprocessor};
    if (config_parse(&c, &t, &e) == 0)
        fail_msg("%s is accepted", w->to);
    if (!strstr(e.text, w->says))
        fail_msg("%s: '%s' does not say %s", w->to, e.text, w->says);
    free(config);
}

static const struct wrong wrong_dense[] = {
    {"\"qwen3_5\"", "\"qwen4_exp\"", "'qwen4_exp'"},
    {"Qwen3_5ForC", "Qwen3VLForC", "Qwen3VLForConditionalGeneration"},
    {"\"text_config\"", "\"llm\"", "'text_config' is missing"},
    {"\"full_attention_interval\":4", "\"full_attention_interval\":2", "disagree on layer 1"},
    {"\"num_hidden_layers\":8", "\"num_hidden_layers\":9", "8 entries for 9 layers"},
    {"[\"linear_attention\"", "[\"sliding_attention\"", "'sliding_attention' for layer 0"},
    {"\"attn_output_gate\":true", "\"attn_output_gate\":false", "'attn_output_gate'"},
    {"\"attention_bias\":false", "\"attention_bias\":true", "'attention_bias'"},
    {"\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "'hidden_act' is 'gelu'"},
    {"value_heads\":16", "value_heads\":24", "24 value heads cannot share 16"},
    {"\"linear_conv_kernel_dim\":4", "\"linear_conv_kernel_dim\":1", "'linear_conv_kernel_dim'"},
    {"\"linear_key_head_dim\":128,", "", "'linear_key_head_dim' is missing"},
    {"\"float32\"", "\"bfloat16\"", "'mamba_ssm_dtype'"},
    {"\"mlp_only_layers\":[]", "\"mlp_only_layers\":[3]", "'mlp_only_layers'"},
    {"\"num_key_value_heads\":2", "\"num_key_value_heads\":3", "8 query heads cannot share 3"},
    {"[11,11,10]", "[11,11,11]", "33 frequencies"},
    {"[11,11,10]", "[11,21]", "'mrope_section'"},
    {"\"mrope_interleaved\":true", "\"mrope_interleaved\":false", "'mrope_interleaved'"},
    {"\"rope_type\":\"default\"", "\"rope_type\":\"yarn\"", "'rope_type' is 'yarn'"},
    {"factor\":0.25", "factor\":0.26", "'partial_rotary_factor'"},
    {"\"in_channels\":3", "\"in_channels\":4", "'in_channels'"},
    {"\"num_heads\":12", "\"num_heads\":11", "768 columns"},
    {"2304", "2305", "not a square"},
    {"\"out_hidden_size\":1024", "\"out_hidden_size\":1025", "'out_hidden_size' is 1025"},
    {"indexes\":[]", "indexes\":[5]", "'deepstack_visual_indexes'"},
    {"gelu_pytorch_tanh", "gelu", "'hidden_act' is 'gelu'"},
    {"\"temporal_patch_size\":2", "\"temporal_patch_size\":1", "preprocessor_config.json"},
    {"\"spatial_merge_size\":2", "\"spatial_merge_size\":3", "'spatial_merge_size'"},
    {"\"image_token_id\":248056,", "", "'image_token_id' is missing"},
    {"248054", "248320", "below 'vocab_size'"},
};

static const struct wrong wrong_moe[] = {
    {"\"num_experts_per_tok\":8", "\"num_experts_per_tok\":257", "257 of 256 experts"},
    {"\"shared_expert_intermediate_size\":512,", "", "'shared_expert_intermediate_size' is missing"},
    {"\"num_experts\":256", "\"num_experts\":0", "'num_experts'"},
    {"\"num_experts\":256", "\"num_experts\":256,\"norm_topk_prob\":false", "'norm_topk_prob'"},
    {"\"num_experts\":256", "\"num_experts\":256,\"decoder_sparse_step\":2", "'decoder_sparse_step'"},
};

static const struct wrong wrong_vl3[] = {
    {"Qwen3VLFor", "Qwen3VLMoeFor", "'qwen3_vl'"},
    {"\"head_dim\":128,", "", "'head_dim' is missing"},
    {"\"mrope_section\":[24,20,20],", "", "'mrope_section' is missing"},
    {"[24,20,20]", "[24,20,21]", "65 frequencies"},
    {"\"mrope_interleaved\":true", "\"mrope_interleaved\":false", "'mrope_interleaved'"},
    {"\"rope_theta\":5000000,", "", "'rope_theta'"},
    {"\"rope_theta\":5000000,", "\"rope_theta\":5000000,\"partial_rotary_factor\":0.5,",
     "'partial_rotary_factor'"},
    {"\"attention_bias\":false", "\"attention_bias\":true", "'attention_bias'"},
    {"\"deepstack_visual_indexes\":[5,11,17],", "", "'deepstack_visual_indexes' is missing"},
    {"[5,11,17]", "[5,11,24]", "one of 24 blocks"},
    {"[5,11,17]", "[11,5,17]", "in order"},
    {"[5,11,17]", "[0,1,2,3,4,5,6,7,8]", "at most 8 blocks"},
    {"[5,11,17]", "5", "'deepstack_visual_indexes'"},
    {"\"num_hidden_layers\":36", "\"num_hidden_layers\":2", "3 entries for a language model of 2 layers"},
    {"\"model_type\":\"qwen3_vl\",\"num_heads\"", "\"model_type\":\"qwen3_5\",\"num_heads\"",
     "expected a vision encoder of qwen3_vl"},
    {"\"head_dim\":128", "\"layer_types\":[\"sliding_attention\"],\"head_dim\":128",
     "1 entries for 36 layers"},
};

static const struct wrong wrong_vl25[] = {
    {"Qwen2_5_VLFor", "Qwen2VLFor", "'qwen2_5_vl'"},
    {"\"use_sliding_window\":false", "\"use_sliding_window\":true", "'use_sliding_window'"},
    {"\"mrope_section\":[16,24,24]", "\"mrope_section\":[16,24,24],\"mrope_interleaved\":true",
     "'mrope_interleaved'"},
    {"[16,24,24]", "[16,24,23]", "63 frequencies"},
    {"\"type\":\"mrope\"", "\"type\":\"yarn\"", "'rope_type' is 'yarn'"},
    {"\"window_size\":112,", "", "'window_size' is missing"},
    {"\"window_size\":112", "\"window_size\":100", "not a multiple of 28"},
    {"\"fullatt_block_indexes\":[7,15,23,31],", "", "'fullatt_block_indexes' is missing"},
    {"[7,15,23,31]", "[7,15,23,32]", "one of 32 blocks"},
    {"\"hidden_act\":\"silu\",\"hidden_size\":1280", "\"hidden_act\":\"gelu\",\"hidden_size\":1280",
     "'hidden_act' is 'gelu'"},
    {"\"in_chans\":3", "\"in_chans\":4", "'in_chans"},
    {"\"num_heads\":16", "\"num_heads\":15", "1280 columns"},
    {"\"out_hidden_size\":3584", "\"out_hidden_size\":3585", "'out_hidden_size' is 3585"},
    {"\"image_token_id\":151655", "\"image_token_id\":152064", "below 'vocab_size'"},
};

static const struct wrong wrong_text2[] = {
    {"Qwen2ForCausalLM", "Qwen2ForRewardModel", "'Qwen2ForRewardModel'"},
    {"\"use_sliding_window\":false", "\"use_sliding_window\":true", "'use_sliding_window'"},
    {"\"num_hidden_layers\":24", "\"num_hidden_layers\":1,\"layer_types\":[\"sliding_attention\"]",
     "'sliding_attention' for layer 0"},
    {"\"rope_theta\":1000000.0,", "", "'rope_theta'"},
    {"\"num_key_value_heads\":2", "\"num_key_value_heads\":4", "14 query heads cannot share 4"},
    {"\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "'hidden_act' is 'gelu'"},
};

static const struct wrong wrong_text3[] = {
    {"\"attention_bias\":false", "\"attention_bias\":true", "'attention_bias'"},
    {"\"head_dim\":128,", "", "'head_dim' is missing"},
    {"Qwen3ForCausalLM", "Qwen2ForCausalLM", "'qwen3'"},
    {"\"use_sliding_window\":false", "\"use_sliding_window\":true", "'use_sliding_window'"},
};

static void t_wrong(void **state)
{
    for (size_t i = 0; i < sizeof wrong_text2 / sizeof *wrong_text2; i++)
        refused(text2, &wrong_text2[i], NULL);
    for (size_t i = 0; i < sizeof wrong_text3 / sizeof *wrong_text3; i++)
        refused(text3, &wrong_text3[i], NULL);
    for (size_t i = 0; i < sizeof wrong_vl3 / sizeof *wrong_vl3; i++)
        refused(vl3, &wrong_vl3[i], pre);
    for (size_t i = 0; i < sizeof wrong_vl25 / sizeof *wrong_vl25; i++)
        refused(vl25, &wrong_vl25[i], NULL);
    for (size_t i = 0; i < sizeof wrong_dense / sizeof *wrong_dense; i++)
        refused(dense, &wrong_dense[i], pre);
    for (size_t i = 0; i < sizeof wrong_moe / sizeof *wrong_moe; i++)
        refused(moe, &wrong_moe[i], pre);
}

static const struct CMUnitTest tests[] = {
    CLAIM("every value of a dense model is read from published spellings", t_dense),
    CLAIM("every value of a model with experts is read as saved by transformers", t_moe),
    CLAIM("every value of Qwen3-VL is read, with the blocks whose rows go to the first layers", t_vl3),
    CLAIM("every value of Qwen2.5-VL is read, flat as published and nested, with its windows", t_vl25),
    CLAIM("every value of the text models Qwen2 and Qwen3 is read, published or saved by transformers",
          t_text),
    CLAIM("text models, layers by rule, and the outer value of tied embeddings are read", t_spellings),
    CLAIM("a value that is not implemented is refused by its name", t_wrong),
};

CHECK_MAIN()
