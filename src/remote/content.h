/* content.h - converts conversation turns to the JSON messages of protocol.h: texts, images as data URLs,
 * conversations with their own tools. */
#pragma once

#include "remote/protocol.h"

/* The size, in pixels, in which the newest image was sent. */
struct content_size {
    int w, h;
};

/* Returns the content of a user message; NULL with e. */
json_t *content_user(const struct dialect *d, const struct chat_part *parts, int n, enum chat_place place,
                     struct content_size *shown, struct err *e);

/* Returns the messages of a conversation. Each tool result has the id of its call. NULL with e. */
json_t *content_conversation(const struct dialect *d, const struct chat_conversation *c,
                             struct content_size *shown, struct err *e);
/* Returns the tools of a conversation as the "tools" member of a request; NULL: it has none. */
json_t *content_tools(const struct chat_conversation *c);
