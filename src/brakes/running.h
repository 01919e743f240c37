/* running.h - which runs of this user are under way, so that they can be stopped from elsewhere.
 *
 * Each run has a file run-PID.json in the runtime folder: process, when that process began, display, run directory,
 * first line of the task.  A number of a process is used again some day; number and beginning together are not.
 */
#ifndef HOLORUN_BRAKES_RUNNING_H
#define HOLORUN_BRAKES_RUNNING_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUNNING_MAX = 512, RUNNING_BYTES = 16 << 10 };

struct running {
    pid_t pid;
    uint64_t born;                /* when the process began, in clock ticks since boot */
    char display[128], dir[4096]; /* dir: "" until there is one */
    char task[256], started[28];
};

/* This process runs; again when more is known. */
int running_enter(const char *display, const char *dir, const char *task, const char *started, struct err *e);
void running_leave(void);

/* Those that live, oldest first; files of others go.  The caller frees *out.  The number, or -1. */
int running_list(struct running **out, struct err *e);

/* One file; for tests and fuzzing. */
int running_parse(const char *text, size_t len, struct running *out, struct err *e);

/* A handle of that very process, for poll() and pidfd_send_signal(); -1 when it is gone. */
int running_handle(const struct running *r);

#endif
