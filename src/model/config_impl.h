/* config_impl.h - JSON reader shared by src/model/config*.c.
 *
 * A reader stores its location ("config.json: llm_config") and the first error, so callers are flat lists
 * of keys with one check at the end. A key may have several spellings, separated by '|'; the first that is
 * present and not null is used. */
#pragma once

#include "model/config.h"

#include <jansson.h>

enum {
    CONFIG_MAX_SIZE = 1 << 18, /* limit of any dimension: the product of two fits easily in 64 bits */
    CONFIG_MAX_VOCAB = 1 << 22,
    CONFIG_MAX_HEADS = 4096,
    CONFIG_MAX_CONTEXT = 1 << 28,
    CONFIG_MAX_EXPERTS = 4096,
    CONFIG_MAX_PATCHES = 1 << 16, /* limit of a canvas: 4096 x 4096 pixels */
};

struct reader {
    char where[112];      /* location for messages */
    const json_t *object; /* NULL if the file or part is missing */
    struct err *e;        /* shared by a model's readers; holds the first failure */
};

/* Parses a file as a JSON object. Returns NULL with e; the caller calls json_decref(). */
json_t *reader_parse(const char *text, const char *file, struct err *e);

void reader_refuse(struct reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

json_t *reader_get(const struct reader *r, const char *names); /* NULL: missing */
/* Returns a number, also from "Infinity" or {"__float__": "Infinity"}; NAN for anything else. */
double reader_number(const json_t *v);

/* Reads an integer in [lo, hi]. Returns `absent` if the key is missing; with absent < 0 that is an error. */
int reader_int(struct reader *r, const char *names, int lo, int hi, int absent);
float reader_float(struct reader *r, const char *names, double lo, double hi, double absent);
bool reader_bool(struct reader *r, const char *names, bool absent);

/* Rejects any value of a key but the implemented one. */
void reader_only_text(struct reader *r, const char *names, const char *known);
void reader_only_bool(struct reader *r, const char *names, bool known);

/* Returns a reader of a nested object; its `object` is NULL if that is missing. */
struct reader reader_inside(struct reader *r, const char *names);

/* Read the parts of a configuration. config: config.json; pre: the preprocessor's file. */
void config_read_language(struct reader *r, struct lm_config *c);
void config_read_vision(struct reader *config, struct reader *pre, struct model_config *c);
/* Return whether config.json names one of Qwen's models; read the configuration of such a model except its
 * stop tokens. */
bool config_is_qwen(const struct reader *config);
void config_read_qwen(struct reader *config, struct reader *pre, struct model_config *c);
void config_read_qwen_vision(struct reader *config, struct reader *vit, struct reader *pre,
                             struct model_config *c);
/* Reads three numbers, one per channel. Returns false if the key is missing. */
bool config_read_triple(struct reader *r, const char *names, float out[3]);
void config_read_quant(struct reader *config, struct reader *lm, struct reader *file, struct model_config *c);
