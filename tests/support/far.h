/* far.h - HTTP server with scripted responses (whole, streamed in pieces, errors, redirects, cuts, silence),
 * and a conversation with it through an endpoint.
 */
#pragma once

#include "remote/llm_remote.h"

#include <pthread.h>

enum { FAR_TURNS = 12, FAR_REQUEST = 4 << 20 };

struct far_turn {
    /* All bytes, headers included. Words in it: SILENCE sends nothing, CUT closes the connection, STALL keeps
     * it open, FILE PATH at the end sends that file, ENDLESS repeats the rest up to 1 GB. */
    const char *reply;
    int piece; /* bytes per send; 0: all */
};

struct far_server {
    int fd, port, n, served;
    size_t endless; /* bytes sent of the last ENDLESS response */
    const struct far_turn *turns;
    char *requests[FAR_TURNS]; /* with `turns` all requests, else the last ones */
    pthread_t thread;
    /* instead of turns: returns an owned response to request n, from 0 */
    char *(*say)(void *arg, int n, const char *request);
    void *arg;
};

void far_open(struct far_server *s, const struct far_turn *turns, int n);
/* Answers each request with say() until far_close(). Keeps a connection open after "Connection: keep-alive".
 * An empty response closes it. */
void far_open_with(struct far_server *s, char *(*say)(void *arg, int n, const char *request), void *arg);
void far_close(struct far_server *s);
char *far_address(const struct far_server *s); /* for --base-url; the caller frees it */
char *far_stream(const char *text);            /* a streamed response with this text; the caller frees it */

struct talk {
    struct far_server server;
    struct endpoint *endpoint;
    struct dialect *dialect;
    struct llm *llm;
    struct err e;
    volatile int stop;
    int alternatives; /* requested per token */
    struct generated g;
};

/* Opens a conversation. api, dialect and profile (JSON text): NULL for chat, holo3 and none. The key is
 * "sesame-open". Retries wait 2 ms, 4 ms, ... unless the server sends a time. */
void talk_open(struct talk *t, const struct far_turn *turns, int n, const char *api, const char *dialect,
               const char *profile);
void talk_close(struct talk *t);
/* Adds a user's turn if text is not NULL, and requests a step. */
int talk_ask(struct talk *t, const char *text);
/* Does the same with an image of w x h in the dialect's wrapper. */
int talk_show(struct talk *t, const char *lead, int w, int h);
/* Returns the body of request i; the caller releases it. */
json_t *talk_body(const struct talk *t, int i);
/* Returns the member at a path like "messages.1.content.0.text" as JSON text; the caller frees it. */
char *talk_at(const struct talk *t, int i, const char *path);
/* Fail the test unless a request has this JSON at the path; unless rc is 0. */
void talk_expect(const struct talk *t, int i, const char *path, const char *json);
void talk_ok(const struct talk *t, int rc);

#define FAR_OK      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define FAR_JSON    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define FAR_SAYS(s) "data: {\"choices\": [{\"delta\": {\"content\": \"" s "\"}}]}\n\n"
#define FAR_STOP    "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n"
#define FAR_USAGE                                                                                            \
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 100, \"completion_tokens\": 9, "                 \
    "\"prompt_tokens_details\": {\"cached_tokens\": 80}}}\n\n"
#define FAR_DONE "data: [DONE]\n\n"
#define FAR_ERROR(status, text)                                                                              \
    "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n{\"error\": {\"message\": \"" text "\"}}"
