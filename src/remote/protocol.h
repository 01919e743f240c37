/* protocol.h - the interface of an API protocol: how a conversation becomes a request, and how a reply is
 * read, from a stream of events or one JSON text.
 *
 * The conversation is stored in one form for all protocols, a list of messages:
 *
 *   {"role": "system", "content": TEXT}
 *   {"role": "user", "content": [{"type": "text", "text"} | {"type": "image_url", "image_url": {"url"}}],
 *    "result": TEXT}          the result of the last action: the beginning of the first text
 *   {"role": "assistant", "content": TEXT, "reasoning": TEXT, "tool_calls": [...], "native": ...}
 *   {"role": "tool", "tool_call_id": ID, "content": TEXT}      only in a conversation from elsewhere
 *
 * "native": the turn in the server's own form, for protocols that must send it back like that. */
#pragma once

#include "base/failure.h"
#include "llm/llm.h"
#include "remote/endpoint.h"

struct remote_turn { /* borrowed */
    struct endpoint *endpoint;
    const struct dialect *dialect;
    const json_t *messages;
    const struct llm_request *how;
    uint64_t seed;
    json_t *schema;       /* schema of the answer; NULL: none */
    json_t *tools;        /* tools of a conversation that has its own; NULL: none */
    int shown_w, shown_h; /* size of the newest image, in pixels */
};

struct remote_reply {
    struct buf text, thought;
    struct buf action; /* input of the dialect's parser; empty: text or calls are used */
    json_t *calls;     /* [{"id", "name", "arguments": text}] of tool calls */
    json_t *odds;      /* [{"token", "logprob", "bytes", "top_logprobs"}] of its tokens; NULL: not sent */
    json_t *tokens_of; /* token ids of prompt and reply (token_ids.h); NULL: not sent */
    json_t *native;    /* see above; NULL: the text is sufficient */
    bool cut_off;      /* ended by max_tokens */
    bool withheld;     /* withheld on purpose by the server's filter or the model */
    bool broken_call;  /* native has a call whose input is not JSON, so it is not sent back */
    bool finished;     /* the server reported the end: the reply is complete */
    int64_t prompt_tokens, tokens, cached; /* counted by the server; -1: not reported */
    struct failure failed;                 /* error within the reply, or FAILURE_NONE */
    int64_t first_ns;                      /* clock_ns() of the first text; 0: none yet */
    /* called with each piece of thought and text; may be NULL */
    void (*on_text)(void *arg, const char *text, size_t len);
    void *arg;
};

void remote_reply_init(struct remote_reply *r);
void remote_reply_free(struct remote_reply *r);
/* Appends a string and passes it to on_text; ignores a value that is not a string. */
void remote_reply_add(struct remote_reply *r, struct buf *to, const json_t *value);
/* Returns a token count that a server reports, or `otherwise` if it is not a valid count. */
int64_t remote_reply_count(const json_t *value, int64_t otherwise);
/* Reads the token counts of an OpenAI API, whose members have these names. */
void remote_reply_usage(struct remote_reply *r, const json_t *usage, const char *prompt, const char *reply);
/* Reads the error in a JSON value (failure_read).  Ignores errors after the end of the reply. */
void remote_reply_error(struct remote_reply *r, json_t *root);
/* Classifies an event that is not a JSON object. */
void remote_reply_garbage(struct remote_reply *r, const char *data);

/* Returns whether max_tokens cut off a reply and llama.cpp's server therefore reported, within the stream,
 * that it does not match its format: that server parses a reply with a schema at its end. The text before
 * that error is the reply. */
bool remote_reply_cut_off(struct remote_reply *r);

struct protocol {
    const char *name, *path; /* "chat", "chat/completions" */
    const char *dialect;     /* dialect to use if none is given */
    /* Returns the body of a request; the caller owns it. */
    json_t *(*request)(const struct remote_turn *t);
    /* Names of the members that a server may reject, NULL-terminated. */
    const char *const *optional;
    /* Reads one event of a stream. Returns non-zero if it was the last. */
    int (*read_event)(struct remote_reply *r, const char *data, size_t n);
    /* Reads a reply that was not streamed. Returns -1 if it is not a reply, with the reason in r->failed. */
    int (*read_whole)(struct remote_reply *r, const char *data, size_t n);
    /* Called when the reply is complete: fills action and native. May be NULL. */
    void (*finish)(struct remote_reply *r);
};

extern const struct protocol protocol_chat, protocol_responses, protocol_messages;
const struct protocol *protocol_named(const char *name);   /* NULL: chat */
const struct protocol *protocol_of_path(const char *path); /* unknown path: chat */

/* ---- for requests ------------------------------------------------------------------------------- */

/* Sets a member of the request, unless the server rejects it. Takes ownership of value. */
void request_set(const struct remote_turn *t, json_t *body, const char *key, json_t *value);
json_t *request_real(float v); /* Returns a JSON number with the digits of a float: 0.8f as 0.8. */
/* Returns the parts of a user message without its result. */
json_t *request_parts(const json_t *message);
/* Returns the result of a user message; "" if it has none. */
const char *request_result(const json_t *message);
/* Returns DATA of "data:image/png;base64,DATA". */
const char *request_base64(const json_t *part);
