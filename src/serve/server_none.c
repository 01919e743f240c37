/* server_none.c - the HTTP server of a build without libmicrohttpd: it cannot be started (base/feature.h). */
#include "serve/server.h"

#include "base/feature.h"

#include <stddef.h>

struct server *server_start(struct service *s, const struct server_options *o, struct err *e)
{
    feature_require(FEATURE_SERVE, e);
    return NULL;
}

int server_port(const struct server *v)
{
    return 0;
}

int server_drain(struct server *v, double seconds, const volatile int *hurry)
{
    return 0;
}

void server_stop(struct server *v)
{
}
