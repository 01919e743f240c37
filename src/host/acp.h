/* acp.h - the Agent Client Protocol, version 1, over stdin and stdout: holorun as the agent of an editor.
 *
 * A session is a conversation: a prompt is a task, its steps are tool calls with pictures, what the gate
 * asks is a request for permission.  The next prompt goes on in the same conversation; after a pause, or
 * in another process (session/load), from its record.
 */
#ifndef HOLORUN_HOST_ACP_H
#define HOLORUN_HOST_ACP_H

#include "host/host.h"
#include "host/rpc.h"

struct acp;

struct acp *acp_new(struct host *h, const char *version);
void acp_free(struct acp *a);
struct rpc *acp_rpc(const struct acp *a);
void acp_woken(void *arg); /* arg is the struct acp */

/* Until the other program leaves, or a signal comes.  Takes stdin and stdout.  Returns the exit code. */
int acp_serve(struct host *h, const char *version, struct err *e);

#endif
