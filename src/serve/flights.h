/* flights.h - the requests that are being computed: how many there may be, whose client has gone, and how
 * all of them are stopped or frozen.
 *
 * A thread looks at their sockets every 20 ms: a client that hangs up ends its request between two tokens or
 * layers, and its place is free.
 */
#ifndef HOLORUN_SERVE_FLIGHTS_H
#define HOLORUN_SERVE_FLIGHTS_H

#include "serve/completion.h"

struct flights;

struct flight { /* inside of whatever owns the request */
    struct flight *prev, *next;
    struct completion *c;
    int fd;
};

struct flights *flights_new(int most);
void flights_free(struct flights *f); /* after the last one */

/* false: there are as many as there may be, or it is closed. */
bool flights_add(struct flights *f, struct flight *x, struct completion *c, int fd);
void flights_remove(struct flights *f, struct flight *x);
/* Another owner takes a request over; it counts all the while, also when no more are added. */
void flights_move(struct flights *f, struct flight *from, struct flight *to);

void flights_close(struct flights *f); /* no more are added */
bool flights_closed(struct flights *f);
int flights_count(struct flights *f);
int flights_resting(struct flights *f); /* frozen, or waiting for weights */

enum flights_end { FLIGHTS_CUT, FLIGHTS_ABORT, FLIGHTS_FREEZE };
int flights_end(struct flights *f, enum flights_end how);

#endif
