/* desks.h - what is left of a desk: processes, folder, lock, socket. */
#ifndef HOLORUN_TESTS_DESKS_H
#define HOLORUN_TESTS_DESKS_H

#include "desk/desk.h"
#include "desk/private.h"

struct desk_trace { /* of a desk, to be looked for when it is gone */
    char folder[DESK_PATH];
    int number;
    pid_t keeper;
};

struct desk_trace desk_trace_of(const struct desk *d);
/* What is left of it in one line, or NULL. */
const char *desk_trace_left(const struct desk_trace *t);

/* Processes on desks whose folder is this one or below it; those whose name begins with `name` (NULL: all). */
int desks_marked(const char *folder, const char *name, pid_t *out, int max);
pid_t desks_lock_owner(int number); /* of display N; -1: there is no lock */

#endif
