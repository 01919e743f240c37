/* probe.h - finds out what a server can do, by asking it: which server it is, how fast, how it takes a
 * schema, thinking switches, seeds, pictures, what it says of its prefix cache.
 *
 * Each finding is a row for people and, where a profile has a member for it, becomes part of `found`.
 */
#ifndef HOLORUN_REMOTE_PROBE_H
#define HOLORUN_REMOTE_PROBE_H

#include "remote/endpoint.h"

enum { PROBE_ROWS = 16 };

struct probe_row {
    const char *name;
    bool good; /* false: it works, less well */
    char detail[200];
};

struct probe {
    struct endpoint *endpoint;
    const volatile int *stop;
    struct http_client *http;
    struct probe_row rows[PROBE_ROWS];
    int n;
    json_t *found; /* members of a profile */
};

/* -1: the server cannot be talked to, or a stop; the rows until then are there.  The caller calls
 * probe_free. */
int probe_server(struct probe *p, struct endpoint *endpoint, const volatile int *stop, struct err *e);
void probe_add(struct probe *p, const char *name, bool good, const char *fmt, ...) PRINTF_LIKE(4, 5);
void probe_free(struct probe *p);

#endif
