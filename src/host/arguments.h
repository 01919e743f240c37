/* arguments.h - reads the arguments of a tool call in the spellings that hosts send.
 *
 * The result has exactly the types of the tool's schema.  Accepted:
 *     - no arguments at all: absent, null, [], "", or the whole object as JSON text
 *     - null for an optional argument, which counts as absent
 *     - numbers, booleans, lists and objects as JSON text, encoded up to ENCODED_MAX times: "100", " 1e2 ",
 *       "[1, 2]"
 *     - 100.0 for an integer; an integer for a string; 0, 1 and any case of "true" and "false" for a boolean
 *     - a single value instead of a list; "0,0,90,40" and {"x", "y", "width", "height"} for four integers
 *     - argument names and enumeration values in another case, with other or without separators
 *     - for tools with x and y: a pair in x or in an argument named as in `pair_names`, as [100, 200],
 *       "100,200" or {"x": 100, "y": 200}
 * Any other unknown argument is ignored and reported, unless its name is one edit away from a known one: a
 * misspelt option would otherwise have no effect.  Values are not guessed: "12px", "", 1.5 for an integer and
 * the like are rejected with a message that names the argument, the required type and the value that was
 * sent. */
#pragma once

#include "base/err.h"

#include <jansson.h>

/* Converts the arguments `given` (NULL: none) to an object that fits `schema`, the inputSchema of a tool; the
 * caller owns it.  Appends the names of ignored arguments to the list `ignored`.  Returns NULL with e, which
 * may be NULL, if an argument is invalid. */
json_t *arguments_read(const json_t *schema, const json_t *given, json_t *ignored, struct err *e);
