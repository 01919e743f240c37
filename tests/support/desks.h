/* desks.h - finds leftovers of a desktop: processes, folder, lock, socket. */
#pragma once

#include "desk/desk.h"
#include "desk/private.h"

#include <sys/stat.h>

struct desk_trace { /* identifies a desktop after its end */
    char folder[DESK_PATH];
    int number;
    struct stat lock; /* lock file of the display, written by the supervisor: a pid may be reused */
};

struct desk_trace desk_trace_of(const struct desk *d);
/* Describes the first leftover in one line, or returns NULL. */
const char *desk_trace_left(const struct desk_trace *t);

/* Finds processes on desktops whose folder is `folder` or below it, with names that begin with `name` (NULL:
 * all). Returns their number. */
int desks_marked(const char *folder, const char *name, pid_t *out, int max);
pid_t desks_lock_owner(int number); /* of display N; -1: no lock */

/* All fail the test on an error; desks_ready() skips it without Xvfb. */
#define DESKS_SCREEN "xvfb:640x480,noglx"
enum { DESKS_PATIENCE = 60 }; /* seconds; loaded machines are slow */
void desks_ready(void);
struct desk *desks_open(const struct desk_options *o);
struct desk *desks_open_bare(void);
/* returns the exit code; the output goes to `out` */
int desks_run(struct desk *d, const char *command, struct buf *out);
void desks_says(struct desk *d, const char *command, const char *expected);
void desks_gone(const struct desk_trace *t); /* waits until nothing is left of it, or fails the test */
