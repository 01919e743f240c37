/* completion.h - one completion request, from its body to its last token.
 *
 *   struct completion *c = completion_new(service, &api_chat);
 *   completion_read(c, body, len, &e)        parses and checks the body
 *   completion_prepare(c, &e)                finds the cached session and prefills the rest of the prompt
 *   completion_generate(c, &e)               generates the reply; calls on_text meanwhile
 *   completion_keep(c)                       returns the session to the cache; call it before the client gets
 *                                            the end of the reply, because its next turn may follow at once
 *   completion_free(c)
 *
 * Used by one thread at a time. Other threads may set `gone` (the client disconnected or the server ends) and
 * `paused`. */
#pragma once

#include "serve/body.h"
#include "serve/budget.h"
#include "serve/constraint.h"
#include "serve/metrics.h"
#include "serve/prompt.h"
#include "serve/reply_text.h"
#include "serve/store.h"

#include <stdatomic.h>

struct service { /* shared by all requests */
    struct weights_slot *weights;
    struct store *store;
    struct constraints *constraints;
    struct metrics metrics;
    struct body_defaults defaults;
    struct budget *pictures; /* memory of decoded images; NULL: no limit */
    char *model;             /* model name for clients */
    char *dialect;           /* name of the model's reply format */
    int64_t opened;          /* seconds since 1970 */
    atomic_int ended;        /* number of completed requests */
};

struct completion_token {
    int32_t id;
    float logprob, before; /* with and without the constraint, as in struct token_choice */
    int version;           /* version of the weights */
    bool stop;             /* ended the reply; not part of its text */
    bool forced;           /* not sampled: the constraint allowed no other token */
};

struct api; /* api.h */

struct completion {
    struct service *service;
    const struct api *api; /* protocol of the client */
    struct chat_body body;
    struct effort effort; /* CPU budget for work outside the model */
    struct prompt layout; /* the rendered prompt */
    int64_t pixels;       /* pixels of the images of the current turn */
    size_t reserved;      /* bytes reserved from service->pictures while images are decoded */
    struct weights_set *weights;
    struct cached_session *kept;
    struct constraint constraint;
    struct reply_text text;
    struct generated piece; /* piece being generated */
    int taken;              /* number of its tokens copied to `tokens` */
    struct completion_token *tokens;
    struct token_alternative *alternatives; /* [n][body.top_logprobs] */
    int n, cap;
    int free_tokens; /* tokens of the reasoning before the constrained part */
    int thought_tokens;
    int32_t *prompt; /* prompt token ids, if requested */
    int64_t prompt_tokens, cached_tokens;
    enum finish finish;
    bool done;
    bool aborted;  /* aborted by a pause */
    json_t *calls; /* tool calls of the reply; NULL: none */
    char id[40];
    int64_t created, begun; /* seconds since 1970; clock_ns() */
    volatile int gone;      /* set by other threads: ends the request */
    volatile int paused;    /* set by other threads: pauses between two tokens */
    volatile int halt;      /* ends the current piece */
    volatile int waiting;   /* read by other threads: the request waits for weights and does not compute */
    /* Receives parts of the text with the tokens generated since the last call; set it before
     * completion_generate(). */
    void (*on_text)(void *arg, enum reply_part part, const char *text, size_t n);
    void *arg;
};

struct completion *completion_new(struct service *s, const struct api *api);
/* Parses the body. Returns -1 with ERR_USAGE for an invalid request, ERR_ENV if memory is short, ERR_STOPPED
 * if the client is gone. */
int completion_read(struct completion *c, const char *body, size_t len, struct err *e);
/* Returns the bytes of text in the messages, without images. */
size_t completion_text_bytes(const struct completion *c);
int completion_prepare(struct completion *c, struct err *e);
int completion_generate(struct completion *c, struct err *e);
void completion_keep(struct completion *c);
void completion_free(struct completion *c);
/* Counts the tokens of the prompt and sets prompt_tokens; replaces prepare and generate. */
int completion_count_tokens(struct completion *c, struct err *e);

/* Returns "stop", "length", "tool_calls" or "abort". */
const char *completion_finish(const struct completion *c);
/* Returns the assistant message as the client gets it and may send it back; the caller owns it. */
json_t *completion_message(const struct completion *c);
void completion_gone(struct completion *c); /* Cancels the request; called by another thread. */
/* Pauses the request between two tokens until weights are available; called by another thread. */
void completion_pause(struct completion *c);
