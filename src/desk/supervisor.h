/* supervisor.h - what supervisor.c and desk_start.c share. */
#ifndef HOLORUN_DESK_SUPERVISOR_H
#define HOLORUN_DESK_SUPERVISOR_H

#include "desk/private.h"

enum { PROGRAMS = 64, STREAMS = 128, OOM_PROGRAM = 500, OOM_SERVER = 300 };
enum { SUPERVISOR_GONE = 1, SUPERVISOR_MESSAGE = 2, SUPERVISOR_EXTRA = 4 };

struct process {
    pid_t pid; /* 0: none */
    bool ended;
    int status;
    char command[120];
};

struct supervisor {
    const struct zygote_args *zygote_args;
    struct child_context context;
    struct log server_log, wm_log, programs_log;
    struct stream streams[STREAMS];
    struct process server, wm, programs[PROGRAMS];
    int n_programs, desk, number, signals;
    struct {
        struct process p;
        struct stream *stream;
        int seq, count;
        int64_t deadline;
        char mark[48];
    } run;
};

/* Starts a child with its output in a log (and a ring); stream may be NULL. */
int supervisor_start(struct supervisor *k, struct process *p, struct child_options *h, struct log *log,
                     size_t ring, struct stream **stream);
/* One poll() of socket (without messages: only for its end), owner, children, streams and `extra`. */
int supervisor_wait(struct supervisor *k, int extra, bool messages, int ms);
void supervisor_drain(struct supervisor *k);
/* "exit code 1; it says: cannot open display", with the last line of that log. */
const char *supervisor_how_ended(const struct supervisor *k, const struct process *p, const char *log);
_Noreturn void supervisor_end(struct supervisor *k);

/* desk_start.c; o: the MSG_OPEN, which must stay valid. */
int supervisor_open(struct supervisor *k, const struct msg *o, struct err *e);

#endif
