/* turns.h - the message list of a conversation (protocol.h): which messages a request has, and how a reply is
 * added. */
#pragma once

#include "remote/protocol.h"

int turns_pictures(const json_t *messages);
/* Returns the messages with only the newest `most` images (0: all); a placeholder replaces the others. */
json_t *turns_to_send(json_t *messages, int most, const char *placeholder);

/* Returns a reply as a message for later requests. text: the input of the dialect's parser; place: index in
 * the list. */
json_t *turn_of_reply(const struct remote_reply *c, const char *text, size_t place);
