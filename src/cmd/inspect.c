/* inspect.c - `holorun inspect MODEL`: shows the contents of a model directory and the reasons why it would
 * be rejected.
 *
 * Collects everything in one JSON object and prints the object itself or tables.  Reads headers only, no
 * weights.  An invalid directory is shown as far as it can be read. */
#include "cmd/commands.h"

#include "capacity/plan.h"
#include "checkpoint/find.h"
#include "checkpoint/safetensors.h"
#include "model/config.h"
#include "session/session.h"
#include "text/tokenizer.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROBLEMS = 50 };

struct settings {
    const char *model;
    bool json;
};

static const struct option_spec options[] = {
    {"model", 'm', OPTION_TEXT, offsetof(struct settings, model), "DIR", 0, 4096, NULL,
     "the same as the argument; default: the embedded model", "HOLORUN_MODEL"},
    JSON_OPTION(struct settings),
    {0},
};

const struct command inspect_command = {
    "inspect",
    "[MODEL]",
    "show a model directory: sizes, tensors, tokenizer, unsupported parts",
    "Reads only headers, not weights. In tensor names * stands for the layer number. The exit code is 4 if "
    "holorun cannot load the model; all reasons are listed.",
    "holorun inspect\nholorun inspect ~/models/Holotron-12B\nholorun inspect --json DIR | jq .refused\n",
    options,
    cmd_inspect};

static void put_int(json_t *o, const char *key, json_int_t value)
{
    json_object_set_new(o, key, json_integer(value));
}

static int count_layers(const struct lm_config *c, char kind)
{
    int n = 0;
    for (int i = 0; i < c->layers; i++)
        n += c->pattern[i] == kind;
    return n;
}

static void put_language(json_t *o, const struct lm_config *c)
{
    int mamba = count_layers(c, LAYER_MAMBA), delta = count_layers(c, LAYER_DELTA),
        attention = count_layers(c, LAYER_ATTENTION) + count_layers(c, LAYER_GATED_ATTENTION) +
                    count_layers(c, LAYER_ROTARY_ATTENTION),
        moe = count_layers(c, LAYER_MOE) + count_layers(c, LAYER_SWIGLU_MOE);
    json_object_set_new(o, "pattern", json_string(c->pattern));
    put_int(o, "layers", c->layers);
    put_int(o, "Mamba layers", mamba);
    if (delta)
        put_int(o, "DeltaNet layers", delta);
    put_int(o, "attention layers", attention);
    put_int(o, "MLP layers", count_layers(c, LAYER_MLP) + count_layers(c, LAYER_SWIGLU));
    put_int(o, "expert layers", moe);
    put_int(o, "hidden size", c->hidden);
    if (mamba)
        json_object_set_new(o, "Mamba",
                            json_sprintf("%d heads of %d, state %d, %d groups, convolution %d%s",
                                         c->ssm.heads, c->ssm.head_dim, c->ssm.state, c->ssm.groups,
                                         c->ssm.conv, c->conv_bias ? " with bias" : ""));
    if (delta)
        json_object_set_new(o, "DeltaNet",
                            json_sprintf("%d key heads of %d, %d value heads of %d, convolution %d",
                                         c->delta.key_heads, c->delta.key, c->delta.value_heads,
                                         c->delta.value, c->delta.conv));
    if (c->rope.dims)
        json_object_set_new(o, "rotary positions",
                            json_sprintf("%d dimensions, base %g, time %d, height %d, width %d", c->rope.dims,
                                         (double)c->rope.theta, c->rope.section[0], c->rope.section[1],
                                         c->rope.section[2]));
    if (attention)
        json_object_set_new(
            o, "attention",
            json_sprintf("%d heads of %d, %d for keys and values", c->q_heads, c->head_dim, c->kv_heads));
    if (moe)
        json_object_set_new(o, "experts",
                            json_sprintf("%d of width %d, %d for each token, shared width %d",
                                         c->moe.route.experts, c->moe.width, c->moe.route.chosen,
                                         c->moe.shared));
    put_int(o, "vocabulary", c->vocab);
    put_int(o, "longest conversation", c->max_tokens);
}

static void put_vision(json_t *o, const struct model_config *c)
{
    const struct vit_config *v = &c->vit;
    if (!c->vision) {
        json_object_set_new(o, "vision", json_string("none"));
        return;
    }
    json_object_set_new(
        o, "vision",
        json_sprintf("%d blocks of width %d, %d heads, MLP %d", v->blocks, v->hidden, v->heads, v->mlp));
    if (v->max_patches)
        json_object_set_new(o, "images",
                            json_sprintf("of any size, %d to %d patches of %d pixels", v->min_patches,
                                         v->max_patches, v->patch));
    else
        json_object_set_new(o, "images",
                            json_sprintf("at most %d tiles of %dx%d%s, %d tokens each", c->max_tiles, v->tile,
                                         v->tile, c->thumbnail ? " and one of the whole image" : "",
                                         config_tile_tokens(c)));
    put_int(o, "projector", v->projector);
    json_object_set_new(o, "pixel mean",
                        json_sprintf("%g %g %g", (double)c->mean[0], (double)c->mean[1], (double)c->mean[2]));
    json_object_set_new(o, "pixel spread",
                        json_sprintf("%g %g %g", (double)c->std[0], (double)c->std[1], (double)c->std[2]));
}

/* Replaces layer numbers by "*": "layers.12.norm" becomes "layers.*.norm". */
static void group_name(const char *name, char out[256])
{
    size_t n = 0;
    for (const char *p = name; *p && n < 255; p++) {
        bool number = isdigit((unsigned char)*p) && p > name && p[-1] == '.';
        const char *end = p;
        while (number && isdigit((unsigned char)*end))
            end++;
        if (number && *end == '.' && strncmp(name, "mlp1.", 5) != 0) {
            out[n++] = '*';
            p = end - 1;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = 0;
}

static void add_to(json_t *o, const char *key, json_int_t n)
{
    json_object_set_new(o, key, json_integer(json_integer_value(json_object_get(o, key)) + n));
}

/* Adds a tensor to the entry of all tensors whose names differ only in the layer number. */
static void put_tensor(json_t *groups, const struct lm_config *c, const struct st_tensor *t)
{
    char name[256], shape[128];
    group_name(t->name, name);
    safetensors_shape_text(t, shape, sizeof shape);
    autofree char *key = xasprintf("%s %s %s", name, shape, safetensors_type(t));
    json_t *g = json_object_get(groups, key);
    if (!g) {
        g = json_object();
        json_object_set_new(g, "name", json_string(name));
        json_object_set_new(g, "shape", json_string(shape));
        json_object_set_new(g, "dtype", json_string(safetensors_type(t)));
        json_object_set_new(g, "part", json_string(plan_kind_name(plan_kind_of(c, t->name))));
        json_object_set_new(groups, key, g);
    }
    add_to(g, "count", 1);
    add_to(g, "bytes", (json_int_t)t->bytes);
}

static void put_tensors(json_t *root, const struct lm_config *c, const struct safetensors *s)
{
    json_t *groups = json_object(), *list = json_array(), *types = json_object(), *g;
    const char *key;
    for (int i = 0; i < safetensors_count(s); i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        put_tensor(groups, c, t);
        add_to(types, safetensors_type(t), 1);
    }
    json_object_foreach(groups, key, g)
    {
        json_array_append(list, g);
    }
    json_decref(groups);
    put_int(root, "files", safetensors_files(s));
    put_int(root, "bytes", (json_int_t)safetensors_bytes(s));
    put_int(root, "tensors", safetensors_count(s));
    json_object_set_new(root, "dtypes", types);
    json_object_set_new(root, "groups", list);
}

static void put_tokenizer(json_t *root, const struct model_config *c, const struct tokenizer *t)
{
    static const char *const marks[] = {"<s>",          "</s>",    "<SPECIAL_10>", "<SPECIAL_11>",
                                        "<SPECIAL_12>", "<image>", "<img>",        "</img>"};
    json_t *o = json_object();
    int added = 0;
    for (int32_t i = 0; i < tokenizer_size(t); i++)
        added += tokenizer_is_special(t, i);
    put_int(o, "ids", tokenizer_size(t));
    put_int(o, "added tokens", added);
    put_int(o, "rows without a token", c->lm.vocab - tokenizer_size(t));
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (tokenizer_find(t, marks[i]) >= 0)
            put_int(o, marks[i], tokenizer_find(t, marks[i]));
    json_t *eos = json_array();
    for (int i = 0; i < c->n_eos; i++)
        json_array_append_new(eos, json_integer(c->eos[i]));
    json_object_set_new(o, "end of a reply", eos);
    json_object_set_new(root, "tokenizer", o);
}

static void add_problem(void *arg, const char *text)
{
    json_t *refused = json_object_get(arg, "refused");
    if (json_array_size(refused) < MAX_PROBLEMS)
        json_array_append_new(refused, json_string(text));
    else
        add_to(arg, "more refused", 1);
}

static void add_ignored(void *arg, const struct st_tensor *t)
{
    json_array_append_new(json_object_get(arg, "ignored"), json_string(t->name));
}

static void look(json_t *root, const char *dir)
{
    struct model_config c;
    struct err e = ERR_INIT;
    struct safetensors *s = NULL;
    struct tokenizer *t = NULL;
    json_t *config = json_object();
    bool known = config_load(&c, dir, &e) == 0;
    json_object_set_new(root, "config", config);
    if (!known) {
        add_problem(root, e.text);
        c = (struct model_config){0};
    } else {
        put_language(config, &c.lm);
        put_vision(config, &c);
        if (c.quant[0])
            json_object_set_new(config, "quantized", json_string(c.quant));
    }
    if (!(s = safetensors_open(dir, &e)))
        add_problem(root, e.text);
    else
        put_tensors(root, &c.lm, s);
    if (!(t = tokenizer_open(dir, &e)))
        add_problem(root, e.text);
    else if (known)
        put_tokenizer(root, &c, t);
    struct plan_check l = {add_problem, add_ignored, root};
    int vocab = known && s ? plan_check(&l, &c, s) : 0;
    if (vocab && t && engine_check_tokenizer(&c, vocab, t, &e))
        add_problem(root, e.text);
    tokenizer_free(t);
    safetensors_close(s);
}

static void print_section(const char *title, const json_t *o)
{
    const char *key;
    json_t *v;
    if (!json_object_size(o))
        return;
    printf("\n%s\n", title);
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        autofree char *text =
            json_is_string(v) ? xstrdup(json_string_value(v)) : json_dumps(v, JSON_ENCODE_ANY);
        printf("  %-22s %s\n", key, text);
    }
}

static void print_groups(const json_t *groups)
{
    size_t i, widest = 0;
    json_t *g;
    json_array_foreach(groups, i, g)
    {
        size_t n = json_string_length(json_object_get(g, "name"));
        widest = n > widest ? n : widest;
    }
    if (widest)
        printf("\ntensors\n  %-*s %5s  %-18s %-6s %12s\n", (int)widest, "name", "count", "shape", "dtype",
               "MiB");
    json_array_foreach(groups, i, g)
    {
        printf("  %-*s %5lld  %-18s %-6s %12.3f\n", (int)widest,
               json_string_value(json_object_get(g, "name")),
               (long long)json_integer_value(json_object_get(g, "count")),
               json_string_value(json_object_get(g, "shape")), json_string_value(json_object_get(g, "dtype")),
               (double)json_integer_value(json_object_get(g, "bytes")) / (1 << 20));
    }
}

static void print_list(const char *title, const json_t *list)
{
    size_t i;
    json_t *v;
    if (json_array_size(list))
        printf("\n%s\n", title);
    json_array_foreach(list, i, v)
    {
        printf("  %s\n", json_string_value(v));
    }
}

static void print_text(const json_t *root)
{
    long long bytes = json_integer_value(json_object_get(root, "bytes"));
    long long more = json_integer_value(json_object_get(root, "more refused"));
    printf("%s: %lld tensors in %lld files, %.2f GB\n", json_string_value(json_object_get(root, "model")),
           (long long)json_integer_value(json_object_get(root, "tensors")),
           (long long)json_integer_value(json_object_get(root, "files")), (double)bytes * 1e-9);
    print_section("config", json_object_get(root, "config"));
    print_section("tokenizer", json_object_get(root, "tokenizer"));
    print_section("tensors of each type", json_object_get(root, "dtypes"));
    print_groups(json_object_get(root, "groups"));
    print_list("ignored: not needed at run time", json_object_get(root, "ignored"));
    print_list("refused", json_object_get(root, "refused"));
    if (more)
        printf("  and %lld more\n", more);
    puts(json_is_true(json_object_get(root, "ok")) ? "\nholorun can run this model"
                                                   : "\nholorun cannot run this model: see above");
}

int cmd_inspect(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings set = {0};
    int n = options_parse(&inspect_command, &set, argc, argv, &e);
    if (n < 0)
        return options_refuse(&inspect_command, &e);
    autofree char *dir = model_find(n ? argv[0] : set.model, &e);
    if (!dir)
        return options_failed(&e);
    json_auto_t *root = json_pack("{s:s, s:b, s:[], s:[]}", "model", dir, "ok", 0, "ignored", "refused");
    look(root, dir);
    bool ok = json_array_size(json_object_get(root, "refused")) == 0;
    json_object_set_new(root, "ok", json_boolean(ok));
    if (!set.json)
        print_text(root);
    else
        options_print_json(json_incref(root), JSON_COMPACT | JSON_ENSURE_ASCII);
    return ok ? ERR_NONE : ERR_MODEL;
}
