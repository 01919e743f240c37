/* replayed.h - replays the recorded responses of a run, in their order, instead of using the network.
 *
 * So a run can be examined without key and server, and tests can use conversations with servers that are not
 * available. The address of a recording is "recorded:RUN". */
#pragma once

#include "base/http.h"

struct replayed;

#define REPLAYED_SCHEME "recorded:"

/* Opens a recording. dir: directory of the run, or the recording itself. NULL with the reason in e. */
struct replayed *replayed_open(const char *dir, struct err *e);
void replayed_free(struct replayed *t); /* Closes a recording; t may be NULL. */
/* Returns the path of the first request, such as "chat/completions". */
const char *replayed_path(const struct replayed *t);
const char *replayed_model(const struct replayed *t); /* Returns the model named in the first request. */

/* Returns the next reply, with the results of http_send. -1: no replies are left, or the recorded request got
 * none. */
int replayed_next(struct replayed *t, const struct http_request *q, struct http_reply *out, struct err *e);
