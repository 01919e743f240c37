/* json_schema.h - compiles a JSON schema into a grammar expression.
 *
 * A reply has one format: keys in the order of the schema, ", " and ": " as separators, no other white space.
 * Each reply matches the enforced keywords, but not every matching value can be generated:
 *
 *   object   properties, required; additionalProperties and required names without a schema, if no
 *            properties are listed; propertyNames with an enum
 *   array    items, prefixItems (all of them), minItems, maxItems (up to 256)
 *   string   pattern (most of ECMAScript's: json_schema_pattern.c), format date, time, date-time, uuid, ipv4,
 *            email, or minLength, maxLength (up to 256)
 *   integer, number   minimum, maximum, exclusive ones; multipleOf 1, 0.1, 0.01, ...; nine digits before
 *            the point, six after it
 *   boolean, null, enum, const, anyOf, oneOf, allOf (merged), nullable, lists of types, no type
 *   $ref     within the schema; a schema that contains itself is nested at most three deep
 *
 * Other keywords that restrict values (uniqueItems, not, ...) are not enforced: they are listed in the notes,
 * and the client, which has the schema, checks them. */
#pragma once

#include "grammar/grammar.h"
#include "serve/notes.h"

#include <jansson.h>

/* Returns a node, or -1 with ERR_USAGE, which names the position in the schema and the fault. */
gx_node json_schema_expression(struct gx *x, const json_t *schema, struct err *e);

/* Checks a schema and notes the keywords that are not enforced. w may be NULL. Returns -1 with ERR_USAGE. */
int json_schema_check(const json_t *schema, struct notes *n, struct effort *w, struct err *e);

/* Returns an expression for any JSON object, nested at most three deep. */
gx_node json_any_object(struct gx *x);
