/* drawn_texts.h - repeats the random texts of tests/reference/make_tokenizer.py and compares hashes of their
 * ids.
 *
 * The golden file has the alphabets and words to draw from. For each block of texts it has three hashes: of
 * the texts, of their ids with added tokens recognized, and of their ids without. The hash of the texts
 * separates an error in drawing from one in the ids.
 */
#pragma once

#include "text/tokenizer.h"

#include <jansson.h>

struct drawn {
    const struct tokenizer *tk;
    const json_t *golden;
    bool normalises; /* decoding may differ from the text */
    /* totals of the last list: texts, encoded bytes, CPU time in ms */
    size_t n, bytes;
    double ms;
};

/* Compare a quarter of the random texts, and of all code points between letters, digits and spaces: other
 * quarters with other seeds and in later rounds. Return how many blocks differ. */
int drawn_texts(struct drawn *d);
int drawn_chars(struct drawn *d);

double drawn_cpu_ms(void); /* CPU time of this thread */
