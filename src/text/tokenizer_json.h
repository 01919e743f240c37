/* tokenizer_json.h - the two long parts of a tokenizer.json, read in place.
 *
 * Vocabulary and merges are hundreds of thousands of short strings.  A JSON value for each of them would be
 * most of the time of a start.  So they are cut out of the text and read one after the other; the rest is
 * parsed as usual.
 */
#ifndef HOLORUN_TEXT_TOKENIZER_JSON_H
#define HOLORUN_TEXT_TOKENIZER_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct json_reader { /* the rest of a text */
    const char *at, *end;
};

/* Points readers at model.vocab and model.merges (`at` NULL: absent) and copies everything else, with null in
 * their place, to rest.  Never fails: malformed text stays in rest, for the parser to refuse. */
void json_cut(const char *json, size_t len, struct buf *rest, struct json_reader *vocab,
              struct json_reader *merges);

/* Skips white space, and c if that is the next character; whether it was. */
bool json_next(struct json_reader *r, char c);

/* Reads a string into out, with a NUL; its length, -1 when there is none or it does not fit in max bytes. */
int json_read_string(struct json_reader *r, char *out, int max);

/* Reads an integer from 0 to max; -1 when there is none. */
int json_read_count(struct json_reader *r, int max);

#endif
