/* reply_json.h - replies in the shapes of the Chat Completions API. */
#ifndef HOLORUN_SERVE_REPLY_JSON_H
#define HOLORUN_SERVE_REPLY_JSON_H

#include "serve/completion.h"

/* A whole reply. */
void reply_json_whole(const struct completion *c, struct buf *out);

/* Events of a streamed one, "data: ...\n\n" each. */
struct reply_events {
    const struct completion *of;
    struct buf *out;
    int told; /* tokens whose log-probabilities and ids have been sent */
};
void reply_events_begin(struct reply_events *s);
void reply_events_text(struct reply_events *s, enum reply_part part, const char *text, size_t n);
/* Calls, the reason why it ended, usage when asked for, and [DONE]. */
void reply_events_end(struct reply_events *s);
/* Instead of the end. */
void reply_events_error(struct reply_events *s, const char *message);

/* {"error": {"message", "type", "param", "code"}} */
void reply_json_error(struct buf *out, const char *message, const char *type, const char *code);
void reply_json_model(const struct service *s, struct buf *out);
void reply_json_models(const struct service *s, struct buf *out);

#endif
