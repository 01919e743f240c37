/* buf.h - byte buffer that grows up to a limit, and text helpers.
 *
 * `data` ends with a NUL that `len` does not count. Appending beyond the limit sets `full`, returns -1,
 * and stops all further appending, so that a writer may check `full` once at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len, cap, max;
    bool full;
};

void buf_init(struct buf *b, size_t max); /* max: bytes */
struct buf buf_of(size_t max);            /* an empty buffer */
void buf_free(struct buf *b);
/* Frees a local buffer when its scope ends: `autobuf text = buf_of(4096);`. */
#define autobuf __attribute__((cleanup(buf_free))) struct buf
void buf_clear(struct buf *b); /* empties it and keeps the memory */
char *buf_take(struct buf *b); /* returns the data, which the caller frees; buf_free() is not needed
                                * afterwards */
int buf_put(struct buf *b, const void *data, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends s as a JSON string with quotes. UTF-8 is kept, invalid bytes become U+FFFD; every character that
 * line-based readers may take for a line break is escaped (list in json.h). */
int buf_put_json(struct buf *b, const char *s, size_t n);
/* Appends the JSON text json[n] with those characters escaped; they can occur only in its strings. */
int buf_put_json_text(struct buf *b, const char *json, size_t n);
/* Appends data[n] in base64. */
int buf_put_base64(struct buf *b, const void *data, size_t n);
/* Appends a member of an object: `, "key": "value"`; NULL: null. */
int buf_put_member(struct buf *b, const char *key, const char *value);

/* Return whether a text begins or ends with another one. */
bool text_starts(const char *text, const char *with);
bool text_ends(const char *text, const char *with);
/* Returns the first character in text..end that is not white space, or end. */
const char *text_skip_space(const char *text, const char *end);
/* Returns whether a word is in a list that ends with NULL. */
bool text_listed(const char *const *words, const char *word);
/* Returns the index of the word in "a|b|c", or -1. */
int text_choice(const char *choices, const char *word);

/* Returns the last line of text[n] that is not blank, without trailing whitespace, and sets *len; 0: none. */
const char *text_last_line(const char *text, size_t n, size_t *len);

/* Returns the candidate closest to a misspelt word: at most one edit away, or two for a word of more than
 * five letters; NULL: none. */
const char *nearest_word(const char *word, const char *const *candidates, int n);

/* Returns the candidate that an unknown name probably refers to: the closest one, the equivalent of a name
 * in other programs ("port": "listen"), or one with a long common prefix ("confirmation": "confirm");
 * NULL: none. */
const char *suggested_name(const char *name, const char *const *candidates, int n);
/* Writes "; did you mean 'NAME'?" for that candidate to `out`, or "" if there is none, and returns out. */
enum { NAME_HINT = 96 };
const char *name_hint(char out[NAME_HINT], const char *name, const char *const *candidates, int n);
