/* connections.h - limits open connections, so that clients without a token cannot keep others out.
 *
 * A connection is authenticated after a request on it had the token. Others are closed 10 s after they were
 * opened or after their last reply. If too many are open, a new one replaces an unauthenticated one: the
 * oldest from the address with the most. If all are authenticated, it replaces the one that has been idle
 * longest. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct connections;
struct connection;

struct connections *connections_new(int most);
void connections_free(struct connections *c); /* All connections must be closed. */

/* Registers a connection. Its socket stays open until connection_close() returns. */
struct connection *connection_open(struct connections *c, int fd, const struct sockaddr *from);
void connection_close(struct connections *c, struct connection *x);
/* Mark the beginning of a request and the end of its reply. known: the request has the token. */
void connection_begin(struct connections *c, struct connection *x, bool known);
void connection_rest(struct connections *c, struct connection *x);
