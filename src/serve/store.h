/* store.h - cache of conversations, each kept as a session that can be continued.
 *
 * Lookup is by prefix hash (prompt.h): the best entry has the longest prefix of the prompt at its end or at
 * one of its checkpoints. A match at the end hands over the session itself. A match at a checkpoint returns a
 * branch, so that the other continuation survives. If the session is in use, the thread that uses it creates
 * the branch between two tokens (store_serve).
 *
 * A session has checkpoints before its first image, where clients that keep only the newest images truncate;
 * after each of the last STORE_PICTURES images, for another question about them; and before the last reply,
 * where the same prompt is sent again.
 *
 * Idle sessions are limited in number and bytes. Over the byte limit, checkpoints are freed first; then, and
 * over the count limit, the least recently used session is evicted, to a file if `spill` is set. */
#pragma once

#include "serve/prefix_hash.h"
#include "serve/weights.h"
#include "session/session.h"

struct store;

struct store_options {
    int most;          /* maximum idle sessions in memory */
    size_t bytes;      /* limit of all session states, enforced when a session becomes idle; 0: none */
    const char *spill; /* directory for evicted sessions; NULL: they are freed */
    int most_files;
};

struct store *store_new(struct weights_slot *w, const struct store_options *o);
/* Frees the store and its files. No session may be in use; NULL is allowed. */
void store_free(struct store *s);
void store_flush(struct store *s); /* Frees all idle sessions and their files. */

/* STORE_BEHIND_PICTURE + i modulo STORE_PICTURES: after image i, for the last STORE_PICTURES images. */
enum { STORE_PICTURES = 4 };
enum store_point {
    STORE_BEFORE_PICTURE,
    STORE_BEFORE_REPLY,
    STORE_BEHIND_PICTURE,
    STORE_POINTS = STORE_BEHIND_PICTURE + STORE_PICTURES
};

struct cached_session; /* a session held by one request */

/* Acquires the session with the longest prefix of a prompt with cuts 0 to n; a new session if none matches.
 * *matched: the matched cut, 0 if none. hashes: [n + 1]. Holds a reference to w. May wait for another request
 * to create a branch. Returns NULL if *stop became non-zero. */
struct cached_session *store_acquire(struct store *s, struct weights_set *w, const struct prefix_hash *hashes,
                                     int n, int *matched, const volatile int *stop);
struct session *cached_session(const struct cached_session *k);

/* Prefills pending tokens and sets checkpoint `which` here, at hash `at`. Evicts idle states if memory is
 * short; if that does not suffice, k has no such checkpoint, which is not an error. Returns -1 with e if the
 * prefill failed or was stopped. */
int store_mark(struct store *s, struct cached_session *k, enum store_point which, struct prefix_hash at,
               struct err *e);
/* Rewinds k to its checkpoint STORE_BEFORE_REPLY and writes its hash to *at. Returns -1 with e if there is
 * none. */
int store_rewind(struct cached_session *k, struct prefix_hash *at, struct err *e);

/* Creates the branches that other requests wait for. Call it between tokens, in the thread that uses k; costs
 * one atomic load if none are waiting. */
void store_serve(struct store *s, struct cached_session *k);

/* Pauses or resumes k. While paused, k is not matched, and requests waiting for a branch of it search
 * again. */
void store_pause(struct store *s, struct cached_session *k, bool paused);

/* Evicts idle states, then k's own checkpoints, until k can grow by `tokens`. Returns -1 with ERR_ENV if
 * memory is still short. */
int store_reserve(struct store *s, struct cached_session *k, int64_t tokens, struct err *e);

/* Returns k to the store as idle, ending at `end`, then enforces the limits; frees k if the weights were
 * replaced. store_discard() removes and frees k. */
void store_release(struct store *s, struct cached_session *k, struct prefix_hash end);
void store_discard(struct store *s, struct cached_session *k);

struct store_counts {
    int idle, used, files;              /* current numbers */
    int64_t continued, branched, begun; /* requests since start */
    int64_t spilled, restored, evicted; /* sessions since start */
};
struct store_counts store_counts(struct store *s);
