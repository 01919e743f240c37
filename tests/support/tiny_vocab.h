/* tiny_vocab.h - a small tokenizer for tests: all 256 bytes, a few longer tokens, some added ones. */
#ifndef HOLORUN_TESTS_TINY_VOCAB_H
#define HOLORUN_TESTS_TINY_VOCAB_H

#include "text/tokenizer.h"

/* Bytes have the ids 0..255, then the n words in order, then what their merges need, then the added tokens in
 * order; tokenizer_find tells which id that is. */
struct tokenizer *tiny_vocab(const char *const *words, int n, const char *const *added, int nadded);

/* The same with words of the kind that JSON and English are made of, <SPECIAL_12> and two more. */
struct tokenizer *tiny_vocab_usual(void);

/* n plain tokens, most of them words of letters with and without a leading space; <SPECIAL_12>. */
struct tokenizer *tiny_vocab_large(int n);

/* Words of the letters a, b and c; <X> and <SPECIAL_12>. */
struct tokenizer *tiny_vocab_letters(void);

#endif
