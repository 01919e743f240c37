/* prefix.h - what many sessions begin with is computed once.
 *
 * An engine that is shared keeps sessions with the texts that others began with, the system text above all.  A
 * fresh session that begins with all of such a text gets a copy of its state.  What a new text has in common with
 * one that is kept is kept by itself, too: a state can be copied where it was taken and nowhere else.
 *
 * What the session gets has the bits of its own reading.  A prompt goes through in pieces, and those in chunks of the
 * scan (language.h); a kept text ends between two chunks, or between two pieces where results depend on how many rows
 * there are (a device) or how often states are stored (f16).  And it leaves two tokens at least: one alone goes
 * another way than the last of many.
 */
#ifndef HOLORUN_SESSION_PREFIX_H
#define HOLORUN_SESSION_PREFIX_H

#include "session/session.h"

enum { PREFIX_KEPT = 6 }; /* texts; the one that was not used for longest goes */

struct prefixes {
    struct session *kept[PREFIX_KEPT];
    uint64_t used[PREFIX_KEPT], clock;
    int n;
};

void prefixes_free(struct prefixes *p);

/* Of a session in which nothing was computed yet as much of what waits as can be is taken from what is kept; what is
 * new is read first, and kept.  Without room to keep it nothing is taken.  -1: stopped. */
int prefix_take(struct prefixes *p, struct session *s, struct err *e);

#endif
