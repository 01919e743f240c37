/* gguf_config.c - config.json and preprocessor_config.json from the metadata keys of GGUF files
 * (gguf_model.h).
 *
 * The values are copied without checks. config.c reads the generated text like a published config.json and
 * checks the ranges there. */
#include "checkpoint/gguf_model.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VISION "clip.vision."

struct source {
    const struct gguf_file *f;
    const char *front; /* prefix of the keys: "qwen35." */
    struct err *e;
    bool failed;
};

static void missing(struct source *s, const char *key)
{
    if (!s->failed)
        err_set(s->e, ERR_MODEL, "%s: the key '%s%s' is missing", gguf_name(s->f), s->front, key);
    s->failed = true;
}

/* Returns the number of a key. If it is a list with one value per layer, returns the largest. NAN if the
 * key is missing. */
static double number_of(const struct source *s, const char *key)
{
    struct gguf_value v;
    double most = NAN, x;
    autofree char *whole = xasprintf("%s%s", s->front, key);
    if (gguf_value(s->f, whole, &v))
        while (gguf_next_number(&v, &x))
            most = most >= x ? most : x;
    return most;
}

static json_t *number(double x)
{
    return x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(isfinite(x) ? x : -1);
}

static double put(struct source *s, json_t *to, const char *name, const char *key)
{
    double x = number_of(s, key);
    if (isnan(x))
        missing(s, key);
    else
        json_object_set_new(to, name, number(x));
    return x;
}

/* Returns at most `most` numbers of a list as a JSON array; NULL if the key is missing or is not a list. */
static json_t *numbers(const struct source *s, const char *key, size_t most)
{
    struct gguf_value v;
    double x;
    json_t *list = NULL;
    autofree char *whole = xasprintf("%s%s", s->front, key);
    if (gguf_value(s->f, whole, &v) && v.list)
        for (list = json_array(); json_array_size(list) < most && gguf_next_number(&v, &x);)
            json_array_append_new(list, number(x));
    return list;
}

/* ---- the language model -------------------------------------------------------------------------------- */

int gguf_layers(const struct gguf_file *text)
{
    autofree char *arch = gguf_text_of(text, "general.architecture");
    struct source s = {.f = text, .front = ""};
    autofree char *front = xasprintf("%s.", arch ? arch : "");
    s.front = front;
    double all = number_of(&s, "block_count"), extra = number_of(&s, "nextn_predict_layers");
    all -= extra > 0 ? extra : 0;
    return all >= 0 && all < 1 << 20 ? (int)all : 0;
}

static void put_delta(struct source *s, json_t *o)
{
    double heads = put(s, o, "linear_num_value_heads", "ssm.time_step_rank"),
           inner = number_of(s, "ssm.inner_size");
    put(s, o, "linear_num_key_heads", "ssm.group_count");
    put(s, o, "linear_key_head_dim", "ssm.state_size");
    put(s, o, "linear_conv_kernel_dim", "ssm.conv_kernel");
    if (isnan(inner))
        missing(s, "ssm.inner_size");
    else
        json_object_set_new(o, "linear_value_head_dim", number(inner / heads));
}

static void put_attention(struct source *s, json_t *o)
{
    json_t *rope = json_object(), *section = numbers(s, "rope.dimension_sections", 3);
    put(s, o, "num_attention_heads", "attention.head_count");
    put(s, o, "num_key_value_heads", "attention.head_count_kv");
    double dim = put(s, o, "head_dim", "attention.key_length"), turned = number_of(s, "rope.dimension_count");
    put(s, o, "rms_norm_eps", "attention.layer_norm_rms_epsilon");
    put(s, rope, "rope_theta", "rope.freq_base");
    if (isnan(turned))
        missing(s, "rope.dimension_count");
    else
        json_object_set_new(rope, "partial_rotary_factor", number(turned / dim));
    json_object_set_new(rope, "rope_type", json_string("default"));
    if (section)
        json_object_set_new(rope, "mrope_section", section);
    json_object_set_new(o, "rope_parameters", rope);
}

/* Adds the dimensions that all architectures have. */
static void put_sizes(struct source *s, json_t *o)
{
    const struct gguf_entry *embed = gguf_find(s->f, "token_embd.weight");
    if (!embed && !s->failed)
        s->failed = err_set(s->e, ERR_MODEL, "%s: tensor 'token_embd.weight' is missing", gguf_name(s->f));
    put(s, o, "hidden_size", "embedding_length");
    put(s, o, "max_position_embeddings", "context_length");
    put(s, o, "num_hidden_layers", "block_count");
    json_object_set_new(o, "num_hidden_layers", json_integer(gguf_layers(s->f)));
    json_object_set_new(o, "vocab_size", json_integer(embed ? embed->shape[0] : 0));
}

static json_t *language(struct source *s, bool moe)
{
    json_t *o = json_object();
    put_sizes(s, o);
    double interval = number_of(s, "full_attention_interval");
    json_object_set_new(o, "full_attention_interval", number(isnan(interval) ? 4 : interval));
    put_delta(s, o);
    put_attention(s, o);
    if (moe) {
        put(s, o, "num_experts", "expert_count");
        put(s, o, "num_experts_per_tok", "expert_used_count");
        put(s, o, "moe_intermediate_size", "expert_feed_forward_length");
        put(s, o, "shared_expert_intermediate_size", "expert_shared_feed_forward_length");
    } else {
        put(s, o, "intermediate_size", "feed_forward_length");
    }
    return o;
}

/* ---- text models --------------------------------------------------------------------------------------- */

/* Fails if the model scales its positions. A scaling factor without a type means linear scaling, as in
 * llama.cpp. */
static void check_scaling(struct source *s)
{
    autofree char *key = xasprintf("%srope.scaling.type", s->front), *type = gguf_text_of(s->f, key);
    double factor = number_of(s, "rope.scaling.factor");
    if (isnan(factor))
        factor = number_of(s, "rope.scale_linear");
    bool linear = !type || !strcmp(type, "linear");
    if (!s->failed && linear && !isnan(factor) && factor != 0 && factor != 1)
        s->failed = err_set(s->e, ERR_MODEL,
                            "%s: '%srope.scaling.factor' is %g: scaled positions are not implemented; use a "
                            "file of this model without scaling",
                            gguf_name(s->f), s->front, factor);
    if (!s->failed && !linear && strcmp(type, "none") != 0)
        s->failed =
            err_set(s->e, ERR_MODEL,
                    "%s: '%s' is '%s': scaled positions are not implemented; use a file of this model "
                    "without scaling",
                    gguf_name(s->f), key, type);
}

/* Fails if a key that changes the computation or the use of a text model has a value that is not
 * implemented. */
static void check_text(struct source *s)
{
    static const struct {
        const char *key, *remedy;
        double allowed;
    } only[] = {
        {"attention.sliding_window",
         "sliding-window attention is not implemented; use a file of this model without it", 0},
        {"attention.causal", "it attends in both directions; use a model that generates text", 1},
        {"pooling_type", "it computes embeddings or ranks; use a model that generates text", 0},
    };
    for (size_t i = 0; i < sizeof only / sizeof *only && !s->failed; i++) {
        double x = number_of(s, only[i].key);
        if (!isnan(x) && x != only[i].allowed)
            s->failed = err_set(s->e, ERR_MODEL, "%s: '%s%s' is %g: %s", gguf_name(s->f), s->front,
                                only[i].key, x, only[i].remedy);
    }
    check_scaling(s);
}

/* Returns the configuration of a text model without a vision encoder, whose keys are at the top level of
 * config.json. Converters omit some keys. Those are derived as in llama.cpp. */
static json_t *text_model(struct source *s)
{
    json_t *o = json_object(), *rope = json_object();
    double heads, dim = number_of(s, "attention.key_length"), turned = number_of(s, "rope.dimension_count");
    put_sizes(s, o);
    put(s, o, "intermediate_size", "feed_forward_length");
    heads = put(s, o, "num_attention_heads", "attention.head_count");
    if (!isnan(number_of(s, "attention.head_count_kv")))
        put(s, o, "num_key_value_heads", "attention.head_count_kv");
    if (isnan(dim))
        dim = number_of(s, "embedding_length") / heads;
    json_object_set_new(o, "head_dim", number(dim));
    put(s, o, "rms_norm_eps", "attention.layer_norm_rms_epsilon");
    put(s, rope, "rope_theta", "rope.freq_base");
    json_object_set_new(rope, "rope_type", json_string("default"));
    if (!isnan(turned))
        json_object_set_new(rope, "partial_rotary_factor", number(turned / dim));
    json_object_set_new(o, "rope_parameters", rope);
    check_text(s);
    return o;
}

/* ---- vision encoder ------------------------------------------------------------------------------------ */

/* Returns the indices of the layers whose deepstack flag is set. */
static json_t *deepstack(const struct source *s)
{
    struct gguf_value v;
    double x;
    json_t *list = json_array();
    if (gguf_value(s->f, VISION "is_deepstack_layers", &v))
        for (int i = 0; i < 512 && gguf_next_number(&v, &x); i++)
            if (x > 0)
                json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *vision_encoder(struct source *s)
{
    json_t *o = json_object();
    const struct gguf_entry *table = gguf_find(s->f, "v.position_embd.weight");
    double merge = number_of(s, "spatial_merge_size");
    put(s, o, "depth", "block_count");
    put(s, o, "hidden_size", "embedding_length");
    put(s, o, "intermediate_size", "feed_forward_length");
    put(s, o, "num_heads", "attention.head_count");
    put(s, o, "patch_size", "patch_size");
    put(s, o, "out_hidden_size", "projection_dim");
    json_object_set_new(o, "spatial_merge_size", number(isnan(merge) ? 2 : merge));
    json_object_set_new(o, "temporal_patch_size",
                        json_integer(gguf_find(s->f, "v.patch_embd.weight.1") ? 2 : 1));
    json_object_set_new(o, "num_position_embeddings", json_integer(table ? table->shape[0] : 0));
    json_object_set_new(o, "deepstack_visual_indexes", deepstack(s));
    return o;
}

static json_t *preprocessing(struct source *s)
{
    json_t *o = json_object(), *mean = numbers(s, "image_mean", 4), *std = numbers(s, "image_std", 4);
    double least = number_of(s, "image_min_pixels"), most = number_of(s, "image_max_pixels");
    if (mean)
        json_object_set_new(o, "image_mean", mean);
    if (std)
        json_object_set_new(o, "image_std", std);
    if (!isnan(least))
        json_object_set_new(o, "min_pixels", number(least));
    if (!isnan(most))
        json_object_set_new(o, "max_pixels", number(most));
    return o;
}

static int check_vision(const struct gguf_file *vision, struct err *e)
{
    autofree char *arch = gguf_text_of(vision, "general.architecture"),
                  *kind = gguf_text_of(vision, "clip.projector_type");
    if (!kind)
        kind = gguf_text_of(vision, VISION "projector_type");
    bool fits = arch && kind && !strcmp(arch, "clip") && !strcmp(kind, "qwen3vl_merger");
    if (!fits)
        err_set(e, ERR_MODEL,
                "%s: architecture '%s' with projector '%s' is not supported; a vision encoder of Qwen3.5 has "
                "'clip' with 'qwen3vl_merger'",
                gguf_name(vision), arch ? arch : "", kind ? kind : "");
    return fits ? 0 : -1;
}

/* ---- entry point --------------------------------------------------------------------------------------- */

/* Adds the ids of the image placeholder token and of the tokens around an image. */
static void put_marks(const struct gguf_file *text, json_t *o)
{
    static const char *const marks[][2] = {{"<|image_pad|>", "image_token_id"},
                                           {"<|vision_start|>", "vision_start_token_id"},
                                           {"<|vision_end|>", "vision_end_token_id"}};
    struct gguf_value v;
    const char *word;
    size_t len;
    if (!gguf_value(text, "tokenizer.ggml.tokens", &v))
        return;
    for (int id = 0; gguf_next_text(&v, &word, &len); id++)
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            if (len == strlen(marks[i][0]) && !memcmp(word, marks[i][0], len))
                json_object_set_new(o, marks[i][1], json_integer(id));
}

static void put_ends(const struct gguf_file *text, json_t *o)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double id = gguf_number_of(text, keys[i], -1);
        if (id >= 0)
            json_array_append_new(list, number(id));
    }
    json_object_set_new(o, "eos_token_id", list);
}

/* Implemented architectures, with the model_type of the published config.json. */
static const struct {
    const char *name, *type;
    bool moe, text; /* text: a model without a vision encoder, whose keys are at the top level */
} known[] = {
    {"qwen35", "qwen3_5", false, false},
    {"qwen35moe", "qwen3_5_moe", true, false},
    {"qwen2", "qwen2", false, true},
    {"qwen3", "qwen3", false, true},
};
enum { KNOWN = sizeof known / sizeof *known };

/* Returns the index in `known`, or -1 with e. */
static int find_kind(const struct gguf_file *text, struct err *e)
{
    autofree char *arch = gguf_text_of(text, "general.architecture");
    int kind = KNOWN - 1;
    while (kind >= 0 && (!arch || strcmp(arch, known[kind].name) != 0))
        kind--;
    if (kind < 0)
        err_set(e, ERR_MODEL,
                "%s: architecture '%s' is not implemented; implemented are qwen35, "
                "qwen35moe, qwen2 and qwen3",
                gguf_name(text), arch ? arch : "");
    return kind;
}

bool gguf_is_text_model(const struct gguf_file *text)
{
    int kind = find_kind(text, NULL);
    return kind >= 0 && known[kind].text;
}

/* Returns -1 with e if the vision file does not belong to the language model. A missing vision file is
 * valid. */
static int check_pair(const struct gguf_file *text, const struct gguf_file *vision, int kind, struct err *e)
{
    if (vision && known[kind].text)
        return err_set(e, ERR_MODEL,
                       "%s is a text model (architecture '%s') and cannot use the vision encoder %s; "
                       "omit that file",
                       gguf_name(text), known[kind].name, gguf_name(vision));
    return vision ? check_vision(vision, e) : 0;
}

static json_t *whole(const struct gguf_file *text, const struct gguf_file *vision, int kind, json_t **pre,
                     struct err *e)
{
    autofree char *front = xasprintf("%s.", known[kind].name);
    struct source s = {.f = text, .front = front, .e = e};
    struct source v = {.f = vision, .front = VISION, .e = e};
    json_t *o = known[kind].text ? text_model(&s) : json_object();
    json_object_set_new(o, "model_type", json_string(known[kind].type));
    json_object_set_new(o, "tie_word_embeddings", json_boolean(!gguf_find(text, "output.weight")));
    if (!known[kind].text)
        json_object_set_new(o, "text_config", language(&s, known[kind].moe));
    put_ends(text, o);
    if (vision && !s.failed) {
        json_object_set_new(o, "vision_config", vision_encoder(&v));
        *pre = preprocessing(&v);
        put_marks(text, o);
    }
    if (s.failed || v.failed) {
        json_decref(o);
        return NULL;
    }
    return o;
}

int gguf_config(const struct gguf_file *text, const struct gguf_file *vision, char **config,
                char **preprocessor, struct err *e)
{
    json_auto_t *pre = NULL, *o = NULL;
    *config = *preprocessor = NULL;
    int kind = find_kind(text, e);
    if (kind >= 0 && check_pair(text, vision, kind, e) == 0)
        o = whole(text, vision, kind, &pre, e);
    if (o)
        *config = json_dumps(o, JSON_COMPACT);
    if (o && pre)
        *preprocessor = json_dumps(pre, JSON_COMPACT);
    return *config ? 0 : -1;
}
