/* hub_impl.h - declarations shared by the files hub_*.c. */
#pragma once

#include "base/bar.h"
#include "base/http.h"
#include "base/secret.h"
#include "checkpoint/hub.h"

struct hub {
    struct pull_options o;
    struct http_client *http;
    struct secrets *token; /* NULL: none */
    char *endpoint, *folder, *locks;
    char *before; /* see hub_before */
    struct hub_listing list;
    struct bar bar;
    bool reached;  /* some server has answered */
    uint64_t here; /* bytes of the listed files that are on the disk */
};

/* Sends a GET request and follows up to 5 redirects; the token is sent to the endpoint's host only. Returns 0
 * for status 200 or 206, else -1 with e. */
int hub_get(struct hub *h, const char *url, struct http_request *q, struct http_reply *out, struct err *e);
/* Returns whether to repeat a failed request, after a warning and a pause. try: attempt number, from 0. Until
 * a server has answered, only two attempts are made, because the machine may be offline. */
bool hub_again(const struct hub *h, const struct http_reply *r, int try, const struct err *why);

/* Downloads one file to blobs/HASH. Returns -1 with e. */
int hub_fetch(struct hub *h, const struct hub_file *f, struct err *e);
/* Returns the number of bytes of a file that are on the disk: all, a part, or none. */
uint64_t hub_present(const struct hub *h, const struct hub_file *f);
