/* tokenizer_json.h - the two long parts of a tokenizer.json, read where they lie.
 *
 * Vocabulary and merges are hundreds of thousands of short strings.  Making a value of each of them is most
 * of the time that a start takes, so they are cut out of the text, the rest of which is parsed as usual,
 * and read one after the other.
 */
#ifndef HOLORUN_TEXT_TOKENIZER_JSON_H
#define HOLORUN_TEXT_TOKENIZER_JSON_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct json_reader { /* what is left of a text */
    const char *at, *end;
};

/* Finds model.vocab and model.merges and puts everything else, with null in their place, in rest.
 * A reader is empty (at NULL) when the text has no such part.  Never fails: what cannot be followed stays
 * in rest, for the parser to refuse. */
void json_cut(const char *json, size_t len, struct buf *rest, struct json_reader *vocab,
              struct json_reader *merges);

/* The next character after white space is c: goes behind it. */
bool json_next(struct json_reader *r, char c);

/* A string into out, which ends in a NUL: its length; -1 when there is none, or it has more than max - 1 bytes. */
int json_read_string(struct json_reader *r, char *out, int max);

/* A whole number from 0 to max; -1 when there is none. */
int json_read_count(struct json_reader *r, int max);

#endif
