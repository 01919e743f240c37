/* random_qwen.c - the Qwen3.5 family for random.h: published shapes, with the tensors in published order. */
#include "bench/random_impl.h"

#define COMMON                                                                                               \
    "\"head_dim\":256,\"full_attention_interval\":4,\"linear_num_key_heads\":16,"                            \
    "\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,\"linear_conv_kernel_dim\":4,"                \
    "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-06,"                                                        \
    "\"vocab_size\":248320,\"eos_token_id\":248044,\"max_position_embeddings\":262144,"                      \
    "\"rope_parameters\":{\"mrope_interleaved\":true,\"mrope_section\":[11,11,10],"                          \
    "\"rope_type\":\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}"
#define MARKS "\"image_token_id\":248056,\"vision_start_token_id\":248053,\"vision_end_token_id\":248054,"

#define TOWER                                                                                                \
    "\"patch_size\":16,\"temporal_patch_size\":2,\"spatial_merge_size\":2,\"in_channels\":3,"                \
    "\"num_position_embeddings\":2304,\"hidden_act\":\"gelu_pytorch_tanh\",\"deepstack_visual_indexes\":[]}"

const char random_qwen_small[] =
    "{\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\"," MARKS
    "\"tie_word_embeddings\":true,\"text_config\":{\"hidden_size\":1024,\"intermediate_size\":3584,"
    "\"num_hidden_layers\":24,\"num_attention_heads\":8,\"num_key_value_heads\":2,"
    "\"linear_num_value_heads\":16," COMMON "},"
    "\"vision_config\":{\"depth\":12,\"hidden_size\":768,\"num_heads\":12,\"intermediate_size\":3072," TOWER
    "}";

const char random_qwen_middle[] =
    "{\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\"," MARKS
    "\"tie_word_embeddings\":true,\"text_config\":{\"hidden_size\":2560,\"intermediate_size\":9216,"
    "\"num_hidden_layers\":32,\"num_attention_heads\":16,\"num_key_value_heads\":4,"
    "\"linear_num_value_heads\":32," COMMON "},"
    "\"vision_config\":{\"depth\":24,\"hidden_size\":1024,\"num_heads\":16,\"intermediate_size\":4096," TOWER
    "}";

const char random_qwen_large[] =
    "{\"architectures\":[\"Qwen3_5ForConditionalGeneration\"],\"model_type\":\"qwen3_5\"," MARKS
    "\"tie_word_embeddings\":false,\"text_config\":{\"hidden_size\":4096,\"intermediate_size\":12288,"
    "\"num_hidden_layers\":32,\"num_attention_heads\":16,\"num_key_value_heads\":4,"
    "\"linear_num_value_heads\":32," COMMON "},"
    "\"vision_config\":{\"depth\":27,\"hidden_size\":1152,\"num_heads\":16,\"intermediate_size\":4304," TOWER
    "}";

const char random_qwen_experts[] =
    "{\"architectures\":[\"Qwen3_5MoeForConditionalGeneration\"],\"model_type\":\"qwen3_5_moe\"," MARKS
    "\"tie_word_embeddings\":false,\"text_config\":{\"hidden_size\":2048,\"num_hidden_layers\":40,"
    "\"num_attention_heads\":16,\"num_key_value_heads\":2,\"linear_num_value_heads\":32,\"num_experts\":256,"
    "\"num_experts_per_tok\":8,\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512," COMMON
    "},"
    "\"vision_config\":{\"depth\":27,\"hidden_size\":1152,\"num_heads\":16,\"intermediate_size\":4304," TOWER
    "}";

const struct random_special random_qwen_named[] = {{248044, "<|endoftext|>"},    {248045, "<|im_start|>"},
                                                   {248046, "<|im_end|>"},       {248053, "<|vision_start|>"},
                                                   {248054, "<|vision_end|>"},   {248055, "<|vision_pad|>"},
                                                   {248056, "<|image_pad|>"},    {248058, "<tool_call>"},
                                                   {248059, "</tool_call>"},     {248066, "<tool_response>"},
                                                   {248067, "</tool_response>"}, {248068, "<think>"},
                                                   {248069, "</think>"},         {0, NULL}};

static void list_mixer(const struct listing *l, const struct lm_config *c, bool attends)
{
    int64_t q = (int64_t)c->q_heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim,
            heads = c->delta.value_heads;
    if (attends) {
        ADD(l, "self_attn.q_proj.weight", 2 * q, c->hidden);
        ADD(l, "self_attn.k_proj.weight", kv, c->hidden);
        ADD(l, "self_attn.v_proj.weight", kv, c->hidden);
        ADD(l, "self_attn.o_proj.weight", c->hidden, q);
        ADD(l, "self_attn.q_norm.weight", c->head_dim);
        ADD(l, "self_attn.k_norm.weight", c->head_dim);
        return;
    }
    ADD(l, "linear_attn.in_proj_qkv.weight", config_conv_dim(c), c->hidden);
    ADD(l, "linear_attn.in_proj_z.weight", config_inner(c), c->hidden);
    ADD(l, "linear_attn.in_proj_b.weight", heads, c->hidden);
    ADD(l, "linear_attn.in_proj_a.weight", heads, c->hidden);
    ADD(l, "linear_attn.conv1d.weight", config_conv_dim(c), 1, c->delta.conv);
    ADD(l, "linear_attn.A_log", heads);
    ADD(l, "linear_attn.dt_bias", heads);
    ADD(l, "linear_attn.norm.weight", c->delta.value);
    ADD(l, "linear_attn.out_proj.weight", c->hidden, config_inner(c));
}

static void list_mlp(const struct listing *l, const struct lm_config *c, int width)
{
    const struct moe_config *m = &c->moe;
    if (!m->width) {
        ADD(l, "mlp.gate_proj.weight", width, c->hidden);
        ADD(l, "mlp.up_proj.weight", width, c->hidden);
        ADD(l, "mlp.down_proj.weight", c->hidden, width);
        return;
    }
    ADD(l, "mlp.gate.weight", m->route.experts, c->hidden);
    ADD(l, "mlp.experts.gate_up_proj", m->route.experts, (int64_t)2 * m->width, c->hidden);
    ADD(l, "mlp.experts.down_proj", m->route.experts, c->hidden, m->width);
    ADD(l, "mlp.shared_expert.gate_proj.weight", m->shared, c->hidden);
    ADD(l, "mlp.shared_expert.up_proj.weight", m->shared, c->hidden);
    ADD(l, "mlp.shared_expert.down_proj.weight", c->hidden, m->shared);
    ADD(l, "mlp.shared_expert_gate.weight", 1, c->hidden);
}

static void list_tower(const struct model_config *c, random_tensor *fn, void *arg)
{
    const struct vit_config *v = &c->vit;
    int64_t width = v->hidden, merged = 4 * width;
    const struct listing all = {fn, arg, NULL, 0};
    ADD(&all, "model.visual.patch_embed.proj.weight", width, 3, v->frames, v->patch, v->patch);
    ADD(&all, "model.visual.patch_embed.proj.bias", width);
    ADD(&all, "model.visual.pos_embed.weight", (int64_t)v->table_side * v->table_side, width);
    for (int i = 0; i < v->blocks; i++) {
        const struct listing l = {fn, arg, "model.visual.blocks.", i};
        ADD(&l, "norm1.weight", width);
        ADD(&l, "norm1.bias", width);
        ADD(&l, "attn.qkv.weight", 3 * width, width);
        ADD(&l, "attn.qkv.bias", 3 * width);
        ADD(&l, "attn.proj.weight", width, width);
        ADD(&l, "attn.proj.bias", width);
        ADD(&l, "norm2.weight", width);
        ADD(&l, "norm2.bias", width);
        ADD(&l, "mlp.linear_fc1.weight", v->mlp, width);
        ADD(&l, "mlp.linear_fc1.bias", v->mlp);
        ADD(&l, "mlp.linear_fc2.weight", width, v->mlp);
        ADD(&l, "mlp.linear_fc2.bias", width);
    }
    ADD(&all, "model.visual.merger.norm.weight", width);
    ADD(&all, "model.visual.merger.norm.bias", width);
    ADD(&all, "model.visual.merger.linear_fc1.weight", merged, merged);
    ADD(&all, "model.visual.merger.linear_fc1.bias", merged);
    ADD(&all, "model.visual.merger.linear_fc2.weight", c->lm.hidden, merged);
    ADD(&all, "model.visual.merger.linear_fc2.bias", c->lm.hidden);
}

void random_list_qwen(const struct model_config *c, random_tensor *fn, void *arg)
{
    const struct lm_config *lm = &c->lm;
    const struct listing all = {fn, arg, NULL, 0};
    ADD(&all, "model.language_model.embed_tokens.weight", lm->vocab, lm->hidden);
    for (int i = 0; i < lm->layers / 2; i++) {
        const struct listing l = {fn, arg, "model.language_model.layers.", i};
        list_mixer(&l, lm, layer_attends(lm->pattern[2 * i]));
        list_mlp(&l, lm, lm->mlp[2 * i + 1]);
        ADD(&l, "input_layernorm.weight", lm->hidden);
        ADD(&l, "post_attention_layernorm.weight", lm->hidden);
    }
    ADD(&all, "model.language_model.norm.weight", lm->hidden);
    if (!lm->tied)
        ADD(&all, "lm_head.weight", lm->vocab, lm->hidden);
    if (c->vision)
        list_tower(c, fn, arg);
}
