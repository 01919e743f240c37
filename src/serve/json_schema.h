/* json_schema.h - a JSON schema as an expression of our grammar.
 *
 * A reply has one spelling: keys in the order of the schema, ", " and ": " between parts, no other white
 * space.
 * Each reply fits the enforced keywords; not each value that fits them can be generated:
 *
 *   object   properties, required; additionalProperties and names that are required without a schema, where
 *            no properties are listed; propertyNames with an enum
 *   array    items, prefixItems (all of them), minItems, maxItems (up to 256)
 *   string   pattern (most of ECMAScript's: json_schema_pattern.c), format date, time, date-time, uuid, ipv4,
 *            email, or minLength, maxLength (up to 256)
 *   integer, number   minimum, maximum, exclusive ones; multipleOf 1, 0.1, 0.01, ...; nine digits before
 *            the point, six after it
 *   boolean, null, enum, const, anyOf, oneOf, allOf (merged), nullable, lists of types, no type at all
 *   $ref     within the schema; a schema that contains itself is nested three deep at most
 *
 * Other keywords that restrict values (uniqueItems, not, ...) are not enforced: they are named in
 * the notes, and the client, which has the schema, checks them.
 */
#ifndef HOLORUN_SERVE_JSON_SCHEMA_H
#define HOLORUN_SERVE_JSON_SCHEMA_H

#include "grammar/grammar.h"
#include "serve/notes.h"

#include <jansson.h>

/* Returns a node; -1 with ERR_USAGE, which names the place in the schema and the fault. */
gx_node json_schema_expression(struct gx *x, const json_t *schema, struct err *e);

/* Reads a schema without using it; notes the keywords that are not enforced.  The effort may be NULL. */
int json_schema_check(const json_t *schema, struct notes *n, struct effort *w, struct err *e);

/* Any JSON object, nested up to three deep. */
gx_node json_any_object(struct gx *x);

#endif
