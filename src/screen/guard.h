/* guard.h - a watchdog process that releases keys and buttons when this process cannot.
 *
 * No thread can release them when the process is killed (SIGKILL) or stopped (SIGSTOP), or when the thread
 * that sends events hangs in the middle of an action.  The guard is forked at the start, before there are
 * threads, and ends with this process.  It is two processes: one only waits for the other and forks it
 * again when somebody kills it; when the first is killed, the run is stopped.  The second has one thread
 * with an X connection per open screen, so that a server that hangs or dies delays no other screen.  Every
 * 250 ms the thread checks two counters of its screen in shared memory:
 *
 *   alive     incremented all the time by the thread that watches the display
 *   progress  incremented with each event sent and each 10 ms of waiting; checked during an action only
 *
 * When this process dies, each thread releases what the held file of its display lists; on a server that
 * hangs, once it wakes.  When a counter has not moved for 2 s while something is held down, that is
 * released, and the screen is stopped: its action has been broken off.
 *
 * screen_guard() starts the guard, screen_guard_end() ends it.  Slots are those of struct stop.
 */
#ifndef HOLORUN_SCREEN_GUARD_H
#define HOLORUN_SCREEN_GUARD_H

#include <stdbool.h>

/* Without a guard these functions do nothing. */

/* Guards the display, whose held file is `path`, until guard_forget(). */
void guard_display(int slot, const char *display, const char *path);
void guard_forget(int slot);

void guard_alive(int slot);
void guard_progress(int slot);
bool guard_tripped(int slot); /* the guard has released what this screen held */
bool guard_killed(void);      /* it is gone for good */

/* Registers (add) or unregisters a file that the guard removes when this process dies. */
void guard_temp_file(const char *path, bool add);

#endif
