/* effort.h - CPU time limit and cancellation for the work of a request.
 *
 *     struct effort w = {.cpu_s = 30, .cancel = &gone};
 *     effort_begin(&w);                         before each part of the work, in the thread that does it
 *     while (...)
 *         if (effort_over(&w, 1))               counts steps of about 10 ns each
 *             return effort_error(&w, "reading the schema", e);
 *
 * All functions accept NULL, which means no limit. One thread at a time. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct effort {
    double cpu_s;               /* limit of the sum over all parts; 0: none */
    const volatile int *cancel; /* non-zero ends the work; may be NULL */
    int64_t used_ns, since_ns;  /* CPU time used so far; this thread's CPU time at the last check, 0: none
                                 * yet */
    unsigned steps;             /* since the last check */
    bool spent, cancelled;      /* reason why effort_over() returns true */
};

/* Begins a part of the work in this thread. */
void effort_begin(struct effort *w);
/* Counts steps. Returns whether the work must end; checks the clock and the flag every 4,096 steps. */
bool effort_over(struct effort *w, unsigned steps);
/* Sets the error of work that was ended: ERR_STOPPED if cancelled, ERR_USAGE if the time is used up.
 * Returns -1. */
int effort_error(const struct effort *w, const char *what, struct err *e);
