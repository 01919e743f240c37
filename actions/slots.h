/* slots.h - the positions of a reply's decisions: the verb, the points, names and typed texts.
 *
 * Beam search shows alternatives at these positions.  Supported for JSON replies and for syntaxes with their
 * own functions (syntax.h). */
#pragma once

#include "actions/dialect.h"

enum slot_kind { SLOT_VERB, SLOT_POINT, SLOT_NAME, SLOT_TEXT };
enum { SLOT_KINDS = SLOT_TEXT + 1, SLOTS_MAX = 16 };

struct slot {
    enum slot_kind kind;
    size_t begin, end; /* bytes of the reply; a point: from its first number to the end of its second */
};

/* Finds verbs and points in the order of the text; returns their number. */
int dialect_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max);

/* Finds the name of a reply's element (SLOT_NAME), or the text at its end, such as the typed text
 * (SLOT_TEXT).  Returns false if there is none, or if the syntax has no such slots. */
bool dialect_word_slot(const struct dialect *d, enum slot_kind kind, const char *text, size_t len,
                       struct slot *out);

/* Returns a grammar of such a slot that allows one of n words (n >= 1), and the mark or the end of the line
 * after it.  given: text before the slot.  The caller frees it; NULL with e: not supported by this
 * dialect. */
struct grammar *dialect_words_grammar(const struct dialect *d, enum slot_kind kind, const char *given,
                                      const char *const *words, int n, const struct tokenizer *t,
                                      struct err *e);

/* Returns the length of the slot's value at the beginning of text; -1: the text ends inside it. */
ptrdiff_t dialect_slot_end(const struct dialect *d, enum slot_kind kind, const char *text, size_t len);

/* Converts a point's value to pixels of a w x h image.  Returns -1 if it is not a point. */
int dialect_slot_point(const struct dialect *d, const char *text, size_t len, int w, int h, int32_t *x,
                       int32_t *y);
