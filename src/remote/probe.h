/* probe.h - finds out a server's capabilities by sending it test requests: which server it is, its speed, and
 * its support of schemas, thinking options, seeds, images and prefix cache reports.
 *
 * Each result is a row for the user; if a profile has a member for it, it is also stored in `found`. */
#pragma once

#include "remote/endpoint.h"

enum { PROBE_ROWS = 16 };

struct probe_row {
    const char *name;
    bool good; /* false: works with a disadvantage */
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

/* Runs all tests. Returns -1 if the server cannot be used or on a stop; the rows up to then are valid. The
 * caller calls probe_free. */
int probe_server(struct probe *p, struct endpoint *endpoint, const volatile int *stop, struct err *e);
void probe_free(struct probe *p);
