/* running.h - which runs of this user are under way, so that they can be stopped from elsewhere.
 *
 * Each process that runs something has a file run-PID.json in the runtime folder: process, when that process began,
 * display, run directory, first line of the task.  One that drives many screens at once has a file run-PID-N.json beside
 * it for each of these sessions, N being the number of its screen (screen_number()).  A number of a process is used again
 * some day; number and beginning together are not.
 */
#ifndef HOLORUN_RUN_RUNNING_H
#define HOLORUN_RUN_RUNNING_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUNNING_MAX = 2048, RUNNING_BYTES = 16 << 10 };

struct running {
    pid_t pid;
    uint64_t born;                /* when the process began, in clock ticks since boot */
    int session;                  /* 0: the process as a whole */
    char display[128], dir[4096]; /* "": none (yet) */
    char task[256], started[28];
};

/* ---- of this process --------------------------------------------------------------------------- */

struct running_own; /* one entry; any thread may have some */

/* session 0: the process as a whole, whose signals end all of it.  NULL with the reason. */
struct running_own *running_enter(int session, const char *display, const char *task, const char *started,
                                  struct err *e);
/* Now that there is a run directory. */
int running_set_dir(struct running_own *r, const char *dir, struct err *e);
void running_leave(struct running_own *r); /* NULL is fine */

/* ---- of others --------------------------------------------------------------------------------- */

/* Those that live, oldest process first, and itself before its sessions; files of others go.  The caller frees *out.  The number, or -1. */
int running_list(struct running **out, struct err *e);

/* One file's text; for tests and fuzzing. */
int running_parse(const char *text, size_t len, struct running *out, struct err *e);

/* A handle of that very process, for poll() and pidfd_send_signal(); -1 when it is gone. */
int running_handle(const struct running *r);

/* Whether that very session is still under way (of session 0: the process). */
bool running_lives(const struct running *r);
/* Writes its file stop-PID-N; take back: removes that.  Of session 0: stop-PID. */
int running_ask(const struct running *r, struct err *e);
void running_take_back(const struct running *r);

#endif
