/* desks.h - what is left of a desk: processes, folder, lock, socket. */
#ifndef HOLORUN_TESTS_DESKS_H
#define HOLORUN_TESTS_DESKS_H

#include "desk/desk.h"
#include "desk/private.h"

#include <sys/stat.h>

struct desk_trace { /* of a desk, to be looked for when it is gone */
    char folder[DESK_PATH];
    int number;
    struct stat lock; /* of that display, its supervisor's: a pid may be used again */
};

struct desk_trace desk_trace_of(const struct desk *d);
/* What is left of it in one line, or NULL. */
const char *desk_trace_left(const struct desk_trace *t);

/* Processes on desks whose folder is this one or below it; those whose name begins with `name` (NULL:
 * all). */
int desks_marked(const char *folder, const char *name, pid_t *out, int max);
pid_t desks_lock_owner(int number); /* of display N; -1: there is no lock */

/* Fail the test where it cannot be; desks_ready skips it where there is no Xvfb. */
#define DESKS_SCREEN "xvfb:640x480,noglx"
enum { DESKS_PATIENCE = 60 }; /* s: machines are loaded */
void desks_ready(void);
struct desk *desks_open(const struct desk_options *o);
struct desk *desks_open_bare(void);
int desks_run(struct desk *d, const char *command, struct buf *out); /* exit code; the output in `out` */
void desks_says(struct desk *d, const char *command, const char *expected);
void desks_gone(const struct desk_trace *t); /* nothing is left of it */

#endif
