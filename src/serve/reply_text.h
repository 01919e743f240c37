/* reply_text.h - splits a reply while it is generated: reasoning, content, tool calls.
 *
 *   reasoning</think>content<tool_call>...</tool_call>
 *
 * Calls are read in any format that models write (actions/calls.h). Text that may begin a tag or a stop text
 * is held back until this is decided, and a call until the reply ends. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

enum reply_part { REPLY_THOUGHT, REPLY_CONTENT, REPLY_PARTS };

struct reply_text {
    struct buf parts[REPLY_PARTS];
    struct buf held; /* not yet classified */
    enum reply_part now;
    bool stopped; /* a stop text was found: it and the text after it are dropped */
    int stopped_by;
    const json_t *tools; /* tools of the request in OpenAI's format; NULL: calls are content */
    bool blank;          /* skip line breaks after the reasoning */
    const char *const *stops;
    int n_stops;
    json_t *calls; /* tool_calls of the reply, without ids; NULL: none, or the reply has not ended */
    void (*on_text)(void *arg, enum reply_part part, const char *text, size_t n); /* may be NULL */
    void *arg;
};

/* Initializes r. stops and tools are borrowed. think: the text begins with reasoning. */
void reply_text_init(struct reply_text *r, bool think, const json_t *tools, const char *const *stops,
                     int n_stops);
void reply_text_free(struct reply_text *r);

void reply_text_feed(struct reply_text *r, const char *text, size_t n);
void reply_text_end(struct reply_text *r); /* Ends the text and reads the calls. */

/* Returns the calls as "tool_calls" of a message, each with an id that begins with `id`, or NULL. The caller
 * owns it. */
json_t *reply_text_calls(const struct reply_text *r, const char *id);
