/* store.h - the conversations that the server remembers, each as a session that goes on where it ended.
 *
 * A request is matched by its chain (chain.h): the longest prefix of its messages that a kept session
 * stands at, or has a checkpoint at.  At the end of a session the request takes the session itself; at a
 * checkpoint it gets a branch, so that the other continuation stays.  While a session is in use, requests
 * that begin with the same messages get branches from its user, between two tokens.
 *
 * A session has up to two checkpoints: before its first picture, where clients cut that keep the newest
 * pictures only, and before the last reply, where the same prompt is asked again.
 *
 * Idle sessions are bounded in number and bytes: checkpoints go first, then the least recently used
 * session, to a file when there is a folder for that.
 */
#ifndef HOLORUN_SERVE_STORE_H
#define HOLORUN_SERVE_STORE_H

#include "serve/chain.h"
#include "serve/weights.h"

struct store;

struct store_options {
    int most;          /* idle sessions in memory */
    size_t bytes;      /* of all states, when one becomes idle; 0: no bound of its own */
    const char *spill; /* folder for files of idle sessions; NULL: they are dropped */
    int most_files;
};

struct store *store_new(struct weights_slot *w, const struct store_options *o);
void store_free(struct store *s);  /* with its files */
void store_flush(struct store *s); /* drops everything idle */

enum store_point { STORE_BEFORE_PICTURE, STORE_BEFORE_REPLY, STORE_POINTS };

struct kept; /* a session in use by a request */

/* A session that stands after *matched of n messages: the most that any has.  chain: [n + 1], borrowed
 * until store_keep or store_drop.  The set of weights has one more user.  NULL: *stop became non-zero. */
struct kept *store_take(struct store *s, struct weights_set *w, const struct conversation *v,
                        const struct chain *chain, int *matched, const volatile int *stop);
struct session *kept_session(const struct kept *k);

/* Remembers the place where the session stands; without memory for that it does nothing.  -1: the prompt
 * could not be computed. */
int store_mark(struct store *s, struct kept *k, enum store_point which, struct chain at, struct err *e);
/* Back to a mark of this session; *at: where that is. */
int store_rewind(struct kept *k, enum store_point which, struct chain *at, struct err *e);

/* Gives branches to those who wait for them; cheap when nobody does. */
void store_serve(struct store *s, struct kept *k);

/* While its request is frozen: whoever waits for a branch of it, or would, goes on without it. */
void store_rest(struct store *s, struct kept *k, bool rests);

/* Makes room for so many more tokens by giving up idle states.  -1 with ERR_ENV: there is none. */
int store_room(struct store *s, struct kept *k, int64_t tokens, struct err *e);

/* The session stands at `end` and is idle. */
void store_keep(struct store *s, struct kept *k, struct chain end);
void store_drop(struct store *s, struct kept *k);

struct store_counts {
    int idle, used, files;              /* now */
    int64_t continued, branched, begun; /* requests */
    int64_t spilled, restored, evicted; /* sessions */
};
struct store_counts store_counts(struct store *s);

#endif
