/* endpoint.h - an HTTP endpoint of a model: its address, the model's name there, its API key, and the known
 * properties of its server.
 *
 * The key is in locked memory (base/secret.h) and is sent in one header, only with requests to this address.
 * If the server rejects an optional member of a request by name, or states a limit of images, later requests
 * respect that; each such change is reported once. */
#pragma once

#include "base/err.h"
#include "base/failure.h"
#include "base/http.h"
#include "base/secret.h"
#include "remote/profile.h"
#include "remote/provider.h"

#include <pthread.h>

struct endpoint_options {
    const char *base_url; /* "http://127.0.0.1:8000/v1", or "recorded:RUN" */
    const char *model;    /* its name on the server; NULL: the only one listed by GET models */
    const char *key;      /* "env:VAR" or "file:PATH"; NULL: none */
    const char *profile;  /* a JSON file (profile.h); NULL: the one saved by `holorun doctor`, if any */
    const char *api;      /* chat, responses, messages; NULL: the profile's, the provider's, else chat */
    double open_s;        /* limit for opening, all attempts together, in seconds; 0: no limit */
    const struct provider *provider; /* its values replace members that are NULL; may be NULL */
};

struct protocol; /* protocol.h */

struct endpoint {
    char *base, *model;
    const struct provider *provider; /* NULL: none was given */
    const struct protocol *protocol;
    struct secrets *key;
    struct replayed *replayed; /* recorded replies that replace the network (replayed.h), else NULL */
    struct profile profile;
    bool own;      /* the server is `holorun serve` */
    char *dialect; /* that it reports for its model; NULL: none */
    /* Findings of its conversations, which run in several threads: */
    pthread_mutex_t lock;
    json_t *refused; /* set (JSON object) of the member names that the server rejects */
    json_t *told;    /* set (JSON object) of the notes already shown */
    int max_images;  /* maximum images that the server accepts in one request; 0: not known */
    bool heard;      /* it has answered a request */
};

/* Opens an endpoint: reads the key and the profile, and requests the list of models if no model is named.
 * Returns NULL with the reason in e. */
struct endpoint *endpoint_open(const struct endpoint_options *o, const volatile int *stop, struct err *e);
void endpoint_free(struct endpoint *p); /* Frees an endpoint; p may be NULL. */

/* A request and the functions that read its reply. They get q->arg. */
struct endpoint_call {
    const char *path;    /* relative to the base address */
    const char *session; /* value of the header x-session-id; may be NULL */
    struct http_request *q;
    void (*begin)(void *arg); /* called before each attempt; may be NULL */
    /* Called after a reply with status 200, or one that broke off after it began (r->broken). Returns 0 if
     * the reply is complete, else -1 with *f. May be NULL. */
    int (*end)(void *arg, struct http_reply *r, struct failure *f);
};

/* Sends a request and repeats it after temporary failures (failure.h), within the profile's limits `tries`
 * and `retry_s`. Waits for as long as the server asks, else 1, 2, 4, ... 30 s plus up to a quarter of that. A
 * complete reply is never requested again. Returns 0 with status 200, else -1 with a one-line message that
 * names the class of the failure. */
int endpoint_send(struct endpoint *p, struct http_client *c, const struct endpoint_call *call,
                  struct http_reply *out, struct err *e);

/* Adapts to an error message of status 400 or 422: members named in it, if listed in `optional`, are left out
 * of later requests, and a limit of images that it states is kept (`sent`: the number that was sent). Returns
 * the number of changes; reports each once. */
int endpoint_learn(struct endpoint *p, const char *message, const char *const *optional, int sent);
bool endpoint_takes(struct endpoint *p, const char *member);
/* Returns the member in which a schema is sent: the profile's choice, else the first that the server has not
 * rejected; "none" if all are rejected. */
const char *endpoint_constraint(struct endpoint *p);
/* Prints a warning the first time that it is called with this key. */
void endpoint_note(struct endpoint *p, const char *key, const char *text);
int endpoint_max_images(struct endpoint *p);
/* Key of the note that the server returns no token probabilities. They are requested until it has been
 * shown. */
#define NO_ODDS "no odds"
bool endpoint_gives_odds(struct endpoint *p);
/* Returns the dialect to use if none was given: the profile's, the server's, the provider's, for a provider
 * with several the one for the model's name, else the protocol's. */
const char *endpoint_dialect(const struct endpoint *p);
