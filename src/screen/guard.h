/* guard.h - a small process beside this one that releases keys when this one cannot.
 *
 * A thread cannot help when the process is killed (SIGKILL), stopped (SIGSTOP), or when the thread that has the hands
 * hangs in the middle of an action.  The guard is forked at the start, before there are threads, and ends with this
 * process.  For each open screen it has a thread with a connection of its own, so that a server that hangs or dies holds up
 * nobody else; every 250 ms it looks whether two counters of that screen in shared memory still move:
 *
 *   alive     the thread that watches a display turns it all the time
 *   progress  the owner of the hands turns it with each event and each 10 ms of waiting; counts during an action
 *
 * When this process has died, each thread releases what the held-list of its display says, and the guard ends.  When one
 * of a screen's counters has stood still for 2 s and something is down on it, that is released, and that screen is
 * stopped when its owner comes to itself: what it was doing had been taken out of its hands.
 *
 * Start and end are screen_guard() and screen_guard_end().  A slot is that of struct stop.
 */
#ifndef HOLORUN_SCREEN_GUARD_H
#define HOLORUN_SCREEN_GUARD_H

#include <stdbool.h>

/* All of them do nothing without a guard. */

/* What is written down in the file `path` is on this display; until guard_forget(). */
void guard_display(int slot, const char *display, const char *path);
void guard_forget(int slot);

void guard_alive(int slot);
void guard_progress(int slot);
bool guard_tripped(int slot); /* it has released what we held */

/* A file that is to go when this process dies, until it is taken back (add: false). */
void guard_litter(const char *path, bool add);

#endif
