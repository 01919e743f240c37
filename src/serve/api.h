/* api.h - the HTTP protocols: each translates a request into a chat completion (body.h) and formats the
 * reply.
 *
 *   POST /v1/chat/completions   OpenAI's Chat Completions, with vLLM's additions (reply_json.c)
 *   POST /v1/responses          OpenAI's Responses with functions (api_responses.c)
 *   POST /v1/messages           Anthropic's Messages with tools (api_messages.c)
 *   POST /v1/messages/count_tokens, /v1/responses/input_tokens   number of prompt tokens of such a request
 *
 * Nothing is stored by id: a client sends its whole conversation, which is matched by its messages. The
 * header x-holorun-ignored lists members that had no effect, x-holorun-warning values that were replaced
 * (notes.h). */
#pragma once

#include "serve/completion.h"

/* state of a streamed reply */
struct reply_events {
    const struct completion *of;
    struct buf *out;
    int told;            /* tokens whose log-probabilities and ids have been sent */
    int index, sequence; /* index of the block or item being streamed; number of the next event */
    bool open;
    enum reply_part part; /* type of the output item being streamed */
    struct buf text;      /* its text */
    json_t *items;        /* completed items */
};

struct api {
    const char *path;
    /* replies with the number of prompt tokens; the other functions are not called */
    bool counts;
    body_translate *translate; /* NULL: the request is a chat completion */
    void (*whole)(const struct completion *c, struct buf *out);
    void (*begin)(struct reply_events *s);
    void (*text)(struct reply_events *s, enum reply_part part, const char *text, size_t n);
    void (*end)(struct reply_events *s);
    void (*broken)(struct reply_events *s, const char *message); /* ends the stream after a failure */
    void (*refusal)(struct buf *out, int status, const char *message);
};

/* The functions that every protocol has, under the same names in each file. */
#define API_FUNCTIONS .whole = whole, .begin = begin, .text = text, .end = end, .broken = broken

extern const struct api api_chat, api_responses, api_responses_count, api_messages, api_messages_count;
const struct api *api_of(const char *path); /* Returns the protocol with this path, or NULL. */

/* Appends the value as JSON and frees it. */
void api_put(struct buf *out, json_t *v);
/* Appends "event: NAME\ndata: {...}\n\n" and frees the value. */
void api_put_event(struct buf *out, const char *name, json_t *v);
/* Returns the completion's id with another prefix instead of "chatcmpl-"; the caller frees it. */
char *api_id(const struct completion *c, const char *front);

/* ---- for translations ------------------------------------------------------------------------------- */

struct api_rename {
    const char *theirs, *ours;
};
/* Returns whether the member "type" of an object is this one. */
bool api_is(const json_t *object, const char *type);
/* Moves members of theirs into ours: those with a name in the table under our name, and those in neither the
 * table nor `own` (NULL-terminated) unchanged; body_members.c reads them. */
void api_move(json_t *ours, json_t *theirs, const struct api_rename *names, const char *const *own);
/* Appends a call to the assistant message at the end of the list; adds such a message if there is none. */
void api_add_call(json_t *messages, const json_t *id, const json_t *name, json_t *arguments);
/* Returns a response_format for the schema; NULL for NULL. */
json_t *api_response_format(const json_t *schema);
