/* stop.h - who is asked to stop: this process, or one of the screens it has open.
 *
 * Each open screen has a slot for as long as it is open.  Slots lie in static memory and are never freed, so that a
 * signal handler may walk them at any time.  What the guard knows of a screen has the same number.
 *
 *   a signal, the file "stop" or "stop-PID"        the process: the flags of all screens, and of those opened later
 *   Escape twice, the corner, "stop-PID-N", a hang   the flag of that screen
 */
#ifndef HOLORUN_SCREEN_STOP_H
#define HOLORUN_SCREEN_STOP_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STOP_SLOTS = 1024 };

struct stop {
    volatile int flag;
    atomic_bool used;
    atomic_int
        wake; /* eventfd + 1, kept when the slot is free: a signal handler may be about to write to it */
    _Atomic int64_t deadline; /* clock_ns(); 0: none */
    int slot, number; /* number: from 1 in the order of opening, never the same again in this process */
};

/* NULL when STOP_SLOTS screens are open, or there are no more file descriptors. */
struct stop *stop_open(struct err *e);
void stop_close(struct stop *s); /* NULL is fine */

int stop_wake_fd(const struct stop *s); /* readable once the flag was set from elsewhere, or by stop_wake() */
void stop_wake(const struct stop *s);   /* may be called in a signal handler */

/* Sets the flag unless it is set, and wakes who waits. */
void stop_one(struct stop *s, int why);

/* What the flag says, after a look at the process's and at the guard. */
int stop_seen(struct stop *s);

/* -1 with ERR_STOPPED when the flag is set, with ERR_TIME after the deadline */
int stop_check(struct stop *s, struct err *e);

#endif
