/* beam_search.h - what else a reply could have said at one place, and how probable that is.
 *
 * Starts from a session that ends inside a reply.  A beam search over what the grammar allows finds the
 * likeliest values of what begins there (a pair of coordinates, a name).  Token sequences that spell the
 * same text are one candidate.
 *
 * A probability is the model's at temperature 1, after the logit mask, of that value at that place; paths
 * that the beam dropped are missing from the sum.
 */
#ifndef HOLORUN_SESSION_BEAM_SEARCH_H
#define HOLORUN_SESSION_BEAM_SEARCH_H

#include "session/generate.h"

enum { BEAM_TEXT = 64, BEAM_WIDTH = 32, BEAM_TOKENS = 40 };

struct beam_search {
    struct grammar *grammar; /* NULL: anything may come */
    int state;               /* of the grammar after the session's last token */
    /* Text that all paths must begin with: the first token may cover some of what came before. */
    const char *given;
    size_t n_given;
    /* Length of the value that a text begins with; -1: the text ends inside the value. */
    ptrdiff_t (*end)(void *arg, const char *text, size_t len);
    void *arg;
    int width; /* of the beam, up to BEAM_WIDTH */
    const volatile int *cancel;
};

struct beam_candidate {
    char text[BEAM_TEXT];
    double p;
};

/* Candidates, the likeliest first, at most max; returns their number, -1 with a reason.  The session is
 * extended on the way and has to be rewound. */
int beam_search(struct session *s, const struct beam_search *how, struct beam_candidate *out, int max,
                struct err *e);

#endif
