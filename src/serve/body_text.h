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

#include "serve/notes.h"

#include <jansson.h>
#include <stdbool.h>

enum { BODY_DEPTH = 64 };

/* Returns whether lists and objects are nested deeper than BODY_DEPTH: jansson recurses, and so does all that
 * reads its values. */
bool body_text_is_deep(const char *text, size_t len);

/* Like json_loadb. */
json_t *body_text_load(const char *text, size_t len, size_t flags, struct notes *n, json_error_t *why);

#endif
