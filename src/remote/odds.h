/* odds.h - alternatives to a reply from the token probabilities that a server returns ("logprobs" with
 * "top_logprobs").
 *
 * No further request is sent. A candidate for a slot is the reply's own text with one token replaced by an
 * alternative. So the text up to that token has probabilities from the server; for the rest of the slot, text
 * and probabilities are those of the reply. */
#pragma once

#include "actions/slots.h"
#include "session/beam_search.h"

#include <jansson.h>

enum { ODDS_TOP = 20 }; /* number of alternatives per token that servers return */

/* Stores choices and alternatives (their ids are offsets into `spelled`) for the reply text[n] from byte `at`
 * on. tokens: the list "content" of "logprobs", which may contain more than that text. Stores nothing if the
 * tokens do not spell the text. */
void odds_keep(struct generated *out, const json_t *tokens, const char *text, size_t n, size_t at);

/* Writes the candidates for a slot, the most likely first. Returns their number, at most max. */
int odds_candidates(const struct dialect *d, const struct generated *said, const struct slot *slot,
                    struct beam_candidate *out, int max);
