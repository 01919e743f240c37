/* http.h - one HTTP exchange at a time over libcurl, which a stop ends at once.
 *
 * Certificates are verified.  A redirect is not followed: the next host must not get the key, and the message
 * names the address that it gave.  Replies are neither decompressed nor longer than `max_bytes`.
 */
#ifndef HOLORUN_BASE_HTTP_H
#define HOLORUN_BASE_HTTP_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

struct http_client; /* keeps its connection between requests; one thread at a time */

struct http_client *http_open(void);
void http_close(struct http_client *c); /* NULL is fine */

struct http_request {
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
    const char *body;           /* NULL: GET, else POST */
    size_t len;
    const volatile int *stop;          /* non-zero: ends within 50 ms with ERR_STOPPED; may be NULL */
    void (*on_turn)(void *arg);        /* every 20 ms, for whoever sets that flag by the clock; may be NULL */
    double connect_s, first_s, idle_s; /* to connect, to the first byte, between bytes; 0: 10, 300, 120 */
    double whole_s;                    /* for all of it; 0: no limit */
    size_t max_bytes;                  /* of the reply; 0: 64 MiB */
    const char *ca_file;               /* PEM, in place of the machine's certificates; may be NULL */
    /* The body of a reply with status 200 or 206 as it arrives, when status and headers are known;
     * non-zero ends the exchange as if it were complete. NULL: it goes into reply.body, as those of
     * other statuses do. */
    int (*on_data)(void *arg, const char *data, size_t n);
    void *arg;
};

struct http_reply {
    int status;          /* 200 */
    double retry_after;  /* seconds that the server asks the client to wait; 0: none */
    double limit_reset;  /* seconds until the first of its rate limits is reset; 0: it does not say */
    char type[64];       /* of the content, without parameters: "text/event-stream" */
    char location[4096]; /* of a redirect; "" */
    struct buf body;
    bool broken;    /* -1 because the connection failed or timed out: the request may be sent again */
    bool unreached; /* -1 because the connection failed: an unknown name, a refusal */
    bool received;  /* some of a body of status 200 had arrived */
    size_t headers; /* bytes of them */
};

/* 0: the server has answered, with any status; -1: it has not, with the reason.  The caller calls
 * http_reply_free in both cases. */
int http_send(struct http_client *c, const struct http_request *q, struct http_reply *out, struct err *e);
void http_reply_free(struct http_reply *r);

/* A path or a part of one as it stands in an address; the caller frees it. */
char *http_escape_path(const char *path);

#endif
