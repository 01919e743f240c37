/* profile.h - what is known of a server: stated in a file (--profile), or found by `doctor --base-url` and
 * kept in the user's state folder.
 *
 * A JSON object; every key may be missing:
 *
 *   {"api": "chat", "constraint": "structured_outputs", "max_images": 1, "thinking": "enable_thinking",
 *    "send_reasoning": "reasoning_content", "leave_out": ["seed"], "tries": 12,
 *    "retry_s": 180, "backoff_s": 1, "connect_s": 10, "first_byte_s": 300, "idle_s": 120,
 *    "ca_file": "/etc/company.pem",
 *    "price": {"prompt": 0.5, "cached": 0.05, "reply": 2, "currency": "USD"},
 *    "request": {"chat_template_kwargs": {"enable_thinking": false}}}
 *
 * A request that fails for a passing reason is sent again until `tries` or `retry_s` seconds are used up.
 * ca_file: who signs the server's certificate, in place of those that this machine trusts.  Prices are of a
 * million tokens.  "dialect" names the one to use where none is given.
 */
#ifndef HOLORUN_REMOTE_PROFILE_H
#define HOLORUN_REMOTE_PROFILE_H

#include "base/err.h"

#include <jansson.h>

struct profile {
    char *api;        /* chat, responses, messages; NULL: not stated */
    char *constraint; /* response_format, structured_outputs, guided_json, json_schema, none */
    char *thinking;   /* how thinking is switched: thinking, enable_thinking, reasoning_effort, none */
    char *reasoning;  /* the member in which earlier thoughts are sent back; NULL: never */
    char *dialect;
    char *ca_file;                     /* PEM; NULL: those of this machine */
    json_t *extra;                     /* object: members of every request, over those that we would send */
    json_t *leave_out;                 /* object: names of members that the server does not take */
    int max_images;                    /* that the server takes in one request; 0: not known */
    int tries;                         /* of one request, the first one included */
    double retry_s;                    /* from its first failure to the last try */
    double backoff_s;                  /* wait before the second try; doubled for each further one */
    double connect_s, first_s, idle_s; /* 0: the defaults of http.h */
    double price_prompt, price_cached, price_reply;
    char currency[8]; /* "": no price list */
};

void profile_init(struct profile *p);
void profile_free(struct profile *p);

/* name: of the file, for messages. */
int profile_parse(struct profile *p, const char *text, size_t len, const char *name, struct err *e);
int profile_load(struct profile *p, const char *path, struct err *e);

/* Where what was found of this address and model is kept; the caller frees it. */
char *profile_kept(const char *base_url, const char *model, struct err *e);

/* Puts the members of `found` into that file. */
int profile_keep(const char *path, const char *base_url, const char *model, json_t *found, struct err *e);

/* The price of one exchange in the currency, 0 without a price list.  cached < 0: none. */
double profile_cost(const struct profile *p, double prompt, double cached, double reply);

#endif
