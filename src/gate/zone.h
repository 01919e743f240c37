/* zone.h - an area of the root window, in pixels or percent. */
#pragma once

#include "screen/screen.h"

enum { ZONES_MAX = 32 };

struct zone_length {
    double v;
    bool percent;
};

struct zone {
    struct zone_length at[4]; /* x, y, width, height */
};

/* Parses "32" or "12.5%" as side 0 to 3 of a zone; width and height must not be 0. */
bool zone_length(const char *word, int side, struct zone_length *out);

/* Parses a NULL-terminated list of texts like "0,0,100%,32"; `from` names the option in messages. Returns
 * their number, or -1 with ERR_USAGE. */
int zones_read(const char *const *texts, const char *from, struct zone out[ZONES_MAX], struct err *e);

/* Returns the zone on a root window of that size, rounded outwards. */
struct screen_rect zone_rect(const struct zone *z, int w, int h);

/* Returns whether the straight line from a to b touches r. */
bool zone_touched(const struct screen_rect *r, const int a[2], const int b[2]);
