/* host_command.h - shared by the commands that another program starts and controls through stdin and
 * stdout. */
#pragma once

#include "cmd/commands.h"
#include "host/host.h"

typedef int host_serve(struct host *h, const char *version, struct err *e);

/* Parses the options, which are those of a run, and serves until the other program disconnects.  Returns the
 * exit code. */
int host_command(const struct command *c, host_serve *serve, int argc, char **argv);
