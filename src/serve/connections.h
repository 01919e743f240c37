/* connections.h - who is connected: connections without a token do not keep others out.
 *
 * A connection becomes known when a request on it has the token.  Others are cut off 10 s after they were
 * opened, or after the reply before.  When too many are open, a new one takes the place of an unknown one:
 * the oldest from the address that has the most.  If all are known, it takes the place of the one that has
 * been idle for longest.
 */
#ifndef HOLORUN_SERVE_CONNECTIONS_H
#define HOLORUN_SERVE_CONNECTIONS_H

#include <stdbool.h>
#include <sys/socket.h>

struct connections;
struct connection;

struct connections *connections_new(int most);
void connections_free(struct connections *c); /* after the last one */

/* The socket stays open until connection_close() returns. */
struct connection *connection_open(struct connections *c, int fd, const struct sockaddr *from);
void connection_close(struct connections *c, struct connection *x);
/* Marks the beginning of a request, and whether it has the token; and the end of its reply. */
void connection_begin(struct connections *c, struct connection *x, bool known);
void connection_rest(struct connections *c, struct connection *x);

#endif
