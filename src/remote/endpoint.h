/* endpoint.h - a model behind somebody's address: where it is, what it is called there, its key, and what is
 * known of its server.
 *
 * The key lives in locked memory (base/secret.h) and goes into one header, of requests to this address only.
 * Optional members of a request that the server refuses by name are left out from then on; each is told once.
 * So is a limit of pictures.
 */
#ifndef HOLORUN_REMOTE_ENDPOINT_H
#define HOLORUN_REMOTE_ENDPOINT_H

#include "base/err.h"
#include "base/failure.h"
#include "base/http.h"
#include "base/secret.h"
#include "remote/profile.h"
#include "remote/provider.h"

#include <pthread.h>

struct endpoint_options {
    const char *base_url; /* "http://127.0.0.1:8000/v1", or "recorded:RUN" */
    const char *model;    /* as it is called there; NULL: the only one that GET models lists */
    const char *key;      /* "env:VAR" or "file:PATH"; NULL: none */
    const char *profile;  /* a JSON file (profile.h); NULL: what `doctor` kept of it, if anything */
    const char *api;      /* chat, responses, messages; NULL: the profile's, the provider's, else chat */
    double open_s;        /* for opening, all tries together; 0: no limit */
    const struct provider *provider; /* its values replace members that are NULL; may be NULL */
};

struct protocol; /* protocol.h */

struct endpoint {
    char *base, *model;
    const struct provider *provider; /* NULL: none was named */
    const struct protocol *protocol;
    struct secrets *key;
    struct tape *tape; /* recorded exchanges in place of a network (tape.h), else NULL */
    struct profile profile;
    /* Findings of its conversations, which run in several threads: */
    pthread_mutex_t lock;
    json_t *refused; /* object: names of members that the server does not take */
    json_t *told;    /* object: notes that were given */
    int max_images;  /* that the server takes in one request; 0: not known */
    bool heard;      /* it has answered a request */
};

/* Reads key and profile, and asks for the list of models unless one is named.  NULL with the reason. */
struct endpoint *endpoint_open(const struct endpoint_options *o, const volatile int *stop, struct err *e);
void endpoint_free(struct endpoint *p); /* NULL is fine */

/* A request and how its reply is read.  The callbacks get q->arg. */
struct endpoint_call {
    const char *path;    /* below the base address */
    const char *session; /* value of the header x-session-id; may be NULL */
    struct http_request *q;
    void (*begin)(void *arg); /* before each try; may be NULL */
    /* After a reply with status 200, or one that broke off after it began (r->broken): 0 if it is whole, else
     * -1 with *f.  May be NULL. */
    int (*end)(void *arg, struct http_reply *r, struct failure *f);
};

/* Sends a request, again after passing failures (failure.h): after the time that the server
 * asks for, else after 1, 2, 4, ... 30 s and up to a quarter more, within the profile's tries and retry_s.  A
 * whole reply is never asked for again.  0 with status 200; -1 with one line that names the class of the
 * failure. */
int endpoint_send(struct endpoint *p, struct http_client *c, const struct endpoint_call *call,
                  struct http_reply *out, struct err *e);

/* After a refusal (status 400 or 422): leaves out the members of a request whose names the message contains,
 * of those in `optional`; or learns how many pictures there may be, when it says so (`sent`: how many there
 * were).  Returns how many things are different now; each is told once. */
int endpoint_learn(struct endpoint *p, const char *message, const char *const *optional, int sent);
bool endpoint_takes(struct endpoint *p, const char *member);
/* How a schema is sent: the profile's way, else the first one that the server has not refused; "none". */
const char *endpoint_constraint(struct endpoint *p);
/* Warns the first time. */
void endpoint_note(struct endpoint *p, const char *key, const char *text);
int endpoint_max_images(struct endpoint *p);
/* Whether it may say what else a reply could have said: until it has not, asked for it. */
#define NO_ODDS "no odds"
bool endpoint_gives_odds(struct endpoint *p);
/* The dialect where none is named: the profile's, the provider's, by the model's name if the provider has
 * many, else that of the protocol. */
const char *endpoint_dialect(const struct endpoint *p);

#endif
