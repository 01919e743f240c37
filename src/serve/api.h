/* api.h - the protocols that clients speak: each becomes a chat completion (body.h) and is answered in its
 * own shapes.
 *
 *   POST /v1/chat/completions   OpenAI's Chat Completions, with vLLM's additions (reply_json.c)
 *   POST /v1/responses          OpenAI's Responses with functions (api_responses.c)
 *   POST /v1/messages           Anthropic's Messages with tools (api_messages.c)
 *   POST /v1/messages/count_tokens, /v1/responses/input_tokens   tokens of the prompt of such a request
 *
 * Nothing is stored by an id: a client sends its whole conversation, which is found again by its messages.
 * The header x-holorun-ignored names members that had no effect, x-holorun-warning values that were replaced
 * (notes.h).
 */
#ifndef HOLORUN_SERVE_API_H
#define HOLORUN_SERVE_API_H

#include "serve/completion.h"

/* Events of a streamed reply. */
struct reply_events {
    const struct completion *of;
    struct buf *out;
    int told;            /* tokens whose log-probabilities and ids have been sent */
    int index, sequence; /* of the block or item that is open; of the next event */
    bool open;
    enum reply_part part; /* of what is open */
    struct buf text;      /* of what is open */
    json_t *items;        /* that are closed */
};

struct api {
    const char *path;
    bool counts;               /* replies with the tokens of the prompt; the other functions are not called */
    body_translate *translate; /* NULL: a request is a body as it is */
    void (*whole)(const struct completion *c, struct buf *out);
    void (*begin)(struct reply_events *s);
    void (*text)(struct reply_events *s, enum reply_part part, const char *text, size_t n);
    void (*end)(struct reply_events *s);
    void (*broken)(struct reply_events *s, const char *message); /* instead of the end */
    void (*refusal)(struct buf *out, int status, const char *message);
};

extern const struct api api_chat, api_responses, api_responses_count, api_messages, api_messages_count;
const struct api *api_of(const char *path); /* NULL: no protocol has this address */

/* Takes over the value. */
void api_put(struct buf *out, json_t *v);
/* "event: NAME\ndata: {...}\n\n"; takes over the value. */
void api_put_event(struct buf *out, const char *name, json_t *v);
/* "chatcmpl-12ab" with another beginning; the caller frees it. */
char *api_id(const struct completion *c, const char *front);

/* ---- for translations ------------------------------------------------------------------------------- */

struct api_rename {
    const char *theirs, *ours;
};
/* Returns whether the member "type" of an object is this one. */
bool api_is(const json_t *object, const char *type);
/* Moves members of theirs with these names into ours, and those that neither the table nor `own`
 * (NULL-terminated) lists, which body_members.c reads. */
void api_move(json_t *ours, json_t *theirs, const struct api_rename *names, const char *const *own);
/* Appends a call to the assistant's message at the end of the list; there is one from now on. */
void api_add_call(json_t *messages, const json_t *id, const json_t *name, json_t *arguments);
json_t *api_response_format(const json_t *schema); /* NULL stays NULL */

#endif
