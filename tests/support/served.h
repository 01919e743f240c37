/* served.h - the HTTP server over a tiny model in the test's process, and requests to it.
 *
 *     struct served v;
 *     served_open(&v, NULL);
 *     struct said r = served_post(&v, "/v1/chat/completions", body);     takes over the JSON
 *     assert_int_equal(r.status, 200);
 *     said_free(&r);
 *     served_close(&v);
 */
#pragma once

#include "tiny_model.h"

#include "serve/server.h"
#include "serve/service.h"

#include <jansson.h>

#define SERVED_TOKEN "sesame-open-sesame"

struct served {
    struct tiny tiny;
    struct service service;
    struct service_options options;
    struct server *server;
    char url[64];
    const char *authority; /* certificate that clients trust; NULL: the system's */
};

/* change: edits the options first; may be NULL. */
void served_open(struct served *v, void (*change)(struct service_options *o, struct server_options *s));
void served_close(struct served *v);

struct said { /* response of the server */
    int status;
    char *text;
    json_t *json;   /* whole reply, or the merged events of a stream; NULL: neither */
    int events;     /* of a stream */
    double first_s; /* time to the first byte */
    char retry_after[16];
    char ignored[1024], warning[1024]; /* x-holorun-ignored, x-holorun-warning; "" if absent */
};

struct said served_get(const struct served *v, const char *path);
struct said served_post(const struct served *v, const char *path, json_t *body);
struct said served_chat(const struct served *v, json_t *body); /* posts to /v1/chat/completions */
/* Sends any bytes; token NULL: none. hang_up_after: closes after this many bytes of the reply; -1: never. */
struct said served_send(const struct served *v, const char *path, const char *token, const char *body,
                        size_t len, long hang_up_after);
void said_free(struct said *r);

/* Parts of a reply. */
const char *said_content(const struct said *r);
const char *said_finish(const struct said *r);
json_int_t said_number(const struct said *r, const char *name); /* member of "usage", or "cached_tokens" */
json_t *said_ids(const struct said *r);
json_t *said_message(const struct said *r);
/* Fails unless both have the same members, of the same types. */
void said_same_shape(const json_t *a, const json_t *b, const char *where);

/* Returns a user's message: a text and `pictures` random images from this seed on. */
json_t *served_user(const char *text, int pictures, uint64_t seed);
json_t *served_picture(uint64_t seed); /* a content part */

/* Returns a greedy request with one such message. */
json_t *served_request(const char *text, int pictures, int tokens);
json_t *served_with(json_t *body, const char *members); /* adds members, given as JSON text, to the request */

/* Returns the value of a line of /metrics. */
double served_metric(const struct served *v, const char *name);
