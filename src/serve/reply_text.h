/* reply_text.h - the text of a reply, taken apart while it is generated: thought, content, calls of tools.
 *
 *   thought</think>content<tool_call>...</tool_call>
 *
 * Calls are read in any form that models write (actions/calls.h).  Text that may begin a tag or a stop
 * text is held back until that is known, and a call until the reply ends.
 */
#ifndef HOLORUN_SERVE_REPLY_TEXT_H
#define HOLORUN_SERVE_REPLY_TEXT_H

#include "base/buf.h"

#include <jansson.h>

enum reply_part { REPLY_THOUGHT, REPLY_CONTENT, REPLY_PARTS };

struct reply_text {
    struct buf parts[REPLY_PARTS];
    struct buf held; /* not yet told apart */
    enum reply_part now;
    bool stopped; /* a stop text came: it and everything after it are dropped */
    int stopped_by;
    const json_t *tools; /* of the request, in OpenAI's form; NULL: calls are content */
    bool blank;          /* line breaks after a thought are not content */
    const char *const *stops;
    int n_stops;
    json_t *calls; /* "tool_calls" of the reply, without ids; NULL: none, or not at its end */
    void (*on_text)(void *arg, enum reply_part part, const char *text, size_t n); /* may be NULL */
    void *arg;
};

/* stops, tools: borrowed.  think: it begins inside a thought. */
void reply_text_init(struct reply_text *r, bool think, const json_t *tools, const char *const *stops,
                     int n_stops);
void reply_text_free(struct reply_text *r);

void reply_text_feed(struct reply_text *r, const char *text, size_t n);
void reply_text_end(struct reply_text *r); /* no more text comes; reads the calls */

/* The calls as "tool_calls" of a message, each with an id that begins with `id`; NULL when there are
 * none.  The caller owns it. */
json_t *reply_text_calls(const struct reply_text *r, const char *id);

#endif
