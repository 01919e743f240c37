/* turns.h - the list of messages of a conversation (protocol.h): what of it is sent, how a reply joins it. */
#ifndef HOLORUN_REMOTE_TURNS_H
#define HOLORUN_REMOTE_TURNS_H

#include "remote/protocol.h"

int turns_pictures(const json_t *messages);
/* The messages with at most `most` pictures, the newest; a placeholder takes the place of the others.
 * 0: all of them. */
json_t *turns_to_send(json_t *messages, int most, const char *placeholder);

/* A reply as later requests hold it.  text: what the dialect's parser read; place: in the list. */
json_t *turn_of_reply(const struct remote_reply *c, const char *text, size_t place);

#endif
