/* reply_body.h - the body of a reply as it arrives: a stream of events, or one JSON text; what is neither is
 * told by its beginning.
 */
#ifndef HOLORUN_REMOTE_REPLY_BODY_H
#define HOLORUN_REMOTE_REPLY_BODY_H

#include "remote/events.h"
#include "remote/protocol.h"

struct reply_body { /* stays where it is between begin and free */
    const struct protocol *protocol;
    struct remote_reply reply;
    struct events events;
    struct buf whole; /* of a reply that is not streamed: it begins with "{" or "[" */
    char head[48];    /* how the body begins */
    int mark;         /* bytes of a byte order mark before that */
};

void reply_body_begin(struct reply_body *r, const struct protocol *p);
void reply_body_free(struct reply_body *r); /* all zeros is fine */
/* Non-zero: the rest does not matter. */
int reply_body_feed(struct reply_body *r, const char *data, size_t n);
/* The body has ended. 0: the reply is whole; -1: r->reply.failed says why it is not. */
int reply_body_end(struct reply_body *r);

#endif
