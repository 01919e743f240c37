/* events.h - server-sent events: the lines of a streamed reply. */
#ifndef HOLORUN_REMOTE_EVENTS_H
#define HOLORUN_REMOTE_EVENTS_H

#include "base/buf.h"

struct events {
    struct buf line, data;
    /* The data of one event, NUL-terminated; non-zero ends the stream. */
    int (*on_event)(void *arg, const char *data, size_t n);
    void *arg;
    bool after_cr; /* the last line ended with CR, whose LF may be still to come */
    bool ended, too_long;
};

void events_init(struct events *s, int (*on_event)(void *arg, const char *data, size_t n), void *arg);
/* Any piece of the stream; non-zero: it ended, by an event or because an event is longer than 16 MiB. */
int events_feed(struct events *s, const char *bytes, size_t n);
int events_end(struct events *s); /* the last event may lack its empty line */
void events_free(struct events *s);

#endif
