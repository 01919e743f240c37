/* t_moe_load.c - tests of model directories of the next generation: they open with experts in either
 * layout, and contradictory values are refused.
 */
#include "check.h"

#include "model/language.h"
#include "session/chat.h"
#include "session/engine_impl.h"
#include "tiny_model.h"

/* ---- a model directory ----------------------------------------------------------------------- */

#define MOE                                                                                                  \
    "\"n_routed_experts\":8,\"num_experts_per_tok\":3,\"n_group\":2,\"topk_group\":1,\"n_shared_experts\":"  \
    "1,"                                                                                                     \
    "\"moe_intermediate_size\":20,\"moe_shared_expert_intermediate_size\":30,\"routed_scaling_factor\":2.5,"
#define LAYER "language_model.backbone.layers.1."

/* Returns the dense tiny model with experts in layer 1, canvases and the tokens of ChatML. */
static struct tiny next_generation(bool stacked)
{
    struct tiny t;
    char name[96];
    tiny_init(&t, check_seed());
    tiny_edit(&t.config, "NemotronH_Nano_VL_V2", "NemotronH_Nano_Omni_Reasoning_V3");
    tiny_edit(&t.config, "M-*-M-", "ME*-M-");
    tiny_edit(&t.config, "\"conv_kernel\":4,", MOE "\"conv_kernel\":4,");
    tiny_edit(&t.config, "\"model_norm\":false", "\"min_num_patches\":16,\"max_num_patches\":48");
    tiny_edit(&t.tokenizer, "<SPECIAL_10>", "<|im_start|>");
    tiny_edit(&t.tokenizer, "<SPECIAL_11>", "<|im_end|>");
    tiny_edit(&t.tokenizer, "<SPECIAL_12>", "<think>");
    tiny_edit(&t.tokenizer, "<SPECIAL_13>", "</think>");
    tiny_drop(&t, LAYER "mixer.up_proj.weight");
    tiny_drop(&t, LAYER "mixer.down_proj.weight");
    tiny_add(&t, LAYER "mixer.gate.weight", 0, 0.3, (const int64_t[]){8, 40, 0});
    tiny_add(&t, LAYER "mixer.gate.e_score_correction_bias", 0, 0.2, (const int64_t[]){8, 0});
    tiny_add(&t, LAYER "mixer.shared_experts.up_proj.weight", 0, 0.2, (const int64_t[]){30, 40, 0});
    tiny_add(&t, LAYER "mixer.shared_experts.down_proj.weight", 0, 0.1, (const int64_t[]){40, 30, 0});
    if (stacked) {
        tiny_add(&t, LAYER "mixer.experts.up_proj", 0, 0.2, (const int64_t[]){8, 20, 40, 0});
        tiny_add(&t, LAYER "mixer.experts.down_proj", 0, 0.1, (const int64_t[]){8, 40, 20, 0});
    }
    for (int e = 0; e < 8 && !stacked; e++) {
        snprintf(name, sizeof name, LAYER "mixer.experts.%d.up_proj.weight", e);
        tiny_add(&t, name, 0, 0.2, (const int64_t[]){20, 40, 0});
        snprintf(name, sizeof name, LAYER "mixer.experts.%d.down_proj.weight", e);
        tiny_add(&t, name, 0, 0.1, (const int64_t[]){40, 20, 0});
    }
    return t;
}

/* Writes the text of a session, with added tokens spelled out and one '#' for each image token. */
static void spell(const struct session *s, char *out, size_t size)
{
    const struct engine *g = session_engine(s);
    size_t n = 0, len;
    for (int64_t i = 0; i < session_length(s); i++) {
        int32_t id = session_tokens(s)[i];
        const char *bytes = tokenizer_bytes(engine_tokenizer(g), id, &len);
        if (id == engine_config(g)->image_token)
            n += (size_t)snprintf(out + n, size - n, "#");
        else
            n += (size_t)snprintf(out + n, size - n, "%.*s", (int)len, bytes);
        assert_true(n < size);
    }
}

static void t_directory(void **state)
{
    struct tiny t = next_generation(check_seed() % 2);
    tiny_write(&t);
    struct engine *g = tiny_open(&t, NULL, 2, false);
    struct image im = tiny_image(90, 40, 1);
    struct session *s = session_new(g, 1), *again = session_new(g, 1);
    char text[1024], want[1024];
    struct err e = ERR_INIT;
    struct chat_part parts[] = {{.image = &im}, {.text = "look"}};
    int tokens = engine_image_tokens(g, im.w, im.h, NULL, NULL);
    assert_int_equal(tokens, 24 / 4); /* 6x3 patches, rounded to even numbers within the limits: 6x4 */

    struct session *both[] = {s, again};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(chat_system(both[i], "Be brief.", false, &e), 0);
        assert_int_equal(chat_user(both[i], parts, 2, CHAT_PLACE_TEMPLATE, &e), 0);
        assert_int_equal(chat_reply(both[i], "a<|im_end|>b", &e), 0);
        assert_int_equal(chat_open_reply(both[i], true, &e), 0);
        assert_int_equal(chat_close_reply(both[i], &e), 0);
    }
    snprintf(want, sizeof want,
             "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n<img>%.*s</img>\nlook<|im_end|>\n"
             "<|im_start|>assistant\n<think></think>a<|im_end|>b<|im_end|>\n"
             "<|im_start|>assistant\n<think>\n<|im_end|>\n",
             tokens, "################");
    spell(s, text, sizeof text);
    assert_string_equal(text, want);
    int32_t end = tokenizer_find(engine_tokenizer(g), "<|im_end|>");
    assert_true(engine_is_stop(g, end));
    int ends = 0;
    for (int64_t i = 0; i < session_length(s); i++)
        ends += session_tokens(s)[i] == end;
    assert_int_equal(ends, 4); /* the marker in the reply's text is not a token */
    assert_int_equal(session_stats(s).tiles_computed, 1);
    assert_int_equal(session_stats(again).tiles_cached, 1);
    assert_memory_equal(session_logits(s), session_logits(again), (size_t)engine_vocab(g) * sizeof(float));
    session_free(s);
    session_free(again);
    image_free(&im);
    engine_close(g);
    tiny_free(&t);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused_config(const char *from, const char *to, const char *naming)
{
    struct tiny t = next_generation(true);
    tiny_edit(&t.config, from, to);
    tiny_damaged(&t, naming, "");
}

static void refused_tensor(bool stacked, const char *name, const char *naming)
{
    struct tiny t = next_generation(stacked);
    tiny_drop(&t, name);
    tiny_damaged(&t, naming, "");
}

static void t_refusals(void **state)
{
    refused_config("\"n_routed_experts\":8,", "", "'n_routed_experts|num_local_experts' is missing");
    refused_config("per_tok\":3", "per_tok\":5",
                   "'num_experts_per_tok' is 5, but only 4 experts are available");
    refused_config("\"n_group\":2", "\"n_group\":3", "8 experts cannot be split into the 3 groups");
    refused_config("\"n_group\":2", "\"n_group\":8", "groups of one expert");
    refused_config("\"topk_group\":1", "\"topk_group\":3", "'topk_group' is 3, but there are 2 groups");
    refused_config("shared_experts\":1", "shared_experts\":2",
                   "'n_shared_experts' is not a whole number from 0 to 1");
    refused_config("\"moe_intermediate_size\":20,", "", "'moe_intermediate_size' is missing");
    refused_config("\"moe_intermediate_size\":20", "\"moe_intermediate_size\":21", "mixer.experts.up_proj");
    refused_config("\"n_group\":2", "\"moe_latent_size\":16,\"n_group\":2", "mixer.experts.up_proj");
    refused_config("\"min_num_patches\":16", "\"min_num_patches\":\"many\"", "'min_num_patches'");
    refused_tensor(true, LAYER "mixer.gate.e_score_correction_bias", "e_score_correction_bias' is missing");
    refused_tensor(true, LAYER "mixer.gate.weight", "mixer.gate.weight' is missing");
    refused_tensor(true, LAYER "mixer.experts.down_proj", "mixer.experts.0.down_proj.weight' is missing");
    refused_tensor(false, LAYER "mixer.experts.7.up_proj.weight",
                   "mixer.experts.7.up_proj.weight' is missing");
    refused_tensor(false, LAYER "mixer.shared_experts.up_proj.weight",
                   "shared_experts.up_proj.weight' is missing");
}

static const struct CMUnitTest tests[] = {
    CLAIM("a directory of the next generation opens: ChatML, canvases, experts in either layout",
          t_directory),
    CLAIM("contradictory values are refused in one line that names them", t_refusals),
};

CHECK_MAIN()
