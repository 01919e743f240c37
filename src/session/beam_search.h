/* beam_search.h - what else a reply could have said at one place, and how probable that is.
 *
 * From a session that stands inside a reply: a beam over what the grammar allows finds the likeliest values of what
 * begins there (a number pair, a name).  Values that are spelled with several sequences of tokens are one value.
 *
 * A probability is the model's at temperature 1, after the grammar mask, of that value standing there; what the beam gave
 * up is missing from the sum.
 */
#ifndef HOLORUN_SESSION_BEAM_SEARCH_H
#define HOLORUN_SESSION_BEAM_SEARCH_H

#include "session/generate.h"

enum { BEAM_TEXT = 64, BEAM_WIDTH = 32, BEAM_TOKENS = 40 };

struct beam_search {
    struct grammar *grammar; /* NULL: anything may come */
    int state;               /* of the grammar where the session stands */
    const char
        *given; /* the first token may cover some of what came before: bytes that all must begin with */
    size_t n_given;
    /* How far a value reaches in a text that begins with it: its length; -1: the text ends inside. */
    ptrdiff_t (*end)(void *arg, const char *text, size_t len);
    void *arg;
    int width; /* of the beam, up to BEAM_WIDTH */
    const volatile int *cancel;
};

struct beam_candidate {
    char text[BEAM_TEXT];
    double p;
};

/* The likeliest first, at most max; the number of them, -1 with a reason.  The session is used up: it ends somewhere
 * behind, and is good for nothing but a rewind. */
int beam_search(struct session *s, const struct beam_search *how, struct beam_candidate *out, int max,
                struct err *e);

#endif
