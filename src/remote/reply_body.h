/* reply_body.h - reads the body of a reply as it arrives: a stream of events, or one JSON text. The first
 * characters determine the kind. */
#pragma once

#include "remote/events.h"
#include "remote/protocol.h"

struct reply_body { /* must not move in memory between begin and free */
    const struct protocol *protocol;
    struct remote_reply reply;
    struct events events;
    struct buf whole; /* a reply that is not streamed; it begins with "{" or "[" */
    char head[48];    /* beginning of the body */
    int mark;         /* bytes of a byte order mark before that */
};

void reply_body_begin(struct reply_body *r, const struct protocol *p);
void reply_body_free(struct reply_body *r); /* Frees a body; all zeros is allowed. */
/* Reads the next bytes. Returns non-zero if the rest is not needed. */
int reply_body_feed(struct reply_body *r, const char *data, size_t n);
/* Ends the body. Returns 0 if the reply is complete; -1 with the reason in r->reply.failed. */
int reply_body_end(struct reply_body *r);
