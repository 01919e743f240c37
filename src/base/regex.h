/* regex.h - PCRE2 patterns that people write, looked for in texts that may come from anywhere.
 *
 * Texts are taken as UTF-8, and broken bytes in them match nothing.  Time and memory of a search are bounded: a pattern
 * that goes beyond them is neither found nor not found.  A compiled pattern never changes, and threads may share it.
 */
#ifndef HOLORUN_BASE_REGEX_H
#define HOLORUN_BASE_REGEX_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { REGEX_MAX = 2000 }; /* bytes of a pattern */

struct regex;

/* NULL with ERR_USAGE: "missing closing parenthesis at character 5 of '(abc'". */
struct regex *regex_new(const char *pattern, bool any_case, struct err *e);
void regex_free(struct regex *r); /* NULL is fine */

const char *regex_pattern(const struct regex *r);

/* 1: the pattern is somewhere in the text; 0: it is not; -1: it would take too long to tell. */
int regex_find(const struct regex *r, const char *text, size_t len);

#endif
