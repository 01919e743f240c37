/* protocol.h - what differs between kinds of endpoint: how a conversation becomes a request, and how a reply
 * is read from a stream of events or from one JSON text.
 *
 * The conversation is kept in one form, whatever the protocol: a list of messages
 *
 *   {"role": "system", "content": TEXT}
 *   {"role": "user", "content": [{"type": "text", "text"} | {"type": "image_url", "image_url": {"url"}}],
 *    "result": TEXT}          what the last action gave: the beginning of the first text
 *   {"role": "assistant", "content": TEXT, "reasoning": TEXT, "tool_calls": [...], "native": ...}
 *   {"role": "tool", "tool_call_id": ID, "content": TEXT}      of a conversation that was not begun here
 *
 * "native" is the turn as the server gave it, for protocols that want it back like that.
 */
#ifndef HOLORUN_REMOTE_PROTOCOL_H
#define HOLORUN_REMOTE_PROTOCOL_H

#include "base/failure.h"
#include "llm/llm.h"
#include "remote/endpoint.h"

struct remote_turn { /* borrowed */
    struct endpoint *endpoint;
    const struct dialect *dialect;
    const json_t *messages;
    const struct llm_request *how;
    uint64_t seed;
    json_t *schema;       /* of the answer, NULL for none */
    json_t *tools;        /* of a conversation that brought its own; NULL: none */
    int shown_w, shown_h; /* of the newest picture */
};

struct remote_reply {
    struct buf text, thought;
    struct buf action; /* what the dialect's parser reads; empty: the text, or the calls */
    json_t *calls;     /* [{"id", "name", "arguments": text}] of tool calls */
    json_t *odds;      /* [{"token", "logprob", "bytes", "top_logprobs"}] of its tokens; NULL: none came */
    json_t *native;    /* see above; NULL: the text is enough */
    bool cut_off;      /* max_tokens */
    bool withheld;     /* the server's filter, or the model, gave no reply on purpose */
    bool broken_call;  /* native holds a call whose input is no JSON: it is not sent back */
    bool finished;     /* the server said so: the reply is whole */
    int64_t prompt_tokens, tokens, cached; /* as the server counts them; -1: it does not say */
    struct failure failed;                 /* of an error within the reply; FAILURE_NONE */
    int64_t first_ns;                      /* clock_ns() of the first text; 0: none yet */
    void (*on_text)(void *arg, const char *text, size_t len); /* thought and text as they come; may be NULL */
    void *arg;
};

void remote_reply_init(struct remote_reply *r);
void remote_reply_free(struct remote_reply *r);
/* Appends a text that is shown as it comes; a value that is no string: nothing. */
void remote_reply_add(struct remote_reply *r, struct buf *to, const json_t *value);
/* A count of tokens as a server states it; one that cannot be is `otherwise`. */
int64_t remote_reply_count(const json_t *value, int64_t otherwise);
/* Reads the error in a JSON value (failure_read).  Ignores errors after the end of the reply. */
void remote_reply_error(struct remote_reply *r, json_t *root);
/* Classifies an event that is not a JSON object. */
void remote_reply_garbage(struct remote_reply *r, const char *data);

/* llama.cpp's server parses a reply under a schema at its end, and says within the stream of one that
 * max_tokens has cut off that it does not match its format: true, and the text before is the reply. */
bool remote_reply_cut_off(struct remote_reply *r);

struct protocol {
    const char *name, *path; /* "chat", "chat/completions" */
    const char *dialect;     /* where none is named */
    /* The body of a request, owned by the caller. */
    json_t *(*request)(const struct remote_turn *t);
    /* Names of its members that a server may refuse, NULL-terminated. */
    const char *const *optional;
    /* Reads one event of a stream; non-zero: it was the last. */
    int (*read_event)(struct remote_reply *r, const char *data, size_t n);
    /* A reply that was not streamed. -1: not a reply, r->failed says why. */
    int (*read_whole)(struct remote_reply *r, const char *data, size_t n);
    /* Once the reply is whole: fills action, native; may be NULL. */
    void (*finish)(struct remote_reply *r);
};

extern const struct protocol protocol_chat, protocol_responses, protocol_messages;
const struct protocol *protocol_named(const char *name);   /* NULL: chat */
const struct protocol *protocol_of_path(const char *path); /* of an unknown one: chat */

/* ---- for requests ------------------------------------------------------------------------------- */

/* Sets a member unless the server refuses it; takes over value. */
void request_set(const struct remote_turn *t, json_t *body, const char *key, json_t *value);
json_t *request_real(float v); /* 0.8f as 0.8 */
/* The parts of a user's message after its result. */
json_t *request_parts(const json_t *message);
const char *request_result(const json_t *message); /* "" when there is none */
/* "data:image/png;base64,DATA" -> DATA */
const char *request_base64(const json_t *part);

#endif
