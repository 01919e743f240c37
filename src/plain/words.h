/* words.h - words of a sentence, private to this room. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

enum { WORDS_MAX = 512 };

struct word {
    char *text; /* without quotes */
    bool quoted;
    char after; /* ',' ';' '.' or '\n' when that follows, else 0 */
};

struct words {
    struct word *w;
    int n;
};

/* Words [from, to). */
struct span {
    const struct word *w;
    int n;
};

/* Splits a sentence at white space.  "...", curly quotes and '...' around whole words quote; a backslash in
 * them takes the next character literally.  Punctuation at the end of a word that separates steps is moved
 * to `after`. */
int words_split(const char *sentence, struct words *out, struct err *why);
void words_free(struct words *p);

/* Returns whether word i is one of these, separated by '|', without quotes and in any case. */
bool words_is(struct span s, int i, const char *any);
/* Returns whether word i is an article; "A" can be a name. */
bool words_article(struct span s, int i);
struct span words_part(struct span s, int from, int to);
/* Removes a leading article. */
struct span words_bare(struct span s);
/* Returns the words with single spaces; the caller frees it.  marks: keeps quotation marks of mixed text. */
char *words_text(struct span s);
