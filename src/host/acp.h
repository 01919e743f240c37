/* acp.h - the Agent Client Protocol, version 1, over stdin and stdout: holorun as the agent of an editor.
 *
 * A session is a conversation: a prompt is a task, its steps are tool calls with screenshots, and a question
 * of the gate is a request for permission.  The next prompt continues the conversation.  If the run has ended
 * meanwhile, or in another process (session/load), it continues from the record. */
#pragma once

#include "host/host.h"
#include "host/rpc.h"

struct acp;

struct acp *acp_new(struct host *h, const char *version);
void acp_free(struct acp *a);
struct rpc *acp_rpc(const struct acp *a);

/* Serves until the client closes the stream or a signal arrives.  Takes over stdin and stdout.  Returns the
 * exit code. */
int acp_serve(struct host *h, const char *version, struct err *e);
