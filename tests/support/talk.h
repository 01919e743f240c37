/* talk.h - reads a conversation of the golden data (tests/reference/make_chat*.py) as a struct
 * chat_conversation.
 */
#pragma once

#include "text/chat_template.h"

#include <jansson.h>

enum { MAX_MESSAGES = 32, MAX_PARTS = 8, MAX_TOOLS = 4 };

struct talk {
    struct chat_conversation c;
    struct chat_message messages[MAX_MESSAGES];
    struct chat_part parts[MAX_MESSAGES][MAX_PARTS];
    struct image images[MAX_MESSAGES * MAX_PARTS];
    int n_images;
    char *calls[MAX_MESSAGES][MAX_TOOLS], *tools[MAX_TOOLS];
};

struct talk *talk_read(const json_t *v); /* fails the test on an error */
void talk_free(struct talk *t);
