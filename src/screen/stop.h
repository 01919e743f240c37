/* stop.h - the stop flag of each open screen.
 *
 * Each open screen has a slot.  Slots lie in static memory and are never freed, so that a signal handler
 * may walk them at any time.  The guard knows a screen by the same number.
 *
 *   a signal, the file "stop" or "stop-PID"          stop all screens of the process, also those opened later
 *   Escape twice, the corner, "stop-PID-N", a hang   stop that screen
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
    /* eventfd + 1, kept when the slot is free: a signal handler may be about to write to it */
    atomic_int wake;
    _Atomic int64_t deadline; /* clock_ns(); 0: none */
    int slot, number;         /* number: from 1 in the order of opening, never reused */
};

/* NULL when STOP_SLOTS screens are open, or there are no more file descriptors. */
struct stop *stop_open(struct err *e);
void stop_close(struct stop *s); /* NULL is fine */

int stop_wake_fd(const struct stop *s); /* readable after stop_set() and stop_wake() */
void stop_wake(const struct stop *s);   /* may be called in a signal handler */

/* Sets the flag unless it is set, and wakes the waiting thread. */
void stop_set(struct stop *s, int why);

/* The flag's value after taking over the process's flag and the guard's verdict; 0: go on. */
int stop_reason(struct stop *s);

/* -1 with ERR_STOPPED when the flag is set, with ERR_TIME after the deadline. */
int stop_check(struct stop *s, struct err *e);

#endif
