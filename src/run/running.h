/* running.h - the registry of this user's runs in progress, so that another process can stop them.
 *
 * Each process with a run has a file run-PID.json in the runtime directory with its process id and start
 * time, display, run directory and the first line of the task.  A process that controls several displays also
 * has a file run-PID-N.json for each of these sessions; N is screen_number().  A process id may be reused,
 * but is unique together with the start time. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUNNING_MAX = 2048, RUNNING_BYTES = 16 << 10 };

struct running {
    pid_t pid;
    uint64_t born;                /* start time of the process in clock ticks since boot */
    int session;                  /* 0: the whole process */
    char display[128], dir[4096]; /* "": none, or not known yet */
    char task[256], started[28];
};

/* ---- this process --------------------------------------------------------------------------- */

struct running_own; /* one entry of this process; any thread may own entries */

/* Registers a run.  session 0: the whole process, which its signals end.  Removes files that dead processes
 * left, once per process.  Returns NULL with e. */
struct running_own *running_enter(int session, const char *display, const char *task, const char *started,
                                  struct err *e);
/* Adds the run directory once it exists.  Returns -1 with e. */
int running_set_dir(struct running_own *r, const char *dir, struct err *e);
void running_leave(struct running_own *r); /* removes the entry and frees r; NULL is allowed */

/* ---- all processes --------------------------------------------------------------------------------- */

/* Lists live runs, the oldest process first, each process before its sessions, and removes files of dead
 * processes.  Returns the number, at most RUNNING_MAX, or -1 with e; the caller frees *out. */
int running_list(struct running **out, struct err *e);

/* Parses the text of one file; public for tests and fuzzing.  Returns -1 with e. */
int running_parse(const char *text, size_t len, struct running *out, struct err *e);

/* Returns a pidfd of exactly that process, for poll() and pidfd_send_signal(); -1: it has ended.  The caller
 * closes it. */
int running_handle(const struct running *r);

/* Returns whether exactly that session (session 0: the process) is still running. */
bool running_lives(const struct running *r);
/* Writes or removes the stop file stop-PID-N (session 0: stop-PID).  Returns -1 if that fails. */
int running_ask(const struct running *r, bool stop, struct err *e);

/* ---- ending runs of other processes (stopping.c) --------------------------------------------- */

enum stopped { STOPPED_GONE, STOPPED_ASKED, STOPPED_URGED, STOPPED_KILLED, STOPPED_NOT };
const char *stopped_name(enum stopped s); /* Returns the word for programs, such as "asked". */

struct stopping {
    struct running run;
    enum stopped how; /* result */
    double ms;        /* milliseconds until it ended */
    int fd;
};

/* Stops the runs s, all at the same time; returns the number of those that have not ended.  runs: all runs,
 * to find the displays of a killed process. */
int stopping_run(struct stopping *s, int n, const struct running *runs, int n_runs);
