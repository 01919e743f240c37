/* zone.h - a part of the root window, in pixels or % of it. */
#ifndef HOLORUN_GATE_ZONE_H
#define HOLORUN_GATE_ZONE_H

#include "screen/screen.h"

enum { ZONES_MAX = 32 };

struct zone_length {
    double v;
    bool percent;
};

struct zone {
    struct zone_length at[4]; /* x, y, width, height */
};

/* "32" or "12.5%", of a side 0 to 3 of a zone; a width and a height of 0 are none. */
bool zone_length(const char *word, int side, struct zone_length *out);

/* "0,0,100%,32", each of a list that NULL ends, `from` naming it in messages.  The number, or -1 with ERR_USAGE. */
int zones_read(const char *const *texts, const char *from, struct zone out[ZONES_MAX], struct err *e);

/* On a root window of that size; at least what was said of it. */
struct screen_rect zone_rect(const struct zone *z, int w, int h);

#endif
