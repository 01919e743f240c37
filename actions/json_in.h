/* json_in.h - JSON as models write it.  Private to actions/.
 *
 * Accepted, and recorded as repairs: text after the first balanced value, one trailing comma, raw control
 * characters in strings, and, if the dialect's prompt uses them, Python's single quotes and True, False,
 * None.  Refused: a truncated value (actions are not guessed), NaN and infinities, more than
 * JSON_IN_MAX_LEN bytes or JSON_IN_MAX_DEPTH levels.  Of duplicate keys the last wins.
 */
#ifndef HOLORUN_ACTIONS_JSON_IN_H
#define HOLORUN_ACTIONS_JSON_IN_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { JSON_IN_MAX_LEN = 64 << 10, JSON_IN_MAX_DEPTH = 8 };

/* The first value of text[0..len), an object or a list.  NULL with a message when it is not JSON.  *repairs
 * gets REPAIR_ bits; *used: length of the value. */
json_t *json_in(const char *text, size_t len, bool python, unsigned *repairs, size_t *used, struct err *e);

#endif
