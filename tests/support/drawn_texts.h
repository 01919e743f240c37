/* drawn_texts.h - texts that tests/reference/make_tokenizer.py draws, drawn again, and the hashes of their ids.
 *
 * A file of golden data has the kinds of characters and the words that are drawn from, and for each block of
 * texts a hash of the texts, of their ids with added tokens recognised, and of their ids without.  A hash of
 * the texts tells a difference in drawing from one in the ids.
 */
#ifndef HOLORUN_TESTS_DRAWN_TEXTS_H
#define HOLORUN_TESTS_DRAWN_TEXTS_H

#include "text/tokenizer.h"

#include <jansson.h>

struct drawn {
    const struct tokenizer *tk;
    const json_t *golden;
    bool normalises; /* the ids need not spell the text again */
    /* of the last list: texts, bytes encoded, milliseconds of processor time they took */
    size_t n, bytes;
    double ms;
};

/* The drawn texts; every code point between letters, digits and spaces.  How many blocks differ. */
int drawn_texts(struct drawn *d);
int drawn_chars(struct drawn *d);

double drawn_cpu_ms(void); /* of this thread: other programs do not count */

#endif
