/* running.h - the registry of this user's runs in progress, so that another process can stop them.
 *
 * Each process that runs something has a file run-PID.json in the runtime folder with its process id and
 * start time, display, run directory and the first line of the task.  A process that drives many
 * displays also has a file run-PID-N.json for each of these sessions, N being screen_number().  A
 * process id may be reused; together with the start time it is unique.
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
    uint64_t born;                /* start time of the process in clock ticks since boot */
    int session;                  /* 0: the process as a whole */
    char display[128], dir[4096]; /* "": none (yet) */
    char task[256], started[28];
};

/* ---- this process --------------------------------------------------------------------------- */

struct running_own; /* one entry of this process; any thread may own some */

/* session 0: the process as a whole; its signals end all of it.  NULL with the reason. */
struct running_own *running_enter(int session, const char *display, const char *task, const char *started,
                                  struct err *e);
/* Adds the run directory, once it exists. */
int running_set_dir(struct running_own *r, const char *dir, struct err *e);
void running_leave(struct running_own *r); /* NULL is fine */

/* ---- all processes --------------------------------------------------------------------------------- */

/* Lists live runs, the oldest process first, each process before its sessions; removes files of dead
 * ones.  Returns the number or -1; the caller frees *out. */
int running_list(struct running **out, struct err *e);

/* Parses the text of one file; public for tests and fuzzing. */
int running_parse(const char *text, size_t len, struct running *out, struct err *e);

/* A pidfd of exactly that process, for poll() and pidfd_send_signal(); -1 when it has ended. */
int running_handle(const struct running *r);

/* Whether exactly that session (session 0: the process) is still running. */
bool running_lives(const struct running *r);
/* Writes or removes its stop file stop-PID-N (session 0: stop-PID). */
int running_ask(const struct running *r, bool stop, struct err *e);

/* ---- ending runs of other processes (stopping.c) --------------------------------------------- */

enum stopped { STOPPED_GONE, STOPPED_ASKED, STOPPED_URGED, STOPPED_KILLED, STOPPED_NOT };
const char *stopped_name(enum stopped s); /* "asked", for programs */

struct stopping {
    struct running run;
    enum stopped how; /* result */
    double ms;        /* until it had ended */
    int fd;
};

/* Stops all of them at the same time; returns how many have not ended.  runs: all runs, to find the
 * displays of a killed process. */
int stopping_run(struct stopping *s, int n, const struct running *runs, int n_runs);

#endif
