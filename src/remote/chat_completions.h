/* chat_completions.h - the protocol "Chat Completions": one request from messages, one reply from its
 * stream.
 *
 * Spoken by vLLM, SGLang, llama.cpp, Ollama, LM Studio, transformers and most vendors.  Where servers
 * differ, everything is read: the thought as "reasoning" or "reasoning_content", the answer as text or
 * as a tool call, streamed or whole.
 */
#ifndef HOLORUN_REMOTE_CHAT_COMPLETIONS_H
#define HOLORUN_REMOTE_CHAT_COMPLETIONS_H

#include "agent/llm.h"
#include "remote/endpoint.h"
#include "remote/events.h"

struct chat_reply {
    struct buf text, thought;
    struct buf call, call_arguments;       /* of the first tool call: its name, its arguments as JSON */
    bool cut_off;                          /* max_tokens */
    bool finished;                         /* the server said so: the reply is whole */
    int64_t prompt_tokens, tokens, cached; /* as the server counts them; -1: it does not say */
    char error[256];                       /* of an error inside the stream; "" */
    void (*on_text)(void *arg, const char *text, size_t len); /* thought and text as they come; may be NULL */
    void *arg;
};

void chat_reply_init(struct chat_reply *r);
void chat_reply_free(struct chat_reply *r);

/* The body of a request, owned by the caller.  messages: borrowed.  schema: of the answer, NULL for
 * none; name: what to call it. */
json_t *chat_request(const struct endpoint *p, json_t *messages, const struct llm_request *r, uint64_t seed,
                     json_t *schema);
/* Names of its members that a server may refuse, NULL-terminated. */
extern const char *const chat_optional[];

/* Reads one event of a stream; non-zero: it was the last. */
int chat_read_event(struct chat_reply *r, const char *data, size_t n);
/* A reply that was not streamed. -1: not a reply. */
int chat_read_whole(struct chat_reply *r, const char *data, size_t n, struct err *e);

#endif
