/* in_flight.h - requests in flight: concurrency limit, disconnect detection, cancel and pause.
 *
 * A thread checks the sockets of all requests every 20 ms. A request whose client has disconnected ends
 * between two tokens or layers and is then removed. */
#pragma once

#include "serve/completion.h"

struct in_flight;

struct in_flight_request { /* member of the object that owns the request */
    struct in_flight_request *prev, *next;
    struct completion *c;
    int fd;
};

struct in_flight *in_flight_new(int most);
void in_flight_free(struct in_flight *f); /* All requests must be removed. */

/* Registers a request. Returns false if the limit is reached or in_flight_close() was called. */
bool in_flight_add(struct in_flight *f, struct in_flight_request *x, struct completion *c, int fd);
void in_flight_remove(struct in_flight *f, struct in_flight_request *x);
/* Transfers a request to another owner. It stays counted throughout, even after in_flight_close(). */
void in_flight_move(struct in_flight *f, struct in_flight_request *from, struct in_flight_request *to);

void in_flight_close(struct in_flight *f); /* Rejects further requests. */
bool in_flight_closed(struct in_flight *f);
int in_flight_count(struct in_flight *f);
/* Returns the number of requests that are paused or wait for weights. */
int in_flight_paused(struct in_flight *f);

enum in_flight_end { IN_FLIGHT_CANCEL, IN_FLIGHT_ABORT, IN_FLIGHT_PAUSE };
int in_flight_end(struct in_flight *f, enum in_flight_end how);
