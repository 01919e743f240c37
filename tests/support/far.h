/* far.h - a server that says exactly what a test tells it, and a conversation with it through an endpoint:
 * whole and streamed replies in pieces, refusals, redirects, cuts, silence. */
#ifndef HOLORUN_TESTS_FAR_H
#define HOLORUN_TESTS_FAR_H

#include "remote/llm_remote.h"

#include <pthread.h>

enum { FAR_TURNS = 12, FAR_REQUEST = 4 << 20 };

struct far_turn {
    /* All bytes, headers included; "SILENCE" says nothing; CUT in it ends the connection, STALL does not;
     * FILE PATH at its end is that file, and what follows ENDLESS is repeated up to a gigabyte. */
    const char *reply;
    int piece; /* bytes sent at once; 0: all */
};

struct far_server {
    int fd, port, n, served;
    size_t endless; /* bytes that were taken of the last such reply */
    const struct far_turn *turns;
    char *requests[FAR_TURNS]; /* of turns: all; else the last ones */
    pthread_t thread;
    char *(*say)(void *arg, int n, const char *request); /* in place of turns: owned; n: from 0 */
    void *arg;
};

void far_open(struct far_server *s, const struct far_turn *turns, int n);
/* Answers every request until it is closed; more than one on a connection after "Connection: keep-alive".
 * An empty answer hangs up. */
void far_open_with(struct far_server *s, char *(*say)(void *arg, int n, const char *request), void *arg);
void far_close(struct far_server *s);
char *far_address(const struct far_server *s); /* as --base-url; the caller frees it */
char *far_stream(const char *text);            /* a streamed reply that says it; the caller frees it */

struct talk {
    struct far_server server;
    struct endpoint *endpoint;
    struct dialect *dialect;
    struct llm *llm;
    struct err e;
    volatile int stop;
    int alternatives; /* of each token, that are asked for */
    struct generated g;
};

/* api, dialect, profile (JSON text): NULL for chat, holo3, none.  The key is "sesame-open".  Further tries come
 * after 2 ms, 4 ms, ... unless the server asks for a time. */
void talk_open(struct talk *t, const struct far_turn *turns, int n, const char *api, const char *dialect,
               const char *profile);
void talk_close(struct talk *t);
/* A user's turn, if text is not NULL, and its reply as a step. */
int talk_ask(struct talk *t, const char *text);
/* The same with a picture of w x h pixels in the dialect's wrapper. */
int talk_show(struct talk *t, const char *lead, int w, int h);
/* The body of request i; the caller releases it. */
json_t *talk_body(const struct talk *t, int i);
/* "messages.1.content.0.text" of it as JSON text; the caller frees it. */
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

#endif
