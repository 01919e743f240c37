/* server.h - the HTTP server: addresses, authorization, limits, shutdown.
 *
 *   GET  /health  /metrics  /v1/models  /v1/models/NAME
 *   POST /v1/chat/completions  /v1/responses  /v1/messages          (api.h)
 *        /v1/responses/input_tokens  /v1/messages/count_tokens
 *   POST /pause  /update_weights  /resume          for trainers, if `trainer` is set
 *
 * One thread per connection (libmicrohttpd), and one more per streamed reply. All paths except /health need
 * the token, as "Authorization: Bearer" or "x-api-key". Each rejected request is one line on stderr. A
 * request whose body does not fit the memory for bodies is rejected with 503; images wait for their half of
 * the memory. */
#pragma once

#include "serve/completion.h"

struct server_options {
    const char *listen;     /* "127.0.0.1:8717", "[::1]:0" */
    const char *token;      /* NULL: not required */
    const char *cert, *key; /* PEM files; NULL: no TLS */
    bool insecure;          /* allow addresses other than loopback without TLS */
    size_t max_body;        /* bytes */
    size_t memory;          /* bytes for bodies and images of all requests; 0: 1 GiB */
    int max_requests;       /* concurrent requests; more are rejected with 429 */
    double idle_s;          /* seconds after which an inactive connection is closed */
    bool trainer;
    struct engine_options model; /* options for weights that a trainer loads */
};

struct server;

struct server *server_start(struct service *s, const struct server_options *o, struct err *e);
int server_port(const struct server *v);

/* Accepts no new connections and requests, waits until all requests have ended, *hurry is set or the time is
 * over, and then cancels the remaining ones. Returns how many were cancelled. */
int server_drain(struct server *v, double seconds, const volatile int *hurry);
void server_stop(struct server *v); /* Stops the server and frees it. */

/* Returns the token from a file readable only by its owner; creates the file if it does not exist. The caller
 * frees the token. Returns NULL with e. */
char *server_token(const char *path, struct err *e);
