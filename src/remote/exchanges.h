/* exchanges.h - recording of the requests to an endpoint and its replies, as part of a run's recording.
 *
 * Each request and its reply are one JSON object:
 *
 *   {"conversation": 1, "n": 3, "path": "chat/completions", "status": 200,
 *    "kept": 4,            the first 4 messages are those of the conversation's previous request
 *    "request": {...},     the body; its list of messages has only those after the first 4
 *    "reply": "data: ...", the body of the reply, byte for byte; for an error, its message
 *    "error": "..."}       the error found in the reply; null
 *
 * Images are replaced by "sha256:HASH" of their data URL (or of the base64 text, where a protocol sends only
 * that). Headers, and so the key, are not recorded; a key that the server quotes is masked. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"

#include <jansson.h>

typedef int exchange_sink(void *arg, const char *json, size_t n); /* -1: writing failed */

struct exchange_log { /* log of one conversation; all zeros: records nothing */
    exchange_sink *put;
    void *arg;
    const struct secrets *key; /* borrowed; may be NULL */
    int n, conversation;
    json_t *before; /* messages of the last request, with hashes instead of images */
};

void exchange_log_add(struct exchange_log *l, const char *path, const json_t *body, int status,
                      const struct buf *reply, const char *error);
void exchange_log_end(struct exchange_log *l);

/* Returns a copy of a request's body with hashes instead of images. */
json_t *exchange_without_pictures(const json_t *body);
