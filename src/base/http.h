/* http.h - HTTP client that sends one request at a time over libcurl and can be cancelled at any time.
 *
 * Certificates are verified. Redirects are not followed, because the next host must not get the key; the
 * error message names the new address. Replies are not decompressed and have a size limit of `max_bytes`. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

struct http_client; /* keeps its connection between requests; used by one thread at a time */

struct http_client *http_open(void);
void http_close(struct http_client *c); /* Closes a client; c may be NULL. */

struct http_request {
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
    const char *body;           /* NULL: GET, else POST */
    size_t len;
    const volatile int *stop;          /* non-zero: ends within 50 ms with ERR_STOPPED; may be NULL */
    void (*on_turn)(void *arg);        /* called every 20 ms, for example to set that flag at a deadline; may
                                        * be NULL */
    double connect_s, first_s, idle_s; /* to connect, to the first byte, between bytes; 0: 10, 300, 120 */
    double whole_s;                    /* limit for the whole request; 0: none */
    size_t max_bytes;                  /* maximum size of the reply; 0: 64 MiB */
    const char *ca_file;               /* PEM file that replaces the machine's certificates; may be NULL */
    /* Called with each piece of the body of a reply with status 200 or 206; status and headers are known
     * then. Returns non-zero to end the transfer as if it were complete. NULL: the body is stored in
     * reply.body, like that of any other status. */
    int (*on_data)(void *arg, const char *data, size_t n);
    void *arg;
};

struct http_reply {
    int status;          /* 200 */
    double retry_after;  /* seconds that the server asks the client to wait; 0: not stated */
    double limit_reset;  /* seconds until the first of its rate limits is reset; 0: not stated */
    char type[64];       /* content type without parameters: "text/event-stream" */
    char location[4096]; /* new address of a redirect; "" if none */
    struct buf body;
    bool broken;    /* failed because of the connection or a timeout: the request may be repeated */
    bool unreached; /* failed because no connection was made: unknown host, connection refused */
    bool received;  /* part of a body with status 200 had arrived */
    size_t headers; /* bytes of them */
};

/* Sends a request. Returns 0 if the server replied, with any status; -1 with the reason in e if it did not.
 * The caller calls http_reply_free in both cases. */
int http_send(struct http_client *c, const struct http_request *q, struct http_reply *out, struct err *e);
void http_reply_free(struct http_reply *r);

/* Returns a path, or a part of one, percent-encoded for an address. The caller frees it. */
char *http_escape_path(const char *path);
