/* body_text.h - JSON as clients write it, read by jansson, which is stricter.
 *
 * Outputs of programs and cut texts hold bytes that are not Unicode, and each later request of their
 * conversation would be refused.  These are replaced, with a warning:
 *
 *   \u0000, half of a surrogate pair, invalid UTF-8   U+FFFD
 *   integers above 64 bits                            reals
 *   a byte order mark                                 nothing, without a warning
 */
#ifndef HOLORUN_SERVE_BODY_TEXT_H
#define HOLORUN_SERVE_BODY_TEXT_H

#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>
#include <stdbool.h>

/* BODY_VALUE_BYTES: memory of a value without its text, at most. */
enum { BODY_DEPTH = 64, BODY_VALUES = 200000, BODY_VALUE_BYTES = 160 };

/* Refuses lists and objects that are nested deeper than BODY_DEPTH, because jansson and all that reads its
 * values recurse, and more than *left values, which are subtracted: an empty list takes a hundred bytes of
 * memory.  Fails with ERR_USAGE. */
int body_text_check(const char *text, size_t len, int *left, struct err *e);

/* Like json_loadb. */
json_t *body_text_load(const char *text, size_t len, size_t flags, struct notes *n, json_error_t *why);

#endif
