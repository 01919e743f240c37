/* t_qwen_config.c - config files of the Qwen3.5 family: what is read from published spellings, what is
 * refused.
 *
 * The texts have the keys of published files of 0.8B and 35B-A3B, and of what transformers 5 saves.
 */
#include "check.h"

#include "model/config.h"

#include <stdlib.h>
#include <string.h>

/* 0.8B as published: the rule beside the list, rope_parameters, an MTP layer that no tensor follows. */
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

/* `text` with its first `from` replaced; the caller frees it. */
static char *edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("'%s' is not in the text", from);
    return xasprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void t_dense(void **state)
{
    (void)state;
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
    t = (struct config_text){.config = dense}; /* the text model's stop token, published bounds of pixels */
    assert_int_equal(config_parse(&c, &t, &e), 0);
    assert_true(c.n_eos == 1 && c.eos[0] == 248044 && c.vit.max_pixels == 16777216);
    t.processor = "{\"image_processor\":{\"min_pixels\":3136,\"max_pixels\":1310720,\"patch_size\":16}}";
    assert_int_equal(config_parse(&c, &t, &e), 0);
    assert_true(c.vit.min_pixels == 3136 && c.vit.max_pixels == 1310720);
}

static void t_moe(void **state)
{
    (void)state;
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

/* A text model has its keys at the top; a rule alone names the layers; the outer word on tying counts. */
static void t_spellings(void **state)
{
    (void)state;
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
    const char *from, *to, *says; /* says: what the refusal names */
};

static void refused(const char *text, const struct wrong *w)
{
    struct model_config c;
    struct err e = ERR_INIT;
    char *config = edited(text, w->from, w->to);
    struct config_text t = {.config = config, .preprocessor = pre};
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
    {"2304", "2305", "no square"},
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

static void t_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_dense / sizeof *wrong_dense; i++)
        refused(dense, &wrong_dense[i]);
    for (size_t i = 0; i < sizeof wrong_moe / sizeof *wrong_moe; i++)
        refused(moe, &wrong_moe[i]);
}

static const struct CMUnitTest tests[] = {
    CLAIM("every number of a dense model is read from published spellings", t_dense),
    CLAIM("and of one with experts, as transformers saves it", t_moe),
    CLAIM("text models, layers by rule, the outer word on tied embeddings", t_spellings),
    CLAIM("a value that is not implemented is refused by its name", t_wrong),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
