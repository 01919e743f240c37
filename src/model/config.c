/* config.c - see config.h.
 *
 * Files are read through a small reader that knows where it is ("config.json: llm_config") and keeps
 * the first thing that went wrong: the code below it is a flat list of what is read, and one check at
 * the end.  A key may have several spellings, separated by '|'; the first that is present counts.
 *
 * Python's json module writes Infinity and NaN, which JSON does not have; they are put in quotes before
 * parsing and number() understands them.
 */
#include "model/config.h"

#include "base/buf.h"
#include "base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 4 << 20,
    MAX_SIZE = 1 << 18, /* of any single dimension: products of two stay far inside 64 bits */
    MAX_VOCAB = 1 << 22,
    MAX_HEADS = 4096,
    MAX_CONTEXT = 1 << 28,
};

struct reader {
    char where[112]; /* for messages */
    const json_t *object;
    struct err *e; /* shared by the readers of one model; holds the first failure */
};

/* ---- JSON as it is found ---------------------------------------------------------------------- */

static bool is_word(const char *s, const char *word)
{
    return !strncmp(s, word, strlen(word));
}

/* Copies JSON text, with bare Infinity, -Infinity and NaN quoted. */
static int quote_infinities(const char *s, struct buf *out)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool inside = false;
    for (; *s; s++) {
        const char *word = NULL;
        if (inside && *s == '\\' && s[1]) {
            buf_putc(out, *s++);
        } else if (*s == '"') {
            inside = !inside;
        } else if (!inside) {
            for (size_t i = 0; i < sizeof words / sizeof *words && !word; i++)
                word = is_word(s, words[i]) ? words[i] : NULL;
        }
        if (word) {
            buf_printf(out, "\"%s\"", word);
            s += strlen(word) - 1;
        } else {
            buf_putc(out, *s);
        }
    }
    return out->full ? -1 : 0;
}

static json_t *parse(const char *text, const char *file, struct err *e)
{
    struct buf quoted;
    buf_init(&quoted, 2 * (size_t)TEXT_MAX);
    json_t *root = NULL;
    json_error_t why;
    if (quote_infinities(text, &quoted))
        err_set(e, ERR_MODEL, "%s: too long", file);
    else if (!(root = json_loads(quoted.data, JSON_REJECT_DUPLICATES, &why)))
        err_set(e, ERR_MODEL, "%s: line %d: %s", file, why.line, why.text);
    else if (!json_is_object(root)) {
        err_set(e, ERR_MODEL, "%s: not a JSON object", file);
        json_decref(root);
        root = NULL;
    }
    buf_free(&quoted);
    return root;
}

/* ---- reader ------------------------------------------------------------------------------------ */

static bool failed(const struct reader *r)
{
    return r->e->kind != ERR_NONE;
}

static void refuse(struct reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void refuse(struct reader *r, const char *fmt, ...)
{
    if (failed(r))
        return;
    va_list ap;
    va_start(ap, fmt);
    char text[ERR_TEXT];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(r->e, ERR_MODEL, "%s: %s", r->where, text);
}

/* The value of the first spelling that is there and not null. */
static json_t *get(const struct reader *r, const char *names)
{
    char name[64];
    for (const char *p = names;; p++) {
        size_t n = strcspn(p, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        json_t *v = json_object_get(r->object, name);
        if (v && !json_is_null(v))
            return v;
        p += n;
        if (!*p)
            return NULL;
    }
}

/* A number, also spelled "Infinity" or {"__float__": "Infinity"}; NAN when it is none. */
static double number(const json_t *v)
{
    if (json_is_number(v))
        return json_number_value(v);
    if (json_is_object(v))
        v = json_object_get(v, "__float__");
    const char *s = json_string_value(v);
    if (!s)
        return NAN;
    char *end;
    double x = strtod(s, &end);
    return *end || end == s ? NAN : x;
}

/* A whole number in [lo, hi]; `absent` when the key is missing, which is an error when absent < 0. */
static int get_int(struct reader *r, const char *names, int lo, int hi, int absent)
{
    const json_t *v = get(r, names);
    if (!v && absent >= 0)
        return absent;
    if (!v)
        refuse(r, "'%s' is missing", names);
    double x = v ? number(v) : lo;
    if (!(x >= lo && x <= hi) || x != floor(x))
        refuse(r, "'%s' is not a whole number from %d to %d", names, lo, hi);
    return failed(r) ? lo : (int)x;
}

static float get_float(struct reader *r, const char *names, double lo, double hi, double absent)
{
    const json_t *v = get(r, names);
    double x = v ? number(v) : absent;
    if (!(x >= lo && x <= hi)) {
        refuse(r, "'%s' is not a number from %g to %g", names, lo, hi);
        return (float)absent;
    }
    return (float)x;
}

static bool get_bool(struct reader *r, const char *names, bool absent)
{
    const json_t *v = get(r, names);
    if (v && !json_is_boolean(v))
        refuse(r, "'%s' is neither true nor false", names);
    return v ? json_is_true(v) : absent;
}

/* A value of which one meaning is implemented. */
static void only_text(struct reader *r, const char *names, const char *known)
{
    const json_t *v = get(r, names);
    const char *s = json_string_value(v);
    if (v && (!s || strcmp(s, known)))
        refuse(r, "'%s' is '%s'; only '%s' is implemented", names, s ? s : "not a text", known);
}

static void only_bool(struct reader *r, const char *names, bool known)
{
    if (get_bool(r, names, known) != known)
        refuse(r, "'%s' is %s, which is not implemented", names, known ? "false" : "true");
}

/* A nested object as a reader of its own; its object is NULL when it is missing. */
static struct reader inside(struct reader *r, const char *names)
{
    const json_t *v = get(r, names);
    if (v && !json_is_object(v))
        refuse(r, "'%s' is not an object", names);
    struct reader in = {.object = json_is_object(v) ? v : NULL, .e = r->e};
    snprintf(in.where, sizeof in.where, "%.60s: %.*s", r->where, (int)(strcspn(names, "|") & 31), names);
    return in;
}

/* ---- language model ----------------------------------------------------------------------------- */

static char letter_of(const char *kind)
{
    static const struct {
        const char *kind;
        char letter;
    } kinds[] = {{"linear_attention", 'M'}, {"mamba", 'M'}, {"full_attention", '*'},
                 {"attention", '*'},        {"mlp", '-'},   {"moe", 'E'}};
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind))
            return kinds[i].letter;
    return '?';
}

/* A text of letters, or in newer files a list of words; empty when there is neither. */
static void find_pattern(const struct reader *r, char out[CONFIG_MAX_LAYERS + 2])
{
    const json_t *words = get(r, "layers_block_type|layer_types");
    const char *letters = json_string_value(get(r, "hybrid_override_pattern"));
    size_t n = 0;
    if (letters)
        n = (size_t)snprintf(out, CONFIG_MAX_LAYERS + 2, "%s", letters);
    else
        for (size_t i = 0; i < json_array_size(words) && n <= CONFIG_MAX_LAYERS; i++)
            out[n++] = letter_of(json_string_value(json_array_get(words, i)));
    out[n <= CONFIG_MAX_LAYERS ? n : CONFIG_MAX_LAYERS + 1] = 0;
}

static void read_pattern(struct reader *r, struct lm_config *c)
{
    char s[CONFIG_MAX_LAYERS + 2];
    find_pattern(r, s);
    size_t n = strlen(s);
    if (!n || n > CONFIG_MAX_LAYERS) {
        refuse(r, "'hybrid_override_pattern' does not name 1 to %d layers", CONFIG_MAX_LAYERS);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!strchr("M*-", s[i]))
            refuse(r, "'hybrid_override_pattern' has '%c' at layer %zu%s; implemented are M, * and -", s[i],
                   i, s[i] == 'E' ? ", a mixture of experts" : "");
    memcpy(c->pattern, s, n + 1);
    c->layers = (int)n;
    int layers = get_int(r, "num_hidden_layers", 1, CONFIG_MAX_LAYERS, c->layers);
    if (layers != c->layers)
        refuse(r, "'num_hidden_layers' is %d but 'hybrid_override_pattern' has %d letters", layers,
               c->layers);
}

/* One width for all MLPs, or one for each of them in order. */
static void read_mlp(struct reader *r, struct lm_config *c)
{
    const json_t *v = get(r, "intermediate_size");
    size_t n = json_is_array(v) ? json_array_size(v) : 1, mlps = 0;
    for (int i = 0; i < c->layers; i++)
        mlps += c->pattern[i] == LAYER_MLP;
    if (n != 1 && n != mlps)
        refuse(r, "'intermediate_size' has %zu entries for %zu MLP layers", n, mlps);
    size_t k = 0;
    for (int i = 0; i < c->layers; i++) {
        if (c->pattern[i] != LAYER_MLP)
            continue;
        double x = number(json_is_array(v) ? json_array_get(v, n == 1 ? 0 : k++) : v);
        if (!(x >= 1 && x <= MAX_SIZE) || x != floor(x))
            refuse(r, "'intermediate_size' gives no width for the MLP of layer %d", i);
        else
            c->mlp[i] = (int)x;
    }
}

static void read_mamba(struct reader *r, struct lm_config *c)
{
    struct ssm_shape *s = &c->ssm;
    s->heads = get_int(r, "mamba_num_heads", 1, MAX_HEADS, -1);
    s->head_dim = get_int(r, "mamba_head_dim", 1, 1024, -1);
    s->state = get_int(r, "ssm_state_size", 1, 1024, -1);
    s->groups = get_int(r, "n_groups|mamba_n_groups", 1, MAX_HEADS, -1);
    s->conv = get_int(r, "conv_kernel", 2, 16, -1);
    s->chunk = get_int(r, "chunk_size", 1, 1024, 128);
    c->conv_bias = get_bool(r, "use_conv_bias", true);
    if (s->heads % s->groups)
        refuse(r, "%d heads cannot share %d groups", s->heads, s->groups);
    s->dt_min = 0;
    s->dt_max = INFINITY;
    const json_t *limit = get(r, "time_step_limit");
    if (limit) {
        double lo = number(json_array_get(limit, 0)), hi = number(json_array_get(limit, 1));
        if (json_array_size(limit) != 2 || !(lo >= 0 && hi > lo))
            refuse(r, "'time_step_limit' is not a pair of rising numbers");
        else if (lo > 0)
            warn("%s: time steps are held above %g, as 'time_step_limit' says", r->where, lo);
        s->dt_min = (float)lo;
        s->dt_max = (float)hi;
    }
    only_text(r, "mamba_hidden_act", "silu");
    only_bool(r, "mamba_proj_bias|use_bias", false);
}

static void read_attention(struct reader *r, struct lm_config *c)
{
    c->q_heads = get_int(r, "num_attention_heads", 1, MAX_HEADS, -1);
    c->kv_heads = get_int(r, "num_key_value_heads", 1, MAX_HEADS, c->q_heads);
    c->head_dim = get_int(r, "head_dim|attention_head_dim", 1, 1024, c->hidden / c->q_heads);
    if (c->head_dim < 1 || c->q_heads % c->kv_heads)
        refuse(r, "%d query heads cannot share %d key heads", c->q_heads, c->kv_heads);
    only_bool(r, "attention_bias", false);
    if (get(r, "sliding_window"))
        refuse(r, "'sliding_window' is set, which is not implemented");
}

static void read_language(struct reader *r, struct lm_config *c)
{
    only_text(r, "model_type", "nemotron_h");
    read_pattern(r, c);
    c->hidden = get_int(r, "hidden_size", 1, MAX_SIZE, -1);
    read_mlp(r, c);
    only_text(r, "mlp_hidden_act", "relu2");
    only_bool(r, "mlp_bias", false);
    if (strchr(c->pattern, LAYER_MAMBA))
        read_mamba(r, c);
    if (strchr(c->pattern, LAYER_ATTENTION))
        read_attention(r, c);
    only_bool(r, "residual_in_fp32", false);
    c->tied = get_bool(r, "tie_word_embeddings", false);
    c->eps = get_float(r, "layer_norm_epsilon|norm_eps|rms_norm_eps", 0, 1, 1e-5);
    c->vocab = get_int(r, "vocab_size", 1, MAX_VOCAB, -1);
    c->max_tokens = get_int(r, "max_position_embeddings", 1, MAX_CONTEXT, 131072);
}

/* ---- vision ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int hidden, blocks, heads, mlp;
} known_vits[] = {
    {"vit_base_patch16_224", 768, 12, 12, 3072},
    {"vit_large_patch16_224", 1024, 24, 16, 4096},
    {"vit_huge_patch16_224", 1280, 32, 16, 5120},
};

/* Sizes as numbers, or by the name timm gives this shape. */
static void read_vit(struct reader *r, struct vit_config *v)
{
    struct reader args = inside(r, "args");
    if (args.object && get(&args, "min_num_patches"))
        refuse(r, "'args.min_num_patches' asks for images of any size, which is not implemented");
    if (args.object && get_bool(&args, "model_norm", false))
        refuse(r, "'args.model_norm' is true, which is not implemented");
    const char *name = args.object ? json_string_value(get(&args, "model")) : NULL;
    int base[4] = {-1, -1, -1, -1};
    for (size_t i = 0; name && i < sizeof known_vits / sizeof *known_vits; i++)
        if (!strcmp(name, known_vits[i].name))
            memcpy(base, &known_vits[i].hidden, sizeof base);
    if (name && base[0] < 0 && !get(r, "hidden_size"))
        refuse(r, "'args.model' is '%s', whose sizes are not known, and 'hidden_size' is missing", name);
    v->hidden = get_int(r, "hidden_size", 1, MAX_SIZE, base[0]);
    v->blocks = get_int(r, "num_hidden_layers", 1, CONFIG_MAX_LAYERS, base[1]);
    v->heads = get_int(r, "num_attention_heads", 1, MAX_HEADS, base[2]);
    v->mlp = get_int(r, "intermediate_size", 1, MAX_SIZE, base[3]);
    if (v->hidden % v->heads)
        refuse(r, "%d columns cannot be split into %d heads", v->hidden, v->heads);
}

static void read_image(struct reader *r, struct model_config *c)
{
    struct vit_config *v = &c->vit;
    v->tile = get_int(r, "force_image_size", 32, 1024, -1);
    v->patch = get_int(r, "patch_size", 16, 16, 16);
    if (v->tile % (2 * v->patch))
        refuse(r, "'force_image_size' is %d, not a multiple of %d", v->tile, 2 * v->patch);
    if (get_float(r, "downsample_ratio", 0, 1, 0.5) != 0.5f)
        refuse(r, "'downsample_ratio' is not 0.5; nothing else is implemented");
    only_text(r, "ps_version", "v2");
    only_text(r, "image_tag_type", "internvl");
    v->projector = get_int(r, "projector_hidden_size", 1, MAX_SIZE, -1);
    c->image_token = get_int(r, "img_context_token_id|image_context_token_id", 0, MAX_VOCAB, -1);
    c->thumbnail = get_bool(r, "use_thumbnail", true);
}

/* The published constants of CLIP, which the tower was trained with. */
static const float clip_mean[3] = {0.48145466f, 0.4578275f, 0.40821073f};
static const float clip_std[3] = {0.26862954f, 0.26130258f, 0.27577711f};

static bool read_triple(struct reader *r, const char *names, float out[3])
{
    const json_t *v = r->object ? get(r, names) : NULL;
    if (!v)
        return false;
    for (size_t i = 0; i < 3; i++) {
        out[i] = (float)number(json_array_get(v, i));
        if (json_array_size(v) != 3 || !(fabsf(out[i]) < 1e6f))
            refuse(r, "'%s' is not three numbers", names);
    }
    return true;
}

static void read_norm(struct reader *config, struct reader *pre, struct model_config *c)
{
    memcpy(c->mean, clip_mean, sizeof clip_mean);
    memcpy(c->std, clip_std, sizeof clip_std);
    bool mean =
        read_triple(config, "norm_mean", c->mean) || read_triple(pre, "norm_mean|image_mean", c->mean);
    bool std = read_triple(config, "norm_std", c->std) || read_triple(pre, "norm_std|image_std", c->std);
    if (!mean || !std)
        warn("%s: no 'norm_mean' and 'norm_std'; going on with those of CLIP", config->where);
    for (int i = 0; i < 3; i++)
        if (!(c->std[i] > 1e-6f))
            refuse(config, "'norm_std' has an entry that is not positive");
}

/* ---- generation ----------------------------------------------------------------------------------- */

static void add_eos(struct reader *r, struct model_config *c)
{
    const json_t *v = r->object ? get(r, "eos_token_id") : NULL;
    size_t n = json_is_array(v) ? json_array_size(v) : v != NULL;
    for (size_t i = 0; i < n; i++) {
        double x = number(json_is_array(v) ? json_array_get(v, i) : v);
        if (!(x >= 0 && x < MAX_VOCAB) || x != floor(x) || c->n_eos == CONFIG_MAX_EOS) {
            refuse(r, "'eos_token_id' is not a token id or a list of at most %d", CONFIG_MAX_EOS);
            return;
        }
        c->eos[c->n_eos++] = (int)x;
    }
}

static void read_generation(struct reader *gen, struct reader *config, struct reader *lm,
                            struct model_config *c)
{
    add_eos(gen, c);
    if (!c->n_eos)
        add_eos(config, c);
    if (!c->n_eos)
        add_eos(lm, c);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static void read_all(struct reader *config, struct reader *pre, struct reader *gen, struct model_config *c)
{
    struct reader lm = inside(config, "llm_config|text_config");
    struct reader vit = inside(config, "vision_config");
    struct reader *language = lm.object ? &lm : config; /* a text model has its numbers at the top */
    c->vision = vit.object != NULL;
    if (c->vision && !lm.object)
        refuse(config, "'llm_config' is missing");
    read_language(language, &c->lm);
    c->max_tiles = 12;
    if (c->vision) {
        read_image(config, c);
        read_vit(&vit, &c->vit);
        read_norm(config, pre, c);
    }
    if (c->vision && pre->object) {
        c->max_tiles = get_int(pre, "max_num_tiles", 1, 64, 12);
        c->thumbnail = get_bool(pre, "use_thumbnail", c->thumbnail);
    }
    read_generation(gen, config, &lm, c);
}

int config_parse(struct model_config *c, const struct config_text *t, struct err *e)
{
    *c = (struct model_config){0};
    struct err first = ERR_INIT;
    json_t *roots[3] = {0};
    const char *const texts[3] = {t->config, t->preprocessor, t->generation};
    static const char *const files[3] = {"config.json", "preprocessor_config.json", "generation_config.json"};
    int rc = -1;
    for (int i = 0; i < 3; i++)
        if (texts[i] && !(roots[i] = parse(texts[i], files[i], e)))
            goto out;
    struct reader r[3];
    for (int i = 0; i < 3; i++) {
        r[i] = (struct reader){.object = roots[i], .e = &first};
        snprintf(r[i].where, sizeof r[i].where, "%s", files[i]);
    }
    read_all(&r[0], &r[1], &r[2], c);
    rc = first.kind ? err_set(e, ERR_MODEL, "%s", first.text) : 0;
out:
    for (int i = 0; i < 3; i++)
        json_decref(roots[i]);
    return rc;
}

int config_load(struct model_config *c, const char *dir, struct err *e)
{
    static const char *const files[3] = {"config.json", "preprocessor_config.json", "generation_config.json"};
    char *texts[3] = {0};
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++) {
        char *path = xasprintf("%s/%s", dir, files[i]);
        size_t len;
        if (i == 0 || file_exists(path))
            rc = file_read(path, TEXT_MAX, &texts[i], &len, e);
        free(path);
    }
    if (rc == 0)
        rc = config_parse(c, &(struct config_text){texts[0], texts[1], texts[2]}, e);
    if (rc && e) {
        e->kind = ERR_MODEL;
        err_prefix(e, "model '%s'", dir);
    }
    for (int i = 0; i < 3; i++)
        free(texts[i]);
    return rc;
}

/* ---- derived sizes ----------------------------------------------------------------------------- */

int config_inner(const struct lm_config *c)
{
    return c->ssm.heads * c->ssm.head_dim;
}

int config_conv_dim(const struct lm_config *c)
{
    return config_inner(c) + 2 * c->ssm.groups * c->ssm.state;
}

int config_proj_rows(const struct lm_config *c)
{
    return config_inner(c) + config_conv_dim(c) + c->ssm.heads;
}

int config_grid(const struct model_config *c)
{
    return c->vit.tile / c->vit.patch;
}

int config_tile_tokens(const struct model_config *c)
{
    return config_grid(c) * config_grid(c) / 4;
}
