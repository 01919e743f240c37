/* buf.h - a byte buffer that grows up to a limit, and small helpers for text.
 *
 * `data` ends in a NUL that `len` does not count.  Appending past the limit sets `full`, appends nothing
 * more and returns -1, so that a writer may check `full` once at the end.
 */
#ifndef HOLORUN_BASE_BUF_H
#define HOLORUN_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len, cap, max;
    bool full;
};

void buf_init(struct buf *b, size_t max); /* max: bytes */
void buf_free(struct buf *b);
void buf_clear(struct buf *b); /* empties it and keeps the memory */
char *buf_take(struct buf *b); /* the caller owns the result; the buffer needs no buf_free() after */
int buf_put(struct buf *b, const void *data, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends s as a JSON string with its quotes.  UTF-8 is kept, invalid bytes become U+FFFD; every character
 * that a reader of lines may take for a line break is escaped (json.h lists them). */
int buf_put_json(struct buf *b, const char *s, size_t n);
/* Appends the JSON text json[n] with those characters escaped; they can only be in its strings. */
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

/* The last non-blank line of text[n] without trailing blanks, and its length; 0: there is none. */
const char *text_last_line(const char *text, size_t n, size_t *len);

/* Returns the candidate that is closest to a misspelt word: one edit away, two for a word of more than five
 * letters; NULL: none is. */
const char *nearest_word(const char *word, const char *const *candidates, int n);

/* Returns the candidate that an unknown name may mean: the nearest one, the one that other programs call so
 * ("port": "listen"), or one that begins like it ("confirmation": "confirm"); NULL: none. */
const char *suggested_name(const char *name, const char *const *candidates, int n);
/* Writes "; did you mean 'NAME'?" for that candidate to `out`, "" without one, and returns out. */
enum { NAME_HINT = 96 };
const char *name_hint(char out[NAME_HINT], const char *name, const char *const *candidates, int n);

#endif
