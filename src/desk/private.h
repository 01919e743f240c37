/* private.h - declarations shared by the files of this directory.
 *
 *     in this process   desk.c     begin, open, close   desk_ops.c    start, run, wait, state
 *                       auth.c     cookies              message.c     packets between the processes
 *     zygote            zygote.c   forks supervisors
 *     supervisor        supervisor.c  owns one desk     desk_start.c  ... its start
 *                       server.c   display numbers, locks   child.c   starts a program
 *                       desk_bus.c session and accessibility bus
 *                       stream.c   output of programs       procs.c   process trees, killing them
 *     all               folder.c   copies, removes, sweeps
 *
 *     this process --- zygote --- supervisor 1 --- Xvfb, window manager, programs, commands
 *           |            `------ supervisor 2 --- ...
 *           `--- a socket to each supervisor
 *
 * Zygote and supervisors are forks without exec: they allocate only small lists, never call die() or exit(),
 * and report errors in messages. */
#pragma once

#include "desk/desk.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
    DESK_PATH = 256, /* maximum length of paths of directories */
    DESK_HOME = 1024,
    MSG_TEXT = 96 * 1024,
    COOKIE = 16,
    FD_SOCKET = 3, /* used in zygote and supervisors */
    FD_LOCK = 4,
    FD_OWNER = 5,
};

/* ---- message.c: packets of a SOCK_SEQPACKET pair between processes of one program ---------------------- */

enum msg_kind {
    MSG_SUPERVISOR = 1, /* to the zygote, with a socket: fork the supervisor of desk `number` */
    MSG_OPEN,   /* to a supervisor: flags, cookie, size[2], seconds; display, wm, home, dir, variables */
    MSG_START,  /* command */
    MSG_RUN,    /* seconds, number: maximum bytes of output; command, variables */
    MSG_CANCEL, /* ends the running command */
    MSG_STATE,
    MSG_CLOSE,
    /* from a supervisor: pids; answers MSG_OPEN (number: display) and MSG_START (number: index) */
    MSG_READY,
    MSG_DONE,        /* number: exit code; detail: bytes of output in the MSG_OUTPUT that follow */
    MSG_OUTPUT,      /* a part of the output */
    MSG_STATE_REPLY, /* number: enum desk_state; text: one line */
    MSG_FAILED,      /* number: enum err_kind; text: one line */
};
enum {
    OPEN_OWN = 1,
    OPEN_WM = 2,
    OPEN_HOME = 4,
    OPEN_DIR = 8,
    OPEN_NO_GLX = 16,
    OPEN_KEPT = 32,
    OPEN_NO_BUS = 64
};

struct msg {
    int kind, seq, number, detail, flags, size[2];
    pid_t pids[3]; /* supervisor, server, window manager */
    double seconds;
    unsigned char cookie[COOKIE];
    size_t len;          /* length of text: consecutive NUL-terminated strings */
    char text[MSG_TEXT]; /* only `len` bytes are sent */
};

void msg_clear(struct msg *m, enum msg_kind kind, int seq);
int msg_put(struct msg *m, const char *s); /* appends a string; returns -1 if text is full */
const char *msg_next(const struct msg *m, size_t *at);
/* pass: descriptor to send along, -1: none; returns -1 on failure */
int msg_send(int fd, const struct msg *m, int pass);
/* Receives a message without waiting.  Returns 1, 0 if the other end is closed or the message is malformed,
 * -1 if none has arrived.  *got: the received descriptor or -1; got NULL: none is accepted. */
int msg_receive(int fd, struct msg *m, int *got);

/* ---- procs.c ----------------------------------------------------------------------------------- */

struct proc {
    pid_t pid, parent, group, session;
    bool zombie;
};
/* Lists all processes, or the descendants of `root`.  Returns their number; the caller frees *list. */
int procs_all(struct proc **list);
int procs_below(pid_t root, struct proc **list);
/* Returns whether a process belongs to the buses of a desk or is a service that programs activate there. */
bool procs_is_service(pid_t pid);
int procs_children(pid_t **list); /* children of this process */
/* Sends SIGKILL to all children of this process except `spare`, and to the orphans it adopts, until none is
 * left or `ms` milliseconds have passed.  Returns true if none is left. */
bool procs_kill_children(const pid_t *spare, int n, double ms);
/* Sends SIGKILL to all processes of the machine with this environment variable, for at most `ms`
 * milliseconds. */
void procs_kill_marked(const char *entry, double ms);
/* Sends SIGKILL to the descendants of this process that are in the session or have the variable, for at most
 * `ms` milliseconds. */
void procs_kill_command(pid_t session, const char *entry, double ms);

/* ---- folder.c ---------------------------------------------------------------------------------- */

/* Creates the directory of this process's desks, with a lock file that zygote and supervisors inherit.
 * Returns the lock's descriptor, or -1 with e. */
int folder_begin(char path[DESK_PATH], struct err *e);
/* Copies the contents of directory `from` into directory `to`: links as links; devices, sockets and pipes are
 * skipped.  Returns -1 with e. */
int folder_copy(const char *from, const char *to, struct err *e);
bool folder_remove(const char *path); /* removes recursively; returns whether path is gone */
/* Kills the processes of a desk without supervisor and removes its directory. */
void folder_sweep_desk(const char *path);
void folder_sweep(const char *root); /* does the same for all desks in root and removes root */

/* ---- auth.c ------------------------------------------------------------------------------------ */

int auth_begin(const char *root, struct err *e); /* sets XAUTHORITY of this process; returns -1 with e */
void auth_end(void);
int auth_add(int number, const unsigned char cookie[COOKIE], struct err *e);
void auth_drop(int number);
/* Writes a file with only the cookie of this display number, for a server and its programs.  Returns -1 with
 * e. */
int auth_write(const char *path, int number, const unsigned char cookie[COOKIE], struct err *e);

/* ---- server.c ---------------------------------------------------------------------------------- */

/* Locks the first free display number from `first` on in the name of this process.  Returns the number, or -1
 * with errno. */
int server_claim(int first);
void server_release(int number);
/* Removes sockets and locks of the displays that `supervisor` claimed; their servers must have ended. */
void server_sweep(pid_t supervisor);

/* ---- stream.c: output of programs into files of limited size ------------------------------------------- */

struct log {
    int fd;
    size_t size;
    char path[DESK_PATH + 32];
};
struct stream {
    int fd;          /* -1: all writers have closed it */
    struct log *log; /* used without a ring; NULL: none */
    char *ring;      /* the last ring_size bytes; NULL: none */
    size_t ring_size, ring_total;
};
int log_open(struct log *l, const char *dir, const char *name);
/* returns the descriptor to write to, or -1 */
int stream_open(struct stream *s, struct log *log, size_t ring_size);
void stream_drain(struct stream *s);
size_t stream_ring(const struct stream *s, char *out, size_t from, size_t most);
void stream_drop_ring(struct stream *s);
void log_tail(const char *dir, const char *name, struct buf *out, size_t most);
void log_last_line(const char *dir, const char *name, char *out, size_t size);

/* ---- child.c ----------------------------------------------------------------------------------- */

struct child_context { /* the same for all programs of a desk */
    bool own;          /* private server and HOME */
    const char *dir, *work_dir;
    char display[32], home[DESK_HOME];
    char bus[DESK_PATH];       /* address of the session bus; "": none */
    char mark[DESK_PATH + 32]; /* "HOLORUN_DESK=..." */
    const struct msg *env;     /* the desk's variables, starting at env_at */
    size_t env_at;
    struct rlimit files; /* limit before desks_begin() raised it */
};
struct child_options {
    const char *shell;       /* shell command; NULL: argv is used */
    const char *const *argv; /* program and arguments */
    int out, keep;           /* out: stdout and stderr; keep: a descriptor to inherit, or -1 */
    int oom;                 /* oom_score_adj */
    const struct msg *env;   /* additional variables, starting at env_at; or NULL */
    size_t env_at;
    const char *mark; /* one additional variable; or NULL */
};
pid_t child_start(const struct child_context *p, const struct child_options *h);
/* Finds a program in PATH.  Returns false if it is not there. */
enum { CHILD_FILE = 4096 };
bool child_find(const char *program, char file[CHILD_FILE]);
bool child_installed(const char *program);

/* ---- supervisor.c, zygote.c ------------------------------------------------------------------------ */

struct zygote_args { /* used for supervisors, too */
    const char *root;
    struct rlimit files; /* limit before desks_begin() raised it */
    int owner;           /* pidfd; -1: not supported by the kernel */
};
_Noreturn void zygote_main(const struct zygote_args *g);
_Noreturn void supervisor_main(const struct zygote_args *g, int n);
void desk_dir(char out[DESK_PATH], const char *root, int n);

enum { PROGRAMS = 64, STREAMS = 128, OOM_PROGRAM = 500, OOM_SERVER = 300 };
enum { SUPERVISOR_GONE = 1, SUPERVISOR_MESSAGE = 2, SUPERVISOR_EXTRA = 4 };

struct process {
    pid_t pid; /* 0: not started */
    bool ended;
    int status;
    char command[120];
};

struct supervisor {
    const struct zygote_args *zygote_args;
    struct child_context context;
    struct log server_log, bus_log, wm_log, programs_log;
    struct stream streams[STREAMS];
    struct process server, bus, wake, wm, programs[PROGRAMS]; /* wake: sets up the bus */
    int n_programs, desk, number, signals;
    struct {
        struct process p;
        struct stream *stream;
        int seq, count;
        int64_t deadline;
        char mark[48];
    } run;
};

/* Starts a child whose output goes to a log, or to a ring of `ring` bytes (0: no ring).  stream may be
 * NULL.  Returns -1 with errno. */
int supervisor_start(struct supervisor *k, struct process *p, struct child_options *h, struct log *log,
                     size_t ring, struct stream **stream);
/* Polls once: the socket (without messages: only for its end), owner, children, streams and `extra`.  Returns
 * a set of SUPERVISOR_ bits. */
int supervisor_wait(struct supervisor *k, int extra, bool messages, int ms);
void supervisor_drain(struct supervisor *k);
/* Returns the exit status and the last line of that log, such as "exit code 1; it says: cannot open display",
 * in a static buffer. */
const char *supervisor_how_ended(const struct supervisor *k, const struct process *p, const char *log);
_Noreturn void supervisor_end(struct supervisor *k);

/* Waits until a process writes a line to `ready`.  Returns -1 with e, also if it ends or the time is over. */
int supervisor_wait_line(struct supervisor *k, const struct process *p, int ready, int64_t deadline,
                         const char *what, const char *log, struct err *e);
/* desk_bus.c: starts the buses of a private display; waits until the accessibility bus runs.  Failures are
 * noted in bus.log: programs then do not describe their elements. */
void supervisor_start_bus(struct supervisor *k, int64_t deadline);
void supervisor_await_bus(struct supervisor *k);
/* desk_start.c: starts the desk.  o: the MSG_OPEN, which must stay valid.  Returns -1 with e. */
int supervisor_open(struct supervisor *k, const struct msg *o, struct err *e);

/* ---- desk.c ------------------------------------------------------------------------------------ */

struct desk {
    struct desk *next;
    pthread_mutex_t lock;
    int socket, n, number, seq; /* number: the display number, -1: not a private display */
    int supervisor;             /* pidfd, or -1 */
    pid_t pids[3];
    char dir[DESK_PATH], home[DESK_HOME], auth[DESK_PATH + 16], display[64];
    bool own;
    const char *const *env; /* desk_set_env(); or NULL */
    struct msg out, in;     /* one request at a time */
};
/* Waits for the next answer to the last request.  Returns 1, 0 after ms milliseconds, -1 if the supervisor is
 * gone. */
int desk_answer(struct desk *d, double ms);
int desk_lost(const struct desk *d, struct err *e);
