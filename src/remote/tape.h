/* tape.h - recorded exchanges in place of a network: the replies of a run come again, in their order.
 *
 * So a run can be looked into without key and server, and tests can use conversations with servers that are
 * not there.  The address of one is "recorded:RUN".
 */
#ifndef HOLORUN_REMOTE_TAPE_H
#define HOLORUN_REMOTE_TAPE_H

#include "base/http.h"

struct tape;

#define TAPE_SCHEME "recorded:"

/* dir: of a run, or the file itself.  NULL with the reason. */
struct tape *tape_open(const char *dir, struct err *e);
void tape_free(struct tape *t);               /* NULL is fine */
const char *tape_path(const struct tape *t);  /* of the first request, "chat/completions" */
const char *tape_model(const struct tape *t); /* that it asked for */

/* The next reply, as http_send gives it.  -1: there is no further one, or none came then. */
int tape_play(struct tape *t, const struct http_request *q, struct http_reply *out, struct err *e);

#endif
