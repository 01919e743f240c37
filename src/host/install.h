/* install.h - configures a host program to start `holorun mcp`: prints the entry or writes it to a file. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Returns the names of the hosts, terminated by NULL. */
const char *const *install_hosts(void);

/* Appends the entry and the path of the host's file.  program: absolute path.  Returns -1 with ERR_USAGE if
 * the host is unknown. */
int install_show(const char *host, const char *program, struct buf *out, struct err *e);

/* Adds the entry to the host's file and keeps a copy of the old file next to it (.before-holorun).  *path:
 * the file, which the caller frees.  All other bytes stay unchanged.  Returns 0; 1 if the entry is present
 * already; -1 with e, without writing the file, if it has another entry of this name or cannot be parsed. */
int install_write(const char *host, const char *program, char **path, struct err *e);

/* Appends the text of a configuration file with the entry inserted, for tests and fuzzing.  Returns 0, 1 or
 * -1 as install_write(). */
int install_edit(const char *host, const char *program, const char *text, size_t len, struct buf *out,
                 struct err *e);
