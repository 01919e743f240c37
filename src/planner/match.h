/* match.h - compares words of a sentence with those of names: by stem, by prefix, by a table of synonyms. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MATCH_WORD = 32, MATCH_WORDS = 24 };

struct match_word {
    char text[MATCH_WORD]; /* lower case */
    bool hard;             /* must be found literally: a capital, a number, a quotation, a file name */
};

struct match_words {
    struct match_word w[MATCH_WORDS];
    int n;
    bool cut; /* words, or ends of words, were dropped at the limits */
};

/* Appends the words of a text; a text without letters and digits ("=") is one word.  Words beyond the limits
 * are dropped (`cut`). */
void match_split(const char *text, bool hard, struct match_words *out);
/* Returns the words of a text. */
struct match_words match_words_of(const char *text);

/* Returns how alike two words are: 1 equal, 0.95 equal stems, 0.75 one begins with the other and
 * is nearly as long or has six letters, 0.7 synonyms, 0 different. */
float match_alike(const char *a, const char *b);

/* Returns the best match of a word among others.  Hard words match only by stem. */
float match_among(const struct match_word *w, const struct match_words *all);

/* Returns the value of a number word, "three" or "twenty-five"; -1: none. */
int match_number(const char *word);

/* Returns whether a word names no thing: articles, pronouns, prepositions, words for kinds of elements. */
bool match_is_filler(const char *word);

/* Returns whether every word of a is among b. */
bool match_within(const struct match_words *a, const struct match_words *b);
