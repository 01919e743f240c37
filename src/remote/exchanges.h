/* exchanges.h - what went to an endpoint and came back, for the record of a run; and a record in place of a
 * network.
 *
 * One JSON object for each exchange:
 *
 *   {"conversation": 1, "n": 3, "path": "chat/completions", "status": 200,
 *    "kept": 4,            the first 4 messages are those of the request before, of this conversation
 *    "request": {...},     the body, its list of messages only from there on
 *    "reply": "data: ...", what came back, byte for byte, or of an error what it said
 *    "error": "..."}       what was wrong with it; null
 *
 * Pictures are replaced by "sha256:HASH" of their data URL (in base64, where a protocol has that).  Headers,
 * and so the key, are no part of it; a key that the server quotes is masked.
 */
#ifndef HOLORUN_REMOTE_EXCHANGES_H
#define HOLORUN_REMOTE_EXCHANGES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"

#include <jansson.h>

typedef int exchange_sink(void *arg, const char *json, size_t n); /* -1: it could not be written */

struct exchange_log { /* of one conversation; all zeros is one that records nothing */
    exchange_sink *put;
    void *arg;
    const struct secrets *key; /* borrowed; may be NULL */
    int n, conversation;
    json_t *before; /* messages of the last request, with hashes in place of pictures */
};

void exchange_log_add(struct exchange_log *l, const char *path, const json_t *body, int status,
                      const struct buf *reply, const char *error);
void exchange_log_end(struct exchange_log *l);

/* A copy of a request's body with hashes in place of pictures. */
json_t *exchange_without_pictures(const json_t *body);

#endif
