/* gguf_wide.c - see gguf_wide.h. */
#include "gguf_wide.h"

#include "check.h"

#include "model/language.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDE = 256, VALUE = 128 };

static void set_int(json_t *o, const char *key, int64_t v)
{
    if (json_object_get(o, key))
        json_object_set_new(o, key, json_integer(v));
}

static bool has(const char *name, const char *part)
{
    return strstr(name, part);
}

/* Widens a shape: the last dimension is the hidden size in most tensors, the first in those that write to
 * it. */
static void widen(json_t *entry, int64_t heads)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    json_t *shape = json_object_get(entry, "shape");
    size_t last = json_array_size(shape) - 1;
    int64_t first = json_integer_value(json_array_get(shape, 0)), inner = heads * VALUE,
            channels = first + heads * (VALUE - 16);
    bool small = has(name, "A_log") || has(name, "dt_bias") || has(name, "q_norm") || has(name, "k_norm") ||
                 has(name, "conv1d");
    bool out = has(name, "out_proj") || has(name, "o_proj") || has(name, "down_proj"),
         wide = has(name, "mlp.") && !has(name, "mlp.gate.") && !has(name, "expert_gate");
    if (!small)
        json_array_set_new(shape, last, json_integer(has(name, "out_proj") ? inner : WIDE));
    if (has(name, "linear_attn.norm"))
        json_array_set_new(shape, 0, json_integer(VALUE));
    if (has(name, "in_proj_qkv") || has(name, "conv1d"))
        json_array_set_new(shape, 0, json_integer(channels));
    if (has(name, "in_proj_z"))
        json_array_set_new(shape, 0, json_integer(inner));
    if (last && (out || wide))
        json_array_set_new(shape, last - 1, json_integer(has(name, "gate_up") ? 2 * WIDE : WIDE));
}

void wide_open(struct wide *w, const char *name)
{
    struct err e = ERR_INIT;
    size_t i;
    json_t *entry;
    golden_open(&w->g, name);
    assert_non_null(mkdtemp(place_template(w->dir)));
    char *path = xasprintf("%s/config.json", w->g.dir);
    json_t *config = json_load_file(path, 0, NULL);
    free(path);
    assert_non_null(config);
    set_int(config, "hidden_size", WIDE);
    set_int(config, "intermediate_size", WIDE);
    set_int(config, "moe_intermediate_size", WIDE);
    set_int(config, "shared_expert_intermediate_size", WIDE);
    set_int(config, "linear_value_head_dim", VALUE);
    json_array_foreach(json_object_get(w->g.root, "weights"), i, entry)
        widen(entry, json_integer_value(json_object_get(config, "linear_num_value_heads")));
    path = xasprintf("%s/config.json", w->dir);
    char *text = json_dumps(config, 0);
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    memcpy(w->golden, w->g.dir, sizeof w->golden);
    snprintf(w->g.dir, sizeof w->g.dir, "%s", w->dir);
    free(text);
    free(path);
    json_decref(config);
}

void wide_close(struct wide *w)
{
    static const char *const files[] = {"model.gguf", "config.json"};
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/%s", w->dir, files[i]);
        unlink(path);
        free(path);
    }
    rmdir(w->dir);
    golden_close(&w->g);
}

char *wide_read(const struct wide *w, struct gguf_form form, struct backend *b, struct bind_options o,
                float *logits)
{
    static const int32_t ids[5] = {3, 150, 7, 42, 99};
    struct err e = ERR_INIT;
    struct model_config c;
    struct model_weights weights;
    struct language m;
    struct lm_state s;
    gguf_model(&w->g, form, w->dir);
    char *place = xasprintf("%s/model.gguf", w->dir);
    struct safetensors *files = safetensors_open(place, &e);
    if (!files || config_load(&c, place, &e) || weights_bind(&weights, &c, files, b, &o, &e))
        fail_msg("%s", e.text);
    enum dtype act = o.f32 ? DT_F32 : DT_BF16;
    language_init(&m, &c.lm, &weights, b, act);
    state_init(&s, &c.lm, b, (struct state_types){act, DT_F32, act});
    assert_int_equal(language_forward(&m, &s, ids, 5, NULL, 0), 0);
    language_logits(&m, &s, logits);
    char *forms = weights.forms ? xstrdup(weights.forms) : NULL;
    state_free(&s, &c.lm, b);
    language_free(&m);
    weights_free(&weights, &c, b);
    safetensors_close(files);
    free(place);
    return forms;
}
