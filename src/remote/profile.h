/* profile.h - the profile of a model server: its properties, read from a file (--profile), or found by
 * `holorun doctor --base-url` and saved in the user's state directory.
 *
 * A JSON object in which every key is optional:
 *
 *   {"api": "chat", "constraint": "structured_outputs", "max_images": 1, "thinking": "enable_thinking",
 *    "send_reasoning": "reasoning_content", "leave_out": ["seed"], "tries": 12,
 *    "retry_s": 180, "backoff_s": 1, "connect_s": 10, "first_byte_s": 300, "idle_s": 120,
 *    "ca_file": "/etc/company.pem",
 *    "price": {"prompt": 0.5, "cached": 0.05, "reply": 2, "currency": "USD"},
 *    "request": {"chat_template_kwargs": {"enable_thinking": false}}}
 *
 * A request that fails temporarily is repeated until `tries` attempts or `retry_s` seconds are used up.
 * ca_file: the certificate authority of the server, instead of those that the system trusts. Prices are per
 * million tokens. "dialect": the dialect to use if none is given. */
#pragma once

#include "base/err.h"

#include <jansson.h>

struct profile {
    char *api;        /* chat, responses, messages; NULL: not stated */
    char *constraint; /* response_format, structured_outputs, guided_json, json_schema, none */
    /* the option that switches thinking: thinking, enable_thinking, reasoning_effort, none */
    char *thinking;
    char *reasoning; /* the member in which earlier thoughts are sent back; NULL: they are not */
    char *dialect;
    char *ca_file; /* PEM file; NULL: the system's certificates */
    /* JSON object: members for every request, which replace holorun's own */
    json_t *extra;
    json_t *leave_out;                 /* set (JSON object) of the member names that the server rejects */
    int max_images;                    /* maximum images that the server accepts in one request; 0: not
                                        * known */
    int tries;                         /* maximum number of attempts per request, including the first */
    double retry_s;                    /* seconds from the first failure to the last attempt */
    double backoff_s;                  /* seconds before the second attempt; doubled for each further one */
    double connect_s, first_s, idle_s; /* seconds; 0: the defaults of http.h */
    double price_prompt, price_cached, price_reply;
    char currency[8]; /* "": no price list */
};

void profile_init(struct profile *p);
void profile_free(struct profile *p);

/* Parses a profile. name: of the file, for messages. */
int profile_parse(struct profile *p, const char *text, size_t len, const char *name, struct err *e);
int profile_load(struct profile *p, const char *path, struct err *e);

/* Returns the path of the saved profile for this address and model. The caller frees it. */
char *profile_kept(const char *base_url, const char *model, struct err *e);

/* Merges the members of `found` into that file. */
int profile_keep(const char *path, const char *base_url, const char *model, json_t *found, struct err *e);

/* Returns the price of one request, in the profile's currency; 0 without a price list. Arguments: numbers of
 * tokens; cached < 0: none. */
double profile_cost(const struct profile *p, double prompt, double cached, double reply);
