/* json_schema_impl.h - inside of json_schema.c and its parts; private to src/serve. */
#ifndef HOLORUN_SERVE_JSON_SCHEMA_IMPL_H
#define HOLORUN_SERVE_JSON_SCHEMA_IMPL_H

#include "serve/json_schema.h"

enum {
    SCHEMA_DEPTH = 24,
    SCHEMA_NODES = 4000,
    SCHEMA_PROPERTIES = 128,
    SCHEMA_CHOICES = 512,
    SCHEMA_MERGED = 1 << 16, /* members and list entries that allOf copies */
    SCHEMA_NESTED = 3,       /* of a schema that contains itself */
    SCHEMA_WHOLE = 999999999,
    IMPOSSIBLE = -2, /* a node: no text of this schema ends within SCHEMA_NESTED */
};

struct schema_reading {
    struct gx *x;
    const json_t *root;
    json_t *merged;                   /* list of schemas that were made of others */
    const json_t *open[SCHEMA_DEPTH]; /* targets of references */
    int n_open, depth, nodes;
    size_t copied;   /* by merging; at most SCHEMA_MERGED */
    char where[256]; /* "#/properties/name" */
    struct notes *notes;
    struct err *e;
};

/* A node, IMPOSSIBLE, or -1 with an error. */
gx_node schema_read(struct schema_reading *r, const json_t *s);
gx_node schema_read_at(struct schema_reading *r, const char *key, const json_t *s);
int schema_refuse(struct schema_reading *r, const char *why);

/* A whole number from 0 to 256 under a key; `none` where it is missing. */
int schema_count(struct schema_reading *r, const json_t *s, const char *key, int none, int *out);

/* Values without parts (json_schema_values.c). */
gx_node schema_integer(struct schema_reading *r, const json_t *s);
gx_node schema_number(struct schema_reading *r, const json_t *s);
gx_node schema_string(struct schema_reading *r, const json_t *s);
/* The characters of a string, without quotes, that match; IMPOSSIBLE: the pattern is not implemented
 * (json_schema_pattern.c). */
gx_node schema_pattern(struct gx *x, const char *pattern);
gx_node schema_any_value(struct gx *x, int deep);
gx_node schema_any_object(struct gx *x, int deep);

/* Lists and objects (json_schema_parts.c). */
gx_node schema_array(struct schema_reading *r, const json_t *s);
gx_node schema_object(struct schema_reading *r, const json_t *s);
gx_node schema_list_of(struct gx *x, gx_node item, int min, int max);
/* A value as the grammar spells it. */
gx_node schema_literal(struct gx *x, const json_t *v);

#endif
