/* guard.h - a watchdog process that releases keys and buttons when this process cannot.
 *
 * No thread can release them when the process is killed (SIGKILL) or stopped (SIGSTOP), or when the thread
 * that sends events hangs during an action. The guard is forked before threads exist and ends with this
 * process. It consists of two processes. The supervisor waits for the other one and forks it again if it
 * is killed; if the supervisor is killed, the run is stopped. The second process has one thread and one X
 * connection per open screen, so that a hung or dead server does not delay other screens. Every 250 ms a
 * thread checks two counters of its screen in shared memory:
 *
 *   alive     incremented continuously by the input monitor thread
 *   progress  incremented with each event sent and every 50 ms of waiting; checked during an action only
 *
 * When this process dies, each thread releases everything that the held file of its display lists; if the
 * server hangs, it does so once the server resumes. When a counter has not changed for 2 s while something
 * is held down, the thread releases it, and the screen is stopped, because its action is incomplete.
 *
 * screen_guard() starts the guard, screen_guard_end() ends it. Slots are those of struct stop. */
#pragma once

#include <stdbool.h>

/* Without a guard, none of these functions has an effect. */

/* Guards the display, whose held file is `path`, until guard_forget(). */
void guard_display(int slot, const char *display, const char *path);
void guard_forget(int slot);

void guard_alive(int slot);
void guard_progress(int slot);
/* Returns whether the guard has released the keys and buttons of this screen. */
bool guard_tripped(int slot);
bool guard_killed(void); /* Returns whether the supervisor was killed. */

/* Registers (add) or unregisters a file that the guard removes when this process dies. */
void guard_temp_file(const char *path, bool add);
