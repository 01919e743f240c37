/* events.h - parser of server-sent events, the format of a streamed reply. */
#pragma once

#include "base/buf.h"

struct events {
    struct buf line, data;
    /* Called with the NUL-terminated data of one event. Returns non-zero to end the stream. */
    int (*on_event)(void *arg, const char *data, size_t n);
    void *arg;
    bool after_cr; /* the last line ended with CR, and its LF may follow */
    bool ended, too_long;
};

void events_init(struct events *s, int (*on_event)(void *arg, const char *data, size_t n), void *arg);
/* Parses the next bytes of the stream. Returns non-zero if the stream has ended: on_event ended it, or an
 * event is longer than 16 MiB. */
int events_feed(struct events *s, const char *bytes, size_t n);
int events_end(struct events *s); /* Ends the stream; the empty line after the last event may be missing. */
void events_free(struct events *s);
