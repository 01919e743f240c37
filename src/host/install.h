/* install.h - tells a host program how to start `holorun mcp`: the lines for its configuration, and
 * writing them.
 */
#ifndef HOLORUN_HOST_INSTALL_H
#define HOLORUN_HOST_INSTALL_H

#include "base/buf.h"
#include "base/err.h"

/* The names of the hosts, ended by NULL. */
const char *const *install_hosts(void);

/* Appends what to add, and where.  program: its absolute path.  -1 with ERR_USAGE: there is no such host. */
int install_show(const char *host, const char *program, struct buf *out, struct err *e);

/* Adds it to the host's file, beside which a copy of the old one is kept; *path: the file, which the caller
 * frees.  Everything else in it stays byte for byte as it was.  1: it is there already.  -1: the file holds
 * something else under this name, or cannot be read as what it should be; then nothing is written. */
int install_write(const char *host, const char *program, char **path, struct err *e);

/* The text of a configuration file with the entry in it, for tests and fuzzing: 0, 1 or -1 as above. */
int install_edit(const char *host, const char *program, const char *text, size_t len, struct buf *out,
                 struct err *e);

#endif
