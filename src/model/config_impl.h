/* config_impl.h - inside of config.h; private to src/model/config*.c.
 *
 * Files are read through a small reader that knows where it is ("config.json: llm_config") and keeps the
 * first thing that went wrong: the code that uses it is a flat list of what is read, with one check at the
 * end.  A key may have several spellings, separated by '|'; the first that is present and not null counts.
 */
#ifndef HOLORUN_MODEL_CONFIG_IMPL_H
#define HOLORUN_MODEL_CONFIG_IMPL_H

#include "model/config.h"

#include <jansson.h>

enum {
    CONFIG_MAX_SIZE = 1 << 18, /* of any single dimension: products of two stay far inside 64 bits */
    CONFIG_MAX_VOCAB = 1 << 22,
    CONFIG_MAX_HEADS = 4096,
    CONFIG_MAX_CONTEXT = 1 << 28,
    CONFIG_MAX_EXPERTS = 4096,
    CONFIG_MAX_PATCHES = 1 << 16, /* of a canvas: 4096 x 4096 pixels */
};

struct reader {
    char where[112];      /* for messages */
    const json_t *object; /* NULL where the file or the part is missing: nothing must be read */
    struct err *e;        /* shared by the readers of one model; holds the first failure */
};

/* A file as an object of JSON; NULL with a message when it is none. */
json_t *reader_parse(const char *text, const char *file, struct err *e);

bool reader_failed(const struct reader *r);
void reader_refuse(struct reader *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

json_t *reader_get(const struct reader *r, const char *names); /* NULL: missing */
double reader_number(const json_t *v); /* also "Infinity" or {"__float__": "Infinity"}; NAN when it is none */

/* A whole number in [lo, hi]; `absent` when the key is missing, which is an error when absent < 0. */
int reader_int(struct reader *r, const char *names, int lo, int hi, int absent);
float reader_float(struct reader *r, const char *names, double lo, double hi, double absent);
bool reader_bool(struct reader *r, const char *names, bool absent);

/* A value of which one meaning is implemented. */
void reader_only_text(struct reader *r, const char *names, const char *known);
void reader_only_bool(struct reader *r, const char *names, bool known);

/* A nested object as a reader of its own; its object is NULL when it is missing. */
struct reader reader_inside(struct reader *r, const char *names);

/* The parts.  config is the whole file, pre the preprocessor's. */
void config_read_language(struct reader *r, struct lm_config *c);
void config_read_vision(struct reader *config, struct reader *pre, struct model_config *c);
void config_read_quant(struct reader *config, struct reader *lm, struct reader *file, struct model_config *c);

#endif
