/* service.h - the model as a service, opened by `holorun serve` before it listens. */
#pragma once

#include "serve/completion.h"

struct service_options {
    struct engine_options model; /* dir is set; the engine is shared between threads */
    const char *dialect;         /* NULL: that of the model */
    const char *name;            /* for clients; NULL: the name of the directory */
    struct store_options store;
};

/* Opens the service. Returns -1 with e. The caller calls service_close() in both cases. */
int service_open(struct service *v, const struct service_options *o, struct err *e);
void service_close(struct service *v);
