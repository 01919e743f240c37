/* recorded.h - replays the recorded responses of a run, in their order, instead of using the network.
 *
 * So a run can be examined without key and server, and tests can use conversations with servers that are not
 * available. The address of a recording is "recorded:RUN". */
#ifndef HOLORUN_REMOTE_RECORDED_H
#define HOLORUN_REMOTE_RECORDED_H

#include "remote/http.h"

struct recorded;

#define RECORDED_SCHEME "recorded:"

/* Opens a recording. dir: directory of the run, or the recording itself. NULL with the reason in e. */
struct recorded *recorded_open(const char *dir, struct err *e);
void recorded_free(struct recorded *t); /* Closes a recording; t may be NULL. */
/* Returns the path of the first request, such as "chat/completions". */
const char *recorded_path(const struct recorded *t);
const char *recorded_model(const struct recorded *t); /* Returns the model named in the first request. */

/* Returns the next reply, with the results of http_send. -1: no replies are left, or the recorded request got
 * none. */
int recorded_next(struct recorded *t, const struct http_request *q, struct http_reply *out, struct err *e);

#endif
