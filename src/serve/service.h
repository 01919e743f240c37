/* service.h - the model as a service: what `holorun serve` opens before it listens. */
#ifndef HOLORUN_SERVE_SERVICE_H
#define HOLORUN_SERVE_SERVICE_H

#include "serve/completion.h"

struct service_options {
    struct engine_options model; /* dir is set; the engine is shared */
    const char *dialect;         /* NULL: the model's own */
    const char *name;            /* for clients; NULL: the name of the directory */
    struct store_options store;
};

/* The caller calls service_close also after a failure. */
int service_open(struct service *v, const struct service_options *o, struct err *e);
void service_close(struct service *v);

#endif
