/* json_in.h - reads JSON as models write it.
 *
 * Accepted, and recorded as repairs: text after the first value, trailing and missing commas, raw control
 * characters in strings (a line break of Windows becomes \n), Python's single quotes and True, False, None,
 * keys without quotes, a doubled opening brace, closing brackets that are doubled, swapped or missing before
 * a closing tag.  Rejected: a value that ends with the text (its end may be missing), duplicate keys of an
 * object (it is unknown which value counts), NaN and infinities. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

enum { JSON_IN_MAX_DEPTH = 8, JSON_IN_DEEPEST = 32 };

struct json_in {
    int max_depth;    /* at most JSON_IN_DEEPEST */
    bool may_end;     /* the bracket of the value itself may be missing at the end of the text */
    unsigned repairs; /* out: REPAIR_ bits of action.h */
    size_t used;      /* out: length of the value */
    bool cut;         /* out: rejected because the text ends too early, or read with added closers */
};

/* Reads the value at the beginning of text[0..len), an object or a list; white space may precede it.  Returns
 * NULL with e if it cannot be read.  The caller releases the value. */
json_t *json_in(const char *text, size_t len, struct json_in *r, struct err *e);
