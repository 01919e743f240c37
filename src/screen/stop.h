/* stop.h - the stop flag of each open screen.
 *
 * Each open screen has a slot. Slots are in static memory and never freed, so that a signal handler can
 * iterate over them at any time. The guard identifies a screen by the slot number.
 *
 *   a signal, the file "stop" or "stop-PID"          stop all screens of the process, now and later
 *   Escape twice, the corner, "stop-PID-N", a hang   stop that screen */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STOP_SLOTS = 1024 };

struct stop {
    volatile int flag;
    atomic_bool used;
    /* eventfds + 1; they stay open while the slot is free, because a signal handler may be about to write to
     * them. wake is read by the input monitor, rouse by the thread that waits (stop_sleep()). */
    atomic_int wake, rouse;
    _Atomic int64_t deadline; /* clock_ns(); 0: none */
    int slot, number;         /* number: 1 for the first screen opened, never reused */
};

/* Allocates a slot. Returns NULL with e if STOP_SLOTS screens are open or no file descriptor is available. */
struct stop *stop_open(struct err *e);
void stop_close(struct stop *s); /* NULL is allowed. */

/* Returns a descriptor that is readable after stop_set() and stop_wake(). */
int stop_wake_fd(const struct stop *s);
void stop_wake(const struct stop *s); /* Wakes the input monitor; async-signal-safe. */

/* Sleeps for ms, or until `fd` is readable if events is true. A stop, the deadline and the end of the
 * connection `fd` (-1: none) end the sleep too; the caller checks why it has ended. */
void stop_sleep(const struct stop *s, double ms, int fd, bool events);

/* Sets the flag unless it is set, and wakes the input monitor and the waiting thread. */
void stop_set(struct stop *s, int why);

/* Returns the flag, after merging the process's flag and the state of the guard; 0: continue. */
int stop_reason(struct stop *s);

/* Returns -1 with ERR_STOPPED if the flag is set, with ERR_TIME after the deadline, otherwise 0. */
int stop_check(struct stop *s, struct err *e);
