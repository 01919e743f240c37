/* config.c - reads the configuration of a model directory or GGUF file (config.h). config_reader.c reads
 * JSON; config_lm.c, config_vision.c, config_qwen.c, config_qwen_vision.c and config_quant.c read its
 * parts. */
#include "model/config_impl.h"

#include "base/file.h"
#include "checkpoint/gguf_model.h"
#include "ops/kv8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- generation ---------------------------------------------------------------------------------------- */

static void add_eos(struct reader *r, struct model_config *c)
{
    const json_t *v = r->object ? reader_get(r, "eos_token_id") : NULL;
    size_t n = json_is_array(v) ? json_array_size(v) : v != NULL;
    for (size_t i = 0; i < n; i++) {
        double x = reader_number(json_is_array(v) ? json_array_get(v, i) : v);
        if (!(x >= 0 && x < CONFIG_MAX_VOCAB) || x != floor(x) || c->n_eos == CONFIG_MAX_EOS) {
            reader_refuse(r, "'eos_token_id' is not a token id or a list of at most %d", CONFIG_MAX_EOS);
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

enum { FILES = 5 };
static const char *const files[FILES] = {"config.json", "preprocessor_config.json", "generation_config.json",
                                         "hf_quant_config.json", "processor_config.json"};

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void read_nemotron(struct reader *config, struct reader *pre, struct model_config *c)
{
    struct reader lm = reader_inside(config, "llm_config|text_config");
    struct reader vit = reader_inside(config, "vision_config");
    struct reader *language = lm.object ? &lm : config; /* text models have these keys at the top level */
    c->vision = vit.object != NULL;
    if (c->vision && !lm.object)
        reader_refuse(config, "'llm_config' is missing");
    config_read_language(language, &c->lm);
    c->max_tiles = 1;
    c->image_open = c->image_close = -1;
    if (c->vision)
        config_read_vision(config, pre, c);
}

static void read_all(struct reader *config, struct reader *pre, struct reader *gen, struct reader *quant,
                     struct model_config *c)
{
    struct reader lm = reader_inside(config, "llm_config|text_config");
    if (config_is_qwen(config))
        config_read_qwen(config, pre, c);
    else
        read_nemotron(config, pre, c);
    read_generation(gen, config, &lm, c);
    config_read_quant(config, &lm, quant, c);
}

int config_parse(struct model_config *c, const struct config_text *t, struct err *e)
{
    *c = (struct model_config){0};
    struct err first = ERR_INIT;
    json_t *roots[FILES] = {0};
    const char *const texts[FILES] = {t->config, t->preprocessor, t->generation, t->quant, t->processor};
    int rc = -1;
    for (int i = 0; i < FILES; i++)
        if (texts[i] && !(roots[i] = reader_parse(texts[i], files[i], e)))
            goto out;
    struct reader r[FILES];
    for (int i = 0; i < FILES; i++) {
        r[i] = (struct reader){.object = roots[i], .e = &first};
        snprintf(r[i].where, sizeof r[i].where, "%s", files[i]);
    }
    struct reader images = r[4].object ? reader_inside(&r[4], "image_processor") : r[1];
    read_all(&r[0], r[1].object ? &r[1] : &images, &r[2], &r[3], c);
    rc = first.kind ? err_set(e, ERR_MODEL, "%s", first.text) : 0;
out:
    for (int i = 0; i < FILES; i++)
        json_decref(roots[i]);
    return rc;
}

/* Builds the texts of config.json and preprocessor_config.json from a GGUF file. */
static int read_gguf(const char *place, char *texts[FILES], struct err *e)
{
    struct err second = ERR_INIT;
    struct gguf_file *text = gguf_open_text(place, e),
                     *vision = text ? gguf_open_vision(place, &second) : NULL;
    int rc = text ? 0 : -1;
    if (second.kind)
        rc = err_set(e, ERR_MODEL, "%s", second.text);
    if (rc == 0)
        rc = gguf_config(text, vision, &texts[0], &texts[1], e);
    gguf_close(vision);
    gguf_close(text);
    return rc;
}

static int read_files(const char *dir, char *texts[FILES], struct err *e)
{
    int rc = 0;
    for (int i = 0; i < FILES && rc == 0; i++) {
        autofree char *path = xasprintf("%s/%s", dir, files[i]);
        size_t len;
        if (i == 0 || file_exists(path))
            rc = file_read(path, CONFIG_TEXT_MAX, &texts[i], &len, e);
    }
    return rc;
}

char *config_source(const char *dir)
{
    char *texts[FILES] = {0};
    size_t len;
    autofree char *path = xasprintf("%s/%s", dir, files[0]);
    if (gguf_is_place(dir) ? read_gguf(dir, texts, NULL)
                           : file_read(path, CONFIG_TEXT_MAX, &texts[0], &len, NULL))
        texts[0] = NULL;
    free(texts[1]);
    return texts[0];
}

int config_load(struct model_config *c, const char *dir, struct err *e)
{
    char *texts[FILES] = {0};
    int rc = gguf_is_place(dir) ? read_gguf(dir, texts, e) : read_files(dir, texts, e);
    if (rc == 0)
        rc = config_parse(c, &(struct config_text){texts[0], texts[1], texts[2], texts[3], texts[4]}, e);
    if (rc == 0)
        c->lm.delta.tiled = gguf_is_place(dir);
    if (rc && e) {
        e->kind = ERR_MODEL;
        err_prefix(e, "model '%s'", dir);
    }
    for (int i = 0; i < FILES; i++)
        free(texts[i]);
    return rc;
}

int config_check_vision(const struct model_config *c, const char *dir, struct err *e)
{
    if (c->vision)
        return 0;
    return err_set(
        e, ERR_USAGE,
        "'%s' is a text model without a vision encoder and cannot process images: use it with ask, "
        "serve or bench and text only, or pass -m a model with a vision encoder ('holorun models' "
        "lists some)",
        dir);
}

/* ---- derived sizes ------------------------------------------------------------------------------------- */

int config_inner(const struct lm_config *c)
{
    return c->ssm.heads * c->ssm.head_dim + c->delta.value_heads * c->delta.value;
}

int config_conv_dim(const struct lm_config *c)
{
    return config_inner(c) + 2 * c->ssm.groups * c->ssm.state + 2 * c->delta.key_heads * c->delta.key;
}

int config_groups(const struct lm_config *c)
{
    return c->ssm.groups + c->delta.key_heads;
}

int config_conv_taps(const struct lm_config *c)
{
    return c->delta.key_heads ? c->delta.conv : c->ssm.conv;
}

int config_chunk(const struct lm_config *c)
{
    enum { ANY = 64 }; /* chunk size of models without a recurrence */
    return c->delta.key_heads ? c->delta.chunk : c->ssm.chunk ? c->ssm.chunk : ANY;
}

int64_t config_state_rows(const struct lm_config *c)
{
    return c->delta.key_heads ? (int64_t)c->delta.value_heads * c->delta.key : config_inner(c);
}

int64_t config_state_cols(const struct lm_config *c)
{
    return c->delta.key_heads ? c->delta.value : c->ssm.state;
}

int64_t config_kv_cols(const struct lm_config *c, enum dtype kv)
{
    return kv == DT_F8E4M3 ? kv8_cols(c->kv_heads, c->head_dim) : (int64_t)c->kv_heads * c->head_dim;
}

int config_proj_rows(const struct lm_config *c)
{
    return config_inner(c) + config_conv_dim(c) + c->ssm.heads;
}

int config_image_cols(const struct model_config *c)
{
    return c->lm.hidden * (1 + c->vit.n_deepstack);
}

int config_grid(const struct model_config *c)
{
    return c->vit.tile / c->vit.patch;
}

int config_tile_tokens(const struct model_config *c)
{
    return config_grid(c) * config_grid(c) / 4;
}
