/* clauses.h - splits a freely worded sentence into clauses, one deed each.
 *
 * Clauses end at "then", semicolons, full stops and line breaks, and at a comma or "and" before a verb.
 * Sentences that these rules cannot express (negations, conditions, alternatives, questions) are refused as a
 * whole. */
#pragma once

#include "base/err.h"
#include "plain/words.h"

enum { CLAUSES_MAX = 24 };

enum deed {
    DEED_OTHER, /* the verb is one of the words to look for */
    DEED_PRESS,
    DEED_WRITE,
    DEED_CHOOSE,
    DEED_TICK,
    DEED_UNTICK,
    DEED_SAVE,
    DEED_CLOSE,
};

struct clause {
    enum deed deed;
    bool known;       /* the first word is a verb of the table */
    struct span all;  /* with the verb */
    struct span rest; /* without the verb */
    char *text;       /* of all */
};

struct clauses {
    struct words words;
    struct clause *c;
    int n;
    bool nots;     /* it has negations, which only parts.c explains */
    bool by_model; /* ... or only a model */
};

/* Splits a sentence.  Returns -1 with the word that is not understood: negations, conditions, alternatives.
 * model: a model can read some negations. */
int clauses_split(const char *sentence, bool model, struct clauses *out, struct err *why);
void clauses_free(struct clauses *p);

/* Returns whether a word is a negation or a condition. */
bool clause_is_negation(struct span s, int i);
/* Returns whether "never mind" or "forget about" begins at word i. */
bool clause_is_idiom(struct span s, int i);
/* ... or "if you could". */
bool clause_is_polite(struct span s, int i);
/* Returns whether an unquoted word must be found literally: it has a capital inside a sentence, a digit, or
 * is a file name or an address. */
bool clause_is_hard(struct span s, int i, bool first);
/* Returns whether a word is one of quantity or order ("all", "second") or a weak negation ("non"), which must
 * be found literally, too. */
bool clause_is_quantity(struct span s, int i);
