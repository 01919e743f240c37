/* tiny_vocab.h - a small tokenizer for tests: all 256 bytes, a few longer tokens, some added ones. */
#pragma once

#include "text/tokenizer.h"

/* Bytes have the ids 0 to 255, then follow the n words in order, the parts that their merges need, and the
 * added tokens in order; tokenizer_find() returns the id of one. */
struct tokenizer *tiny_vocab(const char *const *words, int n, const char *const *added, int nadded);

/* Does the same with common words of JSON and English, <SPECIAL_12> and two more. */
struct tokenizer *tiny_vocab_usual(void);

/* Returns n plain tokens, most of them words of letters with and without a leading space; <SPECIAL_12>. */
struct tokenizer *tiny_vocab_large(int n);

/* Returns words of the letters a, b and c; <X> and <SPECIAL_12>. */
struct tokenizer *tiny_vocab_letters(void);
