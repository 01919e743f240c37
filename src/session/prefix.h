/* prefix.h - prefix cache: computes a prompt prefix that many sessions share only once.
 *
 * A shared engine caches sessions that hold common prefixes, typically the system text. A new session that
 * begins with all tokens of an entry gets a copy of its state. A recurrent state can be copied only at the
 * position where it was computed, so the common prefix of a new text and an entry becomes an entry of its
 * own.
 *
 * Results are bit-identical to a prefill without the cache. A prompt is computed in prefill chunks
 * (language_chunk), and those in chunks of the scan (language.h). An entry ends between two scan chunks,
 * or between two prefill chunks if results depend on the number of rows (GPU) or on how often states are
 * stored (f16). At least two tokens stay pending: a single one would take the decode path. */
#pragma once

#include "session/session.h"

enum { PREFIX_MAX = 6 }; /* entries; the least recently used one is replaced */

struct prefix_cache {
    struct session *entries[PREFIX_MAX];
    uint64_t used[PREFIX_MAX], clock;
    int n;
};

/* Frees all entries. */
void prefix_cache_free(struct prefix_cache *p);

/* Computes and caches the part of the pending tokens of s that is not cached yet, then copies the longest
 * entry into s. No token of s may have been computed. Copies nothing if memory is short. Returns -1 with e
 * only if s was cancelled. */
int prefix_reuse(struct prefix_cache *p, struct session *s, struct err *e);
