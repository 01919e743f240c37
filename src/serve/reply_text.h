/* reply_text.h - the text of a reply, taken apart while it is generated: thought, content, calls of tools.
 *
 *   thought</think>content<TOOLCALL>[{"name": ..., "arguments": {...}}]</TOOLCALL>
 *
 * Text that may begin a mark or a stop text is held back until that is known.
 */
#ifndef HOLORUN_SERVE_REPLY_TEXT_H
#define HOLORUN_SERVE_REPLY_TEXT_H

#include "base/buf.h"

#include <jansson.h>

enum reply_part { REPLY_THOUGHT, REPLY_CONTENT, REPLY_CALLS, REPLY_PARTS };

struct reply_text {
    struct buf parts[REPLY_PARTS];
    struct buf held; /* not yet told apart */
    enum reply_part now;
    bool stopped; /* a stop text came: it and what follows are dropped */
    int stopped_by;
    bool tools;
    bool blank; /* line breaks after a thought are not content */
    const char *const *stops;
    int n_stops;
    void (*on_text)(void *arg, enum reply_part part, const char *text, size_t n); /* may be NULL */
    void *arg;
};

/* stops: borrowed.  think: it begins inside a thought. */
void reply_text_init(struct reply_text *r, bool think, bool tools, const char *const *stops, int n_stops);
void reply_text_free(struct reply_text *r);

void reply_text_feed(struct reply_text *r, const char *text, size_t n);
void reply_text_end(struct reply_text *r); /* nothing more comes */

/* The calls as "tool_calls" of a message, each with an id that begins with `id`; NULL when there are none.
 * Text that looks like a call and is none becomes content. */
json_t *reply_text_calls(struct reply_text *r, const char *id);

#endif
