/* json.h - writes JSON for line-based protocols: JSON-RPC, --json, feeds, JSON Lines, server-sent events.
 *
 * Readers disagree about the end of a line. Node's readline (24 and later) also splits at U+2028 and
 * U+2029, Python's str.splitlines() also at U+0085 and at control characters. The text written here
 * contains none of them: DEL, C1 controls (U+0080 to U+009F) and hidden characters (utf8.h, including
 * U+2028 and U+2029) are escaped as \uXXXX; JSON itself requires that for C0 controls. Other characters
 * are UTF-8. buf_put_json() (buf.h) escapes the same set. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Serializes v, any type of value, on one line without a trailing line break. flags: JSON_COMPACT, ... of
 * jansson, but not JSON_INDENT. The caller frees the result. Returns NULL if v is NULL or contains a
 * string that is not UTF-8. */
char *json_line(const json_t *v, size_t flags);

/* Prints json_line() to f, or "null" if v cannot be serialized. v is borrowed. */
void json_print(const json_t *v, FILE *f, size_t flags);

/* Create a string from s (UTF-8) for display to a user or a model: hidden characters (utf8.h) and control
 * characters other than line breaks and tabs become "<U+202E>"; or convert all strings within v. */
json_t *json_visible_string(const char *s);
void json_make_visible(json_t *v);

/* Creates a string from s; invalid bytes, such as those of surrogates, become U+FFFD. */
json_t *json_clean_string(const char *s);
json_t *json_clean_stringn(const char *s, size_t n);

/* Returns the string of a member, borrowed; NULL: there is none. */
const char *json_text(const json_t *object, const char *key);

/* Sets a member to such a string; NULL: to null. */
void json_set_text(json_t *object, const char *key, const char *value);
/* Sets a member to a number rounded to so many decimals; 0: an integer. */
void json_set_rounded(json_t *object, const char *key, double value, int decimals);
/* Creates an integer from a number without a fraction, so that it reads as it was typed; else a real. */
json_t *json_plain_number(double value);
/* Create a value from a seed, or read one: a string above INT64_MAX, where jansson's integers end. */
json_t *json_seed(uint64_t seed);
uint64_t json_seed_value(const json_t *v);
/* The flags that print a rounded number without further digits. */
#define JSON_ROUNDED JSON_REAL_PRECISION(15)
