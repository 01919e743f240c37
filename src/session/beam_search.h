/* beam_search.h - alternative values at one position of a reply, with their probabilities.
 *
 * The search starts from a session that ends inside a reply and is limited to values that the grammar
 * allows (a pair of coordinates, a name). Token sequences that spell the same text are merged into one
 * candidate.
 *
 * A probability is that of the value at temperature 1 after the logit mask. It is a lower bound: paths
 * that the beam dropped are missing from the sum. */
#pragma once

#include "session/generate.h"

enum { BEAM_TEXT = 192, BEAM_WIDTH = 32, BEAM_TOKENS = 40 };

struct beam_search {
    struct grammar *grammar; /* NULL: unconstrained */
    int state;               /* state of the grammar after the session's last token */
    /* Text that all paths must begin with: the first token may repeat characters that precede the value. */
    const char *given;
    size_t n_given;
    /* Returns the length of the value at the start of a text, or -1 if the text ends inside the value. */
    ptrdiff_t (*end)(void *arg, const char *text, size_t len);
    void *arg;
    int width; /* paths kept per round, 1 to BEAM_WIDTH */
    const volatile int *cancel;
};

struct beam_candidate {
    char text[BEAM_TEXT];
    double p;
};

/* Writes up to min(max, BEAM_WIDTH) candidates to out, most probable first, and returns their number, or
 * -1 with e. The search extends the session, so the caller has to rewind it. */
int beam_search(struct session *s, const struct beam_search *how, struct beam_candidate *out, int max,
                struct err *e);
