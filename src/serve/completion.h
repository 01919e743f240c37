/* completion.h - one request for a reply: from its body to its last token.
 *
 *     struct completion *c = completion_new(service, &api_chat);
 *     completion_read(c, body, len, &e)        the body is checked; nothing is computed
 *     completion_prepare(c, &e)                finds the conversation and reads what is new of it
 *     completion_generate(c, &e)               the reply; on_text while it comes
 *     completion_keep(c)                       keeps the conversation; before the client is told of the end,
 *                                              because its next turn may come at once
 *     completion_free(c)
 *
 * One thread at a time.  Others may set `gone`: the client went away or the server ends, and `frozen`.
 */
#ifndef HOLORUN_SERVE_COMPLETION_H
#define HOLORUN_SERVE_COMPLETION_H

#include "serve/body.h"
#include "serve/budget.h"
#include "serve/constraint.h"
#include "serve/metrics.h"
#include "serve/prompt.h"
#include "serve/reply_text.h"
#include "serve/store.h"

#include <stdatomic.h>

struct service { /* what all requests share */
    struct weights_slot *weights;
    struct store *store;
    struct constraints *constraints;
    struct metrics metrics;
    struct body_defaults defaults;
    struct budget *pictures; /* memory of decoded ones; NULL: no limit */
    char *model;             /* its name for clients */
    int64_t opened;          /* seconds since 1970 */
    atomic_int ended;        /* requests so far */
};

struct completion_token {
    int32_t id;
    float logprob;
    int version; /* of the weights that it was sampled under */
    bool stop;   /* ended the reply: not part of its text */
};

struct api; /* api.h */

struct completion {
    struct service *service;
    const struct api *api; /* that the client speaks */
    struct chat_body body;
    struct effort effort; /* CPU time for what the body asks beside the model */
    struct prompt layout; /* the prompt, rendered */
    int64_t pixels;       /* of the images of the present turn */
    size_t reserved;      /* of service->pictures, while images are decoded */
    struct weights_set *weights;
    struct kept *kept;
    struct constraint constraint;
    struct reply_text text;
    struct generated piece; /* that is being generated */
    int taken;              /* of its tokens */
    struct completion_token *tokens;
    struct token_alternative *alternatives; /* [n][body.top_logprobs] */
    int n, cap;
    int free_tokens; /* of a thought, before what the constraint is for */
    int thought_tokens;
    int32_t *prompt; /* its ids, when asked for */
    int64_t prompt_tokens, cached_tokens;
    enum finish finish;
    bool done;
    bool aborted;  /* ended by a pause */
    json_t *calls; /* tool_calls of the reply; NULL: none */
    char id[40];
    int64_t created, begun; /* seconds since 1970; clock_ns */
    volatile int gone;      /* set by others: ends everything */
    volatile int frozen;    /* set by others: waits between two tokens */
    volatile int halt;      /* ends the piece */
    volatile int resting;   /* read by others: it waits for weights, and computes nothing */
    /* Parts of the text as they come, and the tokens since then; set before completion_generate. */
    void (*on_text)(void *arg, enum reply_part part, const char *text, size_t n);
    void *arg;
};

struct completion *completion_new(struct service *s, const struct api *api);
/* ERR_USAGE: the request's fault; ERR_ENV: no memory now; ERR_STOPPED: gone. */
int completion_read(struct completion *c, const char *body, size_t len, struct err *e);
size_t completion_text_bytes(const struct completion *c); /* of the messages, without pictures */
int completion_prepare(struct completion *c, struct err *e);
int completion_generate(struct completion *c, struct err *e);
void completion_keep(struct completion *c);
void completion_free(struct completion *c);
/* Reads the conversation, sets prompt_tokens, and keeps the session: instead of prepare and generate. */
int completion_count_tokens(struct completion *c, struct err *e);

/* "stop", "length", "tool_calls", "abort" */
const char *completion_finish(const struct completion *c);
/* The assistant's message as the client gets it, and may send it back; the caller owns it. */
json_t *completion_message(const struct completion *c);
void completion_gone(struct completion *c); /* by another thread */
void completion_freeze(
    struct completion *c); /* likewise: it waits between two tokens until weights are there */

#endif
