/* json_schema.h - a JSON schema as an expression of our grammar.
 *
 * The language is regular, so a schema that contains itself is refused; so is every keyword that would not
 * be enforced (pattern, format, multipleOf, uniqueItems, additionalProperties with a schema, ...).  What is
 * generated is one spelling: keys in the order of the schema, ", " and ": " between parts, no other white
 * space; properties that are not listed do not occur.
 *
 *   object   properties, required        string   minLength, maxLength
 *   array    items, minItems, maxItems   integer, number   minimum, maximum (numbers: whole bounds)
 *   boolean, null, enum, const, anyOf, oneOf of alternatives that exclude each other, $ref, lists of types
 *
 * Integers without bounds have at most nine digits, other numbers at most nine before and six after the
 * point.
 */
#ifndef HOLORUN_SERVE_JSON_SCHEMA_H
#define HOLORUN_SERVE_JSON_SCHEMA_H

#include "grammar/grammar.h"

#include <jansson.h>

/* -1 with ERR_USAGE: what is not supported, and where. */
gx_node json_schema_expression(struct gx *x, const json_t *schema, struct err *e);

/* Any JSON object, nested up to three deep. */
gx_node json_any_object(struct gx *x);

#endif
