/* speculate.h - n-gram speculation (prompt lookup): several tokens of a reply for one pass over the weights.
 *
 * What a reply repeats of the conversation - names, numbers, its own format - is guessed: the tokens that
 * followed the last occurrence of the reply's last few tokens are proposed.  One pass computes the logits
 * after each of them, a token is sampled from each in turn, and the first that is not the proposed one ends
 * the round.
 *
 * A proposal is a single token, so that sampling and comparing is rejection sampling: it is accepted with its
 * probability, and what is sampled otherwise has the distribution that is left.  The rows of the pass have
 * the bits of decode steps (language_steps), each token its own random number and logit mask.  So a reply
 * with speculation is the reply without, token for token, at any temperature.
 *
 * A recurrent state has no way back: it is copied before, and after a rejection restored and continued by the
 * accepted tokens, which costs a second pass.
 */
#ifndef HOLORUN_SESSION_SPECULATE_H
#define HOLORUN_SESSION_SPECULATE_H

#include "session/session.h"

struct tensor;

/* The tokens that followed the latest earlier occurrence of the last three tokens, or of the last two, into
 * out[most]; their number. */
int speculate_propose(const int32_t *tokens, int64_t n, int32_t *out, int most);

/* A round: the pending token, n guesses after it, and how to sample after each of these n + 1 tokens. */
struct speculation {
    const int32_t *guess;
    int n;
    const struct sampler *how; /* [n + 1] */
    struct sampled *out;       /* [n + 1] */
    float **logits;            /* [n + 1] rows of V that are filled, or NULL where the backend samples */
    struct tensor *saved;      /* the state before; its memory is kept for the next round */
    int sampled;               /* results in `out`: the accepted guesses, and one more */
};

/* Whether a session is ready for a round: one pending token that continues a state, and no other session that
 * decodes with it, whose batch would be cheaper. */
bool speculate_ready(const struct session *s);

/* Computes a round and appends what was sampled, the last of which is pending.  -1, with the session as it
 * was: stopped, or no memory; also 1, without a message, when there is no room for a copy of the state. */
int speculate_round(struct session *s, struct speculation *p, struct err *e);

/* Frees the copy. */
void speculate_end(struct session *s, struct tensor *saved);

#endif
