/* retry.h - decides when to repeat a failed request: after the time that the server asks for, else after a
 * growing time with jitter, within a number of attempts and a total time.
 *
 * All functions except retry_now() are pure, so that tests pass times instead of sleeping. */
#pragma once

#include "base/failure.h"

struct retry_hint { /* all zeros: no header about waiting */
    double after;   /* seconds, from Retry-After or retry-after-ms */
    double reset;   /* seconds until the first of the limits is reset */
};

/* Returns the current time in seconds since 1970. */
double retry_now(void);

/* Reads a header that states a time to wait; ignores other headers. Known: Retry-After (seconds, a duration
 * or an HTTP date), retry-after-ms, x-ratelimit-reset and x-ratelimit-reset-*, ratelimit-reset,
 * anthropic-ratelimit-*-reset (a duration such as 6m0s, a number of seconds, seconds or milliseconds since
 * 1970, or an RFC 3339 date). now: retry_now(). */
void retry_header(struct retry_hint *h, const char *name, const char *value, double now);
/* Returns the seconds in "try again in 1.2s" or "retry after 6 seconds"; 0: none. */
double retry_in_text(const char *message);

struct retry_limits {
    int tries;      /* attempts per request */
    double total_s; /* from the first failure, in seconds */
    double first_s; /* seconds before the second attempt; doubled for each further one, up to 30 s */
};

/* Returns the seconds to wait before the next attempt; -1: no further attempt. tries: attempts so far;
 * elapsed: seconds since the first failure; chance: random number, 0..1. */
double retry_wait(const struct retry_limits *l, const struct failure *f, int tries, double elapsed,
                  double chance);
