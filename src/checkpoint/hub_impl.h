/* hub_impl.h - declarations shared by the files hub_*.c. */
#ifndef HOLORUN_CHECKPOINT_HUB_IMPL_H
#define HOLORUN_CHECKPOINT_HUB_IMPL_H

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
    uint64_t here; /* bytes of the listing that are on the disk */
};

/* GET, following up to 5 redirects; the token goes to the host of the endpoint only.  0 with status 200
 * or 206. */
int hub_get(struct hub *h, const char *url, struct http_request *q, struct http_reply *out, struct err *e);
/* Returns whether a request that failed so may be sent again, after a warning and a pause.  try: from 0.  A
 * hub that was never reached is tried twice: this machine is offline or its network is closed. */
bool hub_again(const struct hub *h, const struct http_reply *r, int try, const struct err *why);

/* One file into blobs/HASH. */
int hub_fetch(struct hub *h, const struct hub_file *f, struct err *e);
/* Bytes of a file that are here: all of them, a part, or none. */
uint64_t hub_present(const struct hub *h, const struct hub_file *f);
void hub_show(struct hub *h, const struct hub_file *f);

#endif
