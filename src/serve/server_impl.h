/* server_impl.h - struct server and functions shared by the HTTP files; private to src/serve. */
#pragma once

#include "serve/api.h"
#include "serve/budget.h"
#include "serve/connections.h"
#include "serve/in_flight.h"
#include "serve/server.h"

#include <microhttpd.h>
#include <pthread.h>

struct server {
    struct service *service;
    struct server_options o;
    struct MHD_Daemon *daemon;
    struct in_flight *in_flight;
    struct connections *connections;
    struct budget *bodies;   /* memory of request bodies, including their parsed form */
    pthread_mutex_t trainer; /* held while weights are exchanged */
    int fd, port;
    bool drained;
};

/* Called by libmicrohttpd several times per request; see exchange.c. */
enum MHD_Result exchange_step(void *server, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **exchange);
void exchange_end(void *server, struct MHD_Connection *c, void **exchange,
                  enum MHD_RequestTerminationCode why);

/* Sends a reply as JSON or text; takes ownership of the buffer. */
enum MHD_Result reply_send(struct server *v, struct MHD_Connection *c, int status, const char *type,
                           struct buf *body);
/* Does the same with the notes of a request as headers; notes may be NULL. */
enum MHD_Result reply_send_noted(struct server *v, struct MHD_Connection *c, int status, const char *type,
                                 struct buf *body, const struct notes *notes);
void reply_add_notes(struct MHD_Response *r, const struct notes *n);
/* Sends an error with this status in the format of a protocol (NULL: OpenAI's) and reports it on stderr. */
enum MHD_Result reply_refuse(struct server *v, struct MHD_Connection *c, const struct api *api, int status,
                             const char *message);

/* Sends a streamed reply and takes ownership of the completion (stream.c). */
enum MHD_Result stream_start(struct server *v, struct MHD_Connection *c, struct completion *of,
                             struct in_flight_request *flight);

/* Handles POST /pause, /update_weights and /resume (trainer.c). */
enum MHD_Result trainer_answer(struct server *v, struct MHD_Connection *c, const char *url, const char *body,
                               size_t len);

/* Disables the idle timeout of a connection while it waits for us; afterwards the timeout restarts. */
void connection_waits(struct server *v, struct MHD_Connection *c, bool waits);
