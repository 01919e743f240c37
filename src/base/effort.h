/* effort.h - limits the CPU time of work that a request causes, and ends the work when nobody wants it.
 *
 *     struct effort w = {.cpu_s = 30, .cancel = &gone};
 *     effort_begin(&w);                         before each piece of work, in the thread that does it
 *     while (...)
 *         if (effort_over(&w, 1))               after so many steps of about 10 ns each
 *             return effort_error(&w, "reading the schema", e);
 *
 * All functions accept NULL, which has no limit.  One thread at a time.
 */
#ifndef HOLORUN_BASE_EFFORT_H
#define HOLORUN_BASE_EFFORT_H

#include "base/err.h"

#include <stdint.h>

struct effort {
    double cpu_s;               /* limit of the sum of all pieces; 0: none */
    const volatile int *cancel; /* non-zero ends the work; may be NULL */
    int64_t used_ns, since_ns;  /* CPU time so far, and of this thread at the last look; 0: none yet */
    unsigned steps;             /* since the last look */
    bool spent, cancelled;      /* why effort_over() returns true */
};

/* Begins a piece of work in this thread. */
void effort_begin(struct effort *w);
/* Counts steps.  Returns whether the work must end; looks at the clock and the flag every 4,096 steps. */
bool effort_over(struct effort *w, unsigned steps);
/* Sets the error of work that was ended: ERR_STOPPED when cancelled, ERR_USAGE when the time is used up.
 * Returns -1. */
int effort_error(const struct effort *w, const char *what, struct err *e);

#endif
