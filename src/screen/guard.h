/* guard.h - a small process beside this one that releases keys when this one cannot.
 *
 * A thread cannot help when the process is killed (SIGKILL), stopped (SIGSTOP), or when the thread that has the hands
 * hangs in the middle of an action.  The guard is forked at the start, before there are threads; it has its own
 * connection to each display, reads a pipe that ends with this process, and looks every 250 ms whether two counters in
 * shared memory still move:
 *
 *   alive     the thread that watches a display turns it all the time
 *   progress  the owner of the hands turns it with each event and each 10 ms of waiting; counts during an action
 *
 * When this process has died, the guard releases what its held-list says and ends.  When one of the counters has stood
 * still for 2 s and something is down, it releases that, and this process is stopped when it comes to itself: what
 * it was doing had been taken out of its hands.
 *
 * Start and end are screen_guard() and screen_guard_end().
 */
#ifndef HOLORUN_SCREEN_GUARD_H
#define HOLORUN_SCREEN_GUARD_H

#include <stdbool.h>

/* What is written down in the file `path` is on this display. */
void guard_display(const char *display, const char *path);

/* All of them do nothing without a guard. */
void guard_litter(const char *path); /* one file that is to go when this process dies */
void guard_alive(void);
void guard_progress(void);
bool guard_tripped(void); /* it has released what we held */

#endif
