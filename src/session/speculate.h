/* speculate.h - n-gram speculation (prompt lookup): several tokens of a reply for one pass over the
 * weights.
 *
 * Replies often repeat parts of the conversation: names, numbers, the reply format. The tokens that
 * followed the last occurrence of the reply's last few tokens are proposed as draft tokens. One pass
 * computes the logits after each of them, a token is sampled from each in turn, and the first sampled
 * token that differs from its draft ends the round.
 *
 * A draft is a single token, so sampling and comparing is rejection sampling: the draft is accepted with
 * its probability, and a rejected one is replaced by a token with the remaining distribution. The rows of
 * the pass are bit-identical to decode steps (language_verify_drafts), each with its own random number and
 * logit mask. A reply with speculation therefore equals the reply without, token for token, at any
 * temperature.
 *
 * A recurrent state cannot be truncated: it is copied before the pass, and after a rejection restored and
 * continued by the accepted tokens, which costs a second pass. */
#pragma once

#include "session/session.h"

struct tensor;

/* Proposes draft tokens: the tokens that followed the latest earlier occurrence of the last three tokens,
 * or else of the last two. Writes at most `most` to out and returns their number. */
int speculate_propose(const int32_t *tokens, int64_t n, int32_t *out, int most);

/* One round: the pending token, n draft tokens after it, and the samplers after each of these n + 1
 * tokens. */
struct speculation {
    const int32_t *draft;
    int n;
    const struct sampler *how; /* [n + 1] */
    struct sampled *out;       /* [n + 1] */
    float **logits;            /* [n + 1] rows of V to be filled, or NULL if the backend samples */
    struct tensor *saved;      /* copy of the state before the round; its memory is reused by the next */
    int sampled;               /* results in `out`: the accepted draft tokens and one more */
};

/* Returns whether speculation pays: one token is pending, the state is not empty, and no other session is
 * decoding (a shared batch would be cheaper). */
bool speculate_ready(const struct session *s);

/* Computes a round and appends the sampled tokens; the last one is pending. Returns -1 with e, the
 * session unchanged, if stopped or out of memory; 1 without a message if memory is too short for a copy of
 * the state. */
int speculate_round(struct session *s, struct speculation *p, struct err *e);

/* Frees the copy of the state. */
void speculate_end(struct session *s, struct tensor *saved);
