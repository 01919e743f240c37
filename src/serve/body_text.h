/* body_text.h - loads JSON more tolerantly than jansson.
 *
 * Program output and truncated text contain bytes that are not Unicode, and each later request of their
 * conversation would be rejected. These are replaced, with a warning:
 *
 *   \u0000, half of a surrogate pair, invalid UTF-8   U+FFFD
 *   integers beyond 64 bits                           reals
 *   a byte order mark                                 removed, without a warning */
#pragma once

#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>
#include <stdbool.h>

/* BODY_VALUE_BYTES: maximum memory of a value without its text */
enum { BODY_DEPTH = 64, BODY_VALUES = 200000, BODY_VALUE_BYTES = 160 };

/* Rejects lists and objects nested deeper than BODY_DEPTH, because jansson and the code that reads its values
 * recurse, and more than *left values, from which they are subtracted: an empty list takes 100 bytes of
 * memory. Returns -1 with ERR_USAGE. */
int body_text_check(const char *text, size_t len, int *left, struct err *e);

/* Loads JSON like json_loadb(). */
json_t *body_text_load(const char *text, size_t len, size_t flags, struct notes *n, json_error_t *why);
