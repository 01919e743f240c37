/* server_impl.h - inside of the server; private to src/serve. */
#ifndef HOLORUN_SERVE_SERVER_IMPL_H
#define HOLORUN_SERVE_SERVER_IMPL_H

#include "serve/api.h"
#include "serve/budget.h"
#include "serve/connections.h"
#include "serve/flights.h"
#include "serve/server.h"

#include <microhttpd.h>
#include <pthread.h>

struct server {
    struct service *service;
    struct server_options o;
    struct MHD_Daemon *daemon;
    struct flights *flights;
    struct connections *connections;
    struct budget *bodies;   /* each as large as the request may become in memory */
    pthread_mutex_t trainer; /* one exchange of weights at a time */
    int fd, port;
    bool drained;
};

/* Called by libmicrohttpd for each request, several times; see exchange.c. */
enum MHD_Result exchange_step(void *server, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **exchange);
void exchange_end(void *server, struct MHD_Connection *c, void **exchange,
                  enum MHD_RequestTerminationCode why);

/* A reply as JSON or text; takes over the buffer. */
enum MHD_Result reply_send(struct server *v, struct MHD_Connection *c, int status, const char *type,
                           struct buf *body);
/* The same with the notes of a request in headers; they may be NULL. */
enum MHD_Result reply_send_noted(struct server *v, struct MHD_Connection *c, int status, const char *type,
                                 struct buf *body, const struct notes *notes);
void reply_add_notes(struct MHD_Response *r, const struct notes *n);
/* An error of that status in the shape of a protocol, NULL: OpenAI's; told on stderr too. */
enum MHD_Result reply_refuse(struct server *v, struct MHD_Connection *c, const struct api *api, int status,
                             const char *message);
int reply_status(const struct err *e); /* of what a completion has failed with */

/* Answers a completion, whole or streamed (stream.c). */
enum MHD_Result stream_start(struct server *v, struct MHD_Connection *c, struct completion *of,
                             struct flight *flight);

/* POST /pause, /update_weights, /resume (trainer.c). */
enum MHD_Result trainer_answer(struct server *v, struct MHD_Connection *c, const char *url, const char *body,
                               size_t len);

/* Whether a connection that waits for us may be idle; afterwards its clock begins anew. */
void connection_waits(struct server *v, struct MHD_Connection *c, bool waits);

#endif
