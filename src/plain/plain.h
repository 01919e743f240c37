/* plain.h - plain steps: sentences that are carried out on named elements, without a model.
 *
 *     press Save                           double-click report.txt        right-click Trash
 *     tick Gift wrapping                   untick Newsletter              choose Large in Size
 *     enter "Ana Lima" into Name           open menu File > Save As       go to tab Advanced
 *     press ctrl+s                         scroll to Terms                close the window
 *     wait for Order received              check that Total equals "12"
 *     press Delete in the row of Bo        set Amount in the row of Tea to 3
 *
 * Several steps are separated by "then", "and", commas, semicolons, full stops or line breaks.  A name
 * without quotes ends at the next such word; text in double quotes is taken literally.  A sentence is
 * understood as a whole or not at all: negations, conditions, alternatives and quantities ("not", "if",
 * "or", "all") are left to a model, as is every word that no rule covers.
 *
 * Printing and parsing are inverse: a printed step is parsed as the same step. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum {
    PLAIN_TEXT_MAX = 16384, /* bytes of a sentence */
    PLAIN_STEPS_MAX = 64,
    PLAIN_PATH_MAX = 8, /* levels of a menu */
    PLAIN_TIMES_MAX = 50,
};

enum plain_verb {
    PLAIN_PRESS,
    PLAIN_DOUBLE_CLICK,
    PLAIN_RIGHT_CLICK,
    PLAIN_TICK,
    PLAIN_UNTICK,
    PLAIN_CHOOSE,
    PLAIN_ENTER,
    PLAIN_MENU,
    PLAIN_TAB,
    PLAIN_CLOSE,
    PLAIN_SCROLL,
    PLAIN_KEYS,
    PLAIN_WAIT,
    PLAIN_CHECK,
    PLAIN_VERBS
};

/* The state that a step waits for or checks. */
enum plain_state {
    PLAIN_SHOWN,
    PLAIN_GONE,
    PLAIN_TICKED,
    PLAIN_UNTICKED,
    PLAIN_ENABLED,
    PLAIN_DISABLED,
    PLAIN_EQUALS,   /* the element's value is `value` */
    PLAIN_CONTAINS, /* the element's value contains `value` */
    PLAIN_STATES
};

/* All strings belong to the step; NULL: not given. */
struct plain_step {
    enum plain_verb verb;
    char *what;  /* name of the element or option, without its role; keys of PLAIN_KEYS ("ctrl+s") */
    char *role;  /* word for its role that follows the name: "button", "field"; also part of `whole` */
    char *whole; /* the name as it stands in the sentence; differs from `what` where the role, or the list of
                  * PLAIN_CHOOSE, could belong to the name */
    char *in;    /* name of the list of PLAIN_CHOOSE */
    char *row;   /* text of the row that has the element */
    char *value; /* text of PLAIN_ENTER and PLAIN_CHECK */
    char *path[PLAIN_PATH_MAX]; /* of PLAIN_MENU */
    int levels;
    int times;              /* of PLAIN_KEYS: how often */
    bool maybe_key;         /* PLAIN_PRESS: `what` is also the name of a key */
    enum plain_state state; /* of PLAIN_WAIT and PLAIN_CHECK */
};

struct plain_steps {
    struct plain_step *s;
    int n;
};

/* Parses a sentence.  Returns -1 with the reason when it is not understood completely; out is then empty. */
int plain_parse(const char *sentence, struct plain_steps *out, struct err *why);
/* Reads "choose A in B in C list" (s) in another way, whose option and list go to out, which the caller
 * frees with plain_step_free(): k 0: A in B and C; 1: A in B and C list; 2: A, and B in C. Returns false
 * when there are no more; out->in is NULL if no rule covers this one. */
bool plain_choice(const struct plain_step *s, int k, struct plain_step *out);
/* Appends a copy of a step. */
void plain_add(struct plain_steps *to, const struct plain_step *s);
void plain_free(struct plain_steps *p);
void plain_step_free(struct plain_step *s); /* frees its strings */

/* Returns a key or combination in the keyboard's words ("Ctrl+Shift+T": "ctrl+shift+t"), which the caller
 * frees; NULL: text is not one.  A single character is one only with a modifier. */
char *plain_keys(const char *text);

/* Appends a text in double quotes, which words are read from as one. */
void plain_quote(const char *text, struct buf *out);
/* Appends a step as a sentence without a full stop. */
void plain_print(const struct plain_step *s, struct buf *out);
/* Appends a step in the past tense, for reports: "pressed 'Save'".  It cannot be parsed. */
void plain_print_done(const struct plain_step *s, struct buf *out);
