/* prefix.h - prefix cache: what many sessions begin with is computed once.
 *
 * A shared engine caches sessions that hold the first tokens of others, the system text above all.  A fresh
 * session that begins with all tokens of an entry gets a copy of its state.  A recurrent state can be
 * copied only at the position where it was computed, so that what a new text has in common with an entry
 * becomes an entry of its own.
 *
 * The session gets the bits of its own prefill.  A prompt is computed in prefill chunks (language_chunk),
 * and those in chunks of the scan (language.h).  An entry ends between two scan chunks, or between two
 * prefill chunks where results depend on the number of rows (a device) or on how often states are stored
 * (f16).  It leaves at least two pending tokens: a single one would take the decode path.
 */
#ifndef HOLORUN_SESSION_PREFIX_H
#define HOLORUN_SESSION_PREFIX_H

#include "session/session.h"

enum { PREFIX_MAX = 6 }; /* entries; the least recently used one is replaced */

struct prefix_cache {
    struct session *entries[PREFIX_MAX];
    uint64_t used[PREFIX_MAX], clock;
    int n;
};

void prefix_cache_free(struct prefix_cache *p);

/* For a session of which nothing is computed: computes and caches what is new of its pending tokens, then
 * copies the longest entry.  Without room to cache it nothing is copied.  -1: stopped. */
int prefix_reuse(struct prefix_cache *p, struct session *s, struct err *e);

#endif
