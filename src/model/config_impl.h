/* config_impl.h - inside of config.h; private to src/model/config*.c.
 *
 * A reader knows where it is ("config.json: llm_config") and keeps the first error, so its users are
 * flat lists of keys with one check at the end.  A key may have several spellings, separated by '|'; the
 * first that is present and not null counts.
 */
#ifndef HOLORUN_MODEL_CONFIG_IMPL_H
#define HOLORUN_MODEL_CONFIG_IMPL_H

#include "model/config.h"

#include <jansson.h>

enum {
    CONFIG_MAX_SIZE = 1 << 18, /* of any dimension: products of two stay far inside 64 bits */
    CONFIG_MAX_VOCAB = 1 << 22,
    CONFIG_MAX_HEADS = 4096,
    CONFIG_MAX_CONTEXT = 1 << 28,
    CONFIG_MAX_EXPERTS = 4096,
    CONFIG_MAX_PATCHES = 1 << 16, /* of a canvas: 4096 x 4096 pixels */
};

struct reader {
    char where[112];      /* for messages */
    const json_t *object; /* NULL where the file or part is missing */
    struct err *e;        /* shared by a model's readers; the first failure */
};

/* Parses a file as a JSON object; NULL with a message. */
json_t *reader_parse(const char *text, const char *file, struct err *e);

void reader_refuse(struct reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

json_t *reader_get(const struct reader *r, const char *names); /* NULL: missing */
/* also "Infinity" or {"__float__": "Infinity"}; NAN for anything else */
double reader_number(const json_t *v);

/* An integer in [lo, hi]; `absent` when the key is missing, an error when absent < 0. */
int reader_int(struct reader *r, const char *names, int lo, int hi, int absent);
float reader_float(struct reader *r, const char *names, double lo, double hi, double absent);
bool reader_bool(struct reader *r, const char *names, bool absent);

/* A key of which one value is implemented. */
void reader_only_text(struct reader *r, const char *names, const char *known);
void reader_only_bool(struct reader *r, const char *names, bool known);

/* A reader of a nested object; its object is NULL when missing. */
struct reader reader_inside(struct reader *r, const char *names);

/* config: the whole config.json; pre: the preprocessor's file. */
void config_read_language(struct reader *r, struct lm_config *c);
void config_read_vision(struct reader *config, struct reader *pre, struct model_config *c);
/* Whether a model says to be one of Qwen's; and all of it but the stop tokens. */
bool config_is_qwen(const struct reader *config);
void config_read_qwen(struct reader *config, struct reader *pre, struct model_config *c);
void config_read_qwen_vision(struct reader *config, struct reader *vit, struct reader *pre,
                             struct model_config *c);
/* Three numbers, of channels; false: missing. */
bool config_read_triple(struct reader *r, const char *names, float out[3]);
void config_read_quant(struct reader *config, struct reader *lm, struct reader *file, struct model_config *c);

#endif
