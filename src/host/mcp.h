/* mcp.h - the Model Context Protocol over stdin and stdout, in both forms: `initialize` and a session (up to
 * 2025-11-25), or self-contained requests (2026-07-28, with the extension for tasks). */
#pragma once

#include "host/host.h"
#include "host/rpc.h"

struct mcp;

struct mcp *mcp_new(struct host *h, const char *version);
void mcp_free(struct mcp *m);
struct rpc *mcp_rpc(const struct mcp *m);

/* Serves until the client closes the stream or a signal arrives.  Takes over stdin and stdout.  Returns the
 * exit code. */
int mcp_serve(struct host *h, const char *version, struct err *e);
