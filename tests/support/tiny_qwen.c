/* tiny_qwen.c - see tiny_qwen.h. */
#include "tiny_qwen.h"

#include <stdio.h>

static const char config[] =
    "{\"architectures\":[\"Qwen3_5MoeForConditionalGeneration\"],\"model_type\":\"qwen3_5_moe\","
    "\"language_model_only\":true,\"tie_word_embeddings\":true,\"text_config\":{\"vocab_size\":288,"
    "\"hidden_size\":40,\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
    "\"head_dim\":16,\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":8,"
    "\"linear_value_head_dim\":12,\"linear_conv_kernel_dim\":4,\"num_experts\":5,\"num_experts_per_tok\":2,"
    "\"moe_intermediate_size\":24,\"shared_expert_intermediate_size\":32,\"eos_token_id\":2,"
    "\"max_position_embeddings\":4096,\"rope_parameters\":{\"rope_theta\":100,\"partial_rotary_factor\":0.5,"
    "\"mrope_section\":[2,1,1],\"rope_type\":\"default\"}}}";

static void add(struct tiny *t, int layer, double mean, double spread, const char *part, const int64_t *shape)
{
    char name[128];
    snprintf(name, sizeof name, "model.language_model.layers.%d.%s", layer, part);
    tiny_add(t, name, mean, spread, shape);
}

static void add_mixer(struct tiny *t, int i)
{
    if (i % 4 == 3) {
        add(t, i, 0, 0.3, "self_attn.q_proj.weight", TINY_SHAPE(128, TINY_QWEN_HIDDEN));
        add(t, i, 0, 0.3, "self_attn.k_proj.weight", TINY_SHAPE(32, TINY_QWEN_HIDDEN));
        add(t, i, 0, 0.3, "self_attn.v_proj.weight", TINY_SHAPE(32, TINY_QWEN_HIDDEN));
        add(t, i, 0, 0.3, "self_attn.o_proj.weight", TINY_SHAPE(TINY_QWEN_HIDDEN, 64));
        add(t, i, 0, 0.2, "self_attn.q_norm.weight", TINY_SHAPE(16));
        add(t, i, 0, 0.2, "self_attn.k_norm.weight", TINY_SHAPE(16));
        return;
    }
    add(t, i, 0, 0.3, "linear_attn.in_proj_qkv.weight", TINY_SHAPE(80, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.3, "linear_attn.in_proj_z.weight", TINY_SHAPE(48, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.3, "linear_attn.in_proj_a.weight", TINY_SHAPE(4, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.3, "linear_attn.in_proj_b.weight", TINY_SHAPE(4, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.5, "linear_attn.conv1d.weight", TINY_SHAPE(80, 1, 4));
    t->f32 = i == 1; /* published files have either type */
    add(t, i, -1, 1, "linear_attn.A_log", TINY_SHAPE(4));
    add(t, i, 1, 0.2, "linear_attn.norm.weight", TINY_SHAPE(12));
    t->f32 = false;
    add(t, i, 0, 0.5, "linear_attn.dt_bias", TINY_SHAPE(4));
    add(t, i, 0, 0.3, "linear_attn.out_proj.weight", TINY_SHAPE(TINY_QWEN_HIDDEN, 48));
}

/* Adds experts stacked, or in some layers as separate tensors. */
static void add_experts(struct tiny *t, int i)
{
    char name[64];
    add(t, i, 0, 0.3, "mlp.gate.weight", TINY_SHAPE(5, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.3, "mlp.shared_expert_gate.weight", TINY_SHAPE(1, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.2, "mlp.shared_expert.gate_proj.weight", TINY_SHAPE(32, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.2, "mlp.shared_expert.up_proj.weight", TINY_SHAPE(32, TINY_QWEN_HIDDEN));
    add(t, i, 0, 0.2, "mlp.shared_expert.down_proj.weight", TINY_SHAPE(TINY_QWEN_HIDDEN, 32));
    if (i % 2) {
        add(t, i, 0, 0.2, "mlp.experts.gate_up_proj", TINY_SHAPE(5, 48, TINY_QWEN_HIDDEN));
        add(t, i, 0, 0.2, i == 1 ? "mlp.experts.down_proj" : "mlp.experts.down_proj.weight",
            TINY_SHAPE(5, TINY_QWEN_HIDDEN, 24));
        return;
    }
    for (int k = 0; k < 15; k++) {
        static const char *const parts[] = {"gate", "up", "down"};
        snprintf(name, sizeof name, "mlp.experts.%d.%s_proj.weight", k / 3, parts[k % 3]);
        add(t, i, 0, 0.2, name,
            k % 3 == 2 ? TINY_SHAPE(TINY_QWEN_HIDDEN, 24) : TINY_SHAPE(24, TINY_QWEN_HIDDEN));
    }
}

void tiny_qwen(struct tiny *t, uint64_t seed)
{
    tiny_init(t, seed);
    char *tokenizer = t->tokenizer;
    t->tokenizer = NULL;
    tiny_clear(t);
    t->tokenizer = tokenizer;
    t->config = xstrdup(config);
    tiny_add(t, "model.language_model.embed_tokens.weight", 0, 0.5, TINY_SHAPE(288, TINY_QWEN_HIDDEN));
    tiny_add(t, "model.language_model.norm.weight", 0, 0.2, TINY_SHAPE(TINY_QWEN_HIDDEN));
    for (int i = 0; i < 4; i++) {
        add(t, i, 0, 0.2, "input_layernorm.weight", TINY_SHAPE(TINY_QWEN_HIDDEN));
        add(t, i, 0, 0.2, "post_attention_layernorm.weight", TINY_SHAPE(TINY_QWEN_HIDDEN));
        add_mixer(t, i);
        add_experts(t, i);
    }
    tiny_add(t, "mtp.fc.weight", 0, 1, TINY_SHAPE(TINY_QWEN_HIDDEN, 2 * TINY_QWEN_HIDDEN));
}

void tiny_refused_quantization(const char *const (*pairs)[2], size_t n, const char *naming)
{
    for (size_t i = 0; i < n; i++) {
        struct tiny t;
        tiny_qwen(&t, 5);
        tiny_quantization(&t, pairs[i][0]);
        tiny_damaged(&t, naming, pairs[i][1]);
    }
}
