/* endpoint.h - a model behind somebody's address: where it is, what it is called there, its key, and what is
 * known of its server.
 *
 * The key lives in locked memory (gate/secret.h) and goes into one header, of requests to this address only.
 * Optional members of a request that the server refuses by name are left out from then on; each is told once.
 */
#ifndef HOLORUN_REMOTE_ENDPOINT_H
#define HOLORUN_REMOTE_ENDPOINT_H

#include "base/err.h"
#include "gate/secret.h"
#include "remote/http.h"

#include <jansson.h>

struct endpoint_options {
    const char *base_url; /* "http://127.0.0.1:8000/v1" */
    const char *model;    /* as it is called there; NULL: the only one that GET models lists */
    const char *key;      /* "env:VAR" or "file:PATH"; NULL: none */
    const char *profile;  /* a JSON file, see endpoint.c; NULL: what the server accepts */
};

struct endpoint {
    char *base, *model;
    struct secrets *key;
    json_t *extra;    /* object: members of every request, over those that we would send */
    json_t *refused;  /* object: names of members that the server does not take */
    char *constraint; /* how a schema is sent: response_format, structured_outputs, guided_json, none */
    int max_images;   /* that the server takes in one request; 0: not known */
    double connect_s, first_s, idle_s; /* see http.h */
    int tries;                         /* of one request */
};

/* Reads key and profile, and asks for the list of models unless one is named.  NULL with the reason. */
struct endpoint *endpoint_open(const struct endpoint_options *o, const volatile int *stop, struct err *e);
void endpoint_free(struct endpoint *p); /* NULL is fine */

/* Sends a request below the base address, again after what a second try can mend (429, 502, 503, 504, a
 * broken connection), after the time that the server asks for, or 1, 2, 4, 8 s and up to a quarter more.
 * 0 with status 200; -1 with one line.  session: its value for the header x-session-id; may be NULL. */
int endpoint_send(struct endpoint *p, struct http_client *c, const char *path, const char *session,
                  struct http_request *q, struct http_reply *out, struct err *e);

/* After a refusal (status 400 or 422): leaves out the members of `body` whose names the message contains.
 * Returns how many; each is told once. */
int endpoint_leave_out(struct endpoint *p, const char *message, const char *const *optional);
bool endpoint_takes(const struct endpoint *p, const char *member);

#endif
