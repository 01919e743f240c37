/* utf8.h - UTF-8 decoding, encoding and safe printing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Decodes one scalar of s[0..n). Returns its length 1..4 and sets *cp; 0 if n == 0; -1 for an invalid
 * sequence (overlong, surrogate, above U+10FFFF, truncated). */
int utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Writes cp as 1..4 bytes; returns the length, 0 for an invalid scalar. */
int utf8_encode(uint32_t cp, char out[4]);

/* Returns the length of the longest valid prefix of s[0..n). */
size_t utf8_valid_prefix(const char *s, size_t n);

/* Returns the length of s[0..n) without an incomplete last character, so that a text can be passed on in
 * parts. */
size_t utf8_complete(const char *s, size_t n);

/* Returns the length of the byte order mark that some editors write at the start of a text: 3 or 0. */
size_t utf8_bom(const char *s, size_t n);

/* Returns the number of scalars in s[0..n), which must be valid UTF-8. */
size_t utf8_count(const char *s, size_t n);

/* Returns whether a character is white space, as Python's str.strip() defines it. */
bool utf8_is_space(uint32_t cp);
/* Returns false for control characters (C0, DEL and C1), which a terminal interprets, and for hidden ones. */
bool utf8_printable(uint32_t cp);

/* Prints one line for a terminal: line breaks and tabs become spaces; characters that are not printable,
 * and invalid bytes, become '?'. */
void utf8_print(FILE *f, const char *s, size_t n);

/* Prints like utf8_print(), but keeps line breaks and tabs. */
void utf8_print_lines(FILE *f, const char *s, size_t n);

/* Prints a result and, if missing, a line break: unchanged for a program that reads it, as
 * utf8_print_lines() on a terminal. */
void utf8_print_result(FILE *f, const char *s, size_t n);

/* Replaces in place every character that is not printable, including line breaks, and every invalid byte
 * by '?'. */
void utf8_make_printable(char *s);
