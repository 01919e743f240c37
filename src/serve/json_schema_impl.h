/* json_schema_impl.h - functions shared by json_schema*.c; private to src/serve. */
#pragma once

#include "serve/json_schema.h"

enum {
    SCHEMA_DEPTH = 24,
    SCHEMA_NODES = 4000,
    SCHEMA_PROPERTIES = 128,
    SCHEMA_CHOICES = 512,
    SCHEMA_MERGED = 1 << 16, /* members and list entries that allOf may copy */
    SCHEMA_NESTED = 3,       /* maximum depth of a schema within itself */
    SCHEMA_WHOLE = 999999999,
    IMPOSSIBLE = -2, /* result instead of a node: no text of this schema ends within SCHEMA_NESTED */
};

struct schema_reading {
    struct gx *x;
    const json_t *root;
    json_t *merged;                   /* list of merged schemas, freed at the end */
    const json_t *open[SCHEMA_DEPTH]; /* targets of references being read */
    int n_open, depth, nodes;
    size_t copied;   /* members copied by merging; at most SCHEMA_MERGED */
    char where[256]; /* "#/properties/name" */
    struct notes *notes;
    struct err *e;
};

/* Returns a node, IMPOSSIBLE, or -1 with e. */
gx_node schema_read(struct schema_reading *r, const json_t *s);
gx_node schema_read_at(struct schema_reading *r, const char *key, const json_t *s);
int schema_refuse(struct schema_reading *r, const char *why);

/* Reads a whole number from 0 to 256 under a key; `none` if it is missing. */
int schema_count(struct schema_reading *r, const json_t *s, const char *key, int none, int *out);

/* scalar values (json_schema_values.c) */
gx_node schema_integer(struct schema_reading *r, const json_t *s);
gx_node schema_number(struct schema_reading *r, const json_t *s);
gx_node schema_string(struct schema_reading *r, const json_t *s);
/* Returns an expression for the characters of a string, without quotes, that match the pattern; IMPOSSIBLE if
 * the pattern is not supported (json_schema_pattern.c). */
gx_node schema_pattern(struct gx *x, const char *pattern);
gx_node schema_any_value(struct gx *x, int deep);
gx_node schema_any_object(struct gx *x, int deep);

/* arrays and objects (json_schema_parts.c) */
gx_node schema_array(struct schema_reading *r, const json_t *s);
gx_node schema_object(struct schema_reading *r, const json_t *s);
gx_node schema_list_of(struct gx *x, gx_node item, int min, int max);
/* Returns a value in the format of the grammar. */
gx_node schema_literal(struct gx *x, const json_t *v);
