/* server.h - HTTP in front of the service: addresses, keys, limits, requests in flight, their end.
 *
 *   GET  /health  /metrics  /v1/models  /v1/models/NAME
 *   POST /v1/chat/completions  /v1/responses  /v1/messages          (api.h)
 *        /v1/responses/input_tokens  /v1/messages/count_tokens
 *   POST /pause  /update_weights  /resume          for trainers, when `trainer` allows it
 *
 * A thread per connection (libmicrohttpd), and one more per streamed reply.  Everything but /health needs
 * the token, as "Authorization: Bearer" or "x-api-key".  Each refusal is one line on stderr.  A request whose
 * body does not fit the memory for all bodies is refused with 503; pictures wait for their half of it.
 */
#ifndef HOLORUN_SERVE_SERVER_H
#define HOLORUN_SERVE_SERVER_H

#include "serve/completion.h"

struct server_options {
    const char *listen;     /* "127.0.0.1:8717", "[::1]:0" */
    const char *token;      /* NULL: none is asked for */
    const char *cert, *key; /* files, PEM; NULL: no TLS */
    bool insecure;          /* another address than loopback without TLS */
    size_t max_body;        /* bytes */
    size_t memory;          /* bytes for the bodies and pictures of all requests; 0: 1 GiB */
    int max_requests;       /* at once; more are refused with 429 */
    double idle_s;          /* a connection on which nothing moves is closed */
    bool trainer;
    struct engine_options model; /* of weights that a trainer loads */
};

struct server;

struct server *server_start(struct service *s, const struct server_options *o, struct err *e);
int server_port(const struct server *v);

/* Takes no new connections and requests, and waits until those in flight have ended or *hurry is set; then
 * they are cut off.  Returns how many were. */
int server_drain(struct server *v, double seconds, const volatile int *hurry);
void server_stop(struct server *v); /* frees it */

/* The token in a file that only its owner reads; made when there is none.  The caller frees it. */
char *server_token(const char *path, struct err *e);

#endif
