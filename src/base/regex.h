/* regex.h - searches untrusted texts for PCRE2 patterns.
 *
 * Texts are UTF-8; invalid bytes do not match anything. Time and memory of a search are limited. Threads
 * may share a compiled pattern. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { REGEX_MAX = 2000 }; /* bytes of a pattern */

struct regex;

/* Compiles a pattern. Returns NULL with ERR_USAGE: "missing closing parenthesis at character 5 of '(abc'". */
struct regex *regex_new(const char *pattern, bool any_case, struct err *e);
void regex_free(struct regex *r); /* NULL is allowed */

const char *regex_pattern(const struct regex *r);

/* Searches text[len]. Returns 1: found; 0: not found; -1: the limits were exceeded. */
int regex_find(const struct regex *r, const char *text, size_t len);
