/* retry.h - when a failed request is sent again: the wait that a server asks for, else a growing one with
 * jitter, within a number of tries and a total time.
 *
 * All functions are pure but retry_now(): tests pass times instead of sleeping.
 */
#ifndef HOLORUN_BASE_RETRY_H
#define HOLORUN_BASE_RETRY_H

#include "base/failure.h"

struct retry_hint { /* all zeros: no header about waiting */
    double after;   /* seconds, of Retry-After or retry-after-ms */
    double reset;   /* seconds until the first of the limits is reset */
};

/* Seconds since 1970. */
double retry_now(void);

/* Reads a header about waiting; ignores any other one.  Known: Retry-After (seconds, a duration or an HTTP
 * date), retry-after-ms, x-ratelimit-reset and x-ratelimit-reset-*, ratelimit-reset,
 * anthropic-ratelimit-*-reset (a duration such as 6m0s, a number of seconds, seconds or milliseconds since
 * 1970, or an RFC 3339 date).
 * now: retry_now(). */
void retry_header(struct retry_hint *h, const char *name, const char *value, double now);
/* Returns the seconds in "try again in 1.2s" or "retry after 6 seconds"; 0: none. */
double retry_in_text(const char *message);

struct retry_limits {
    int tries;      /* of one request */
    double total_s; /* from the first failure */
    double first_s; /* first wait; each further one is twice as long, up to 30 s */
};

/* Returns the seconds to wait before the next try, or -1: give up.  tries: number made so far; elapsed:
 * seconds since the first failure; chance: 0..1. */
double retry_wait(const struct retry_limits *l, const struct failure *f, int tries, double elapsed,
                  double chance);

#endif
