/* store.h - the conversations that the server remembers, each as a session that goes on where it ended.
 *
 * A request is matched by the hashes of its prompt's prefixes (prompt.h): the longest one whose state a
 * session has, at its end or in a checkpoint.  At the end of a session the request takes the session
 * itself; at a checkpoint it gets a branch, so that the other continuation remains.  While a session is
 * in use, requests that begin with the same prompt get branches from its user, between two tokens.
 *
 * A session has checkpoints before its first picture, where clients cut that keep the newest pictures
 * only, behind each of the last STORE_PICTURES pictures, for another question about them, and before the
 * last reply, where the same prompt is asked again.
 *
 * Idle sessions are bounded in number and bytes: checkpoints go first, then the least recently used
 * session, to a file when there is a folder for that.
 */
#ifndef HOLORUN_SERVE_STORE_H
#define HOLORUN_SERVE_STORE_H

#include "serve/chain.h"
#include "serve/weights.h"
#include "session/session.h"

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

/* BEHIND_PICTURE and the following: behind the last STORE_PICTURES images, image i at i modulo their
 * number. */
enum { STORE_PICTURES = 4 };
enum store_point {
    STORE_BEFORE_PICTURE,
    STORE_BEFORE_REPLY,
    STORE_BEHIND_PICTURE,
    STORE_POINTS = STORE_BEHIND_PICTURE + STORE_PICTURES
};

struct kept; /* a session in use by a request */

/* Takes the session that holds the longest prefix of a prompt with cuts 0 to n; *matched: the cut where
 * it is. chain: [n + 1].  The set of weights gets one more user.  NULL: *stop became non-zero. */
struct kept *store_take(struct store *s, struct weights_set *w, const struct chain *chain, int n,
                        int *matched, const volatile int *stop);
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
