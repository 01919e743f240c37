/* private.h - what the files of this folder share.
 *
 *   in this process   desk.c        begin, open, close        desk_ops.c    start, run, wait, state
 *                     auth.c        cookies                   message.c     packets between the processes
 *   zygote            zygote.c      forks supervisors
 *   supervisor        supervisor.c  owns one desk             desk_start.c  ... its start
 *                     server.c      display numbers, locks    child.c       starts a program
 *                     stream.c      output of programs        procs.c       process trees, killing them
 *   all               folder.c      copies, removes, sweeps
 *
 *     this process --- zygote --- supervisor 1 --- Xvfb, window manager, programs, commands
 *           |             `------ supervisor 2 --- ...
 *           `--- a socket to each supervisor
 *
 * Zygote and supervisors are forks without exec: they allocate next to nothing, never call die() or exit(),
 * and report errors in messages.
 */
#ifndef HOLORUN_DESK_PRIVATE_H
#define HOLORUN_DESK_PRIVATE_H

#include "desk/desk.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
    DESK_PATH = 256, /* of folders */
    DESK_HOME = 1024,
    MSG_TEXT = 96 * 1024,
    COOKIE = 16,
    FD_SOCKET = 3, /* in zygote and supervisors */
    FD_LOCK = 4,
    FD_OWNER = 5,
};

/* ---- message.c: packets of a SOCK_SEQPACKET pair between processes of one program ---------------- */

enum msg_kind {
    MSG_SUPERVISOR = 1, /* to the zygote, with a socket: fork the supervisor of desk `number` */
    MSG_OPEN,   /* to a supervisor: flags, cookie, size[2], seconds; display, wm, home, dir, variables */
    MSG_START,  /* command */
    MSG_RUN,    /* seconds, number: bytes of output; command, variables */
    MSG_CANCEL, /* the running command */
    MSG_STATE,
    MSG_CLOSE,
    MSG_READY,       /* from a supervisor: pids; of MSG_OPEN: number: display; of MSG_START: number: index */
    MSG_DONE,        /* number: exit code; detail: bytes of output in the MSG_OUTPUT that follow */
    MSG_OUTPUT,      /* a chunk of the output */
    MSG_STATE_REPLY, /* number: enum desk_state; text: a line */
    MSG_FAILED,      /* number: enum err_kind; text: a line */
};
enum { OPEN_OWN = 1, OPEN_WM = 2, OPEN_HOME = 4, OPEN_DIR = 8, OPEN_NO_GLX = 16, OPEN_KEPT = 32 };

struct msg {
    int kind, seq, number, detail, flags, size[2];
    pid_t pids[3]; /* supervisor, server, window manager */
    double seconds;
    unsigned char cookie[COOKIE];
    size_t len;          /* of text: consecutive NUL-terminated strings */
    char text[MSG_TEXT]; /* only `len` bytes are sent */
};

void msg_clear(struct msg *m, enum msg_kind kind, int seq);
int msg_put(struct msg *m, const char *s); /* -1: no room */
const char *msg_next(const struct msg *m, size_t *at);
int msg_send(int fd, const struct msg *m, int pass); /* pass: a descriptor to send along, -1: none */
/* 1: received; 0: the other end is closed; -1: none yet.  *got: the descriptor or -1; NULL: ignored. */
int msg_receive(int fd, struct msg *m, int *got);

/* ---- procs.c ----------------------------------------------------------------------------------- */

struct proc {
    pid_t pid, parent, group, session;
    bool zombie;
};
/* All processes, or the descendants of `root`; returns the number, the caller frees *list. */
int procs_all(struct proc **list);
int procs_below(pid_t root, struct proc **list);
int procs_children(pid_t **list); /* of this process */
/* SIGKILL to all children of this process except `spare`, and to the orphans it adopts, until none is left
 * or `ms` have passed.  True: none is left. */
bool procs_kill_children(const pid_t *spare, int n, double ms);
/* SIGKILL to all processes of the machine with this variable. */
void procs_kill_marked(const char *entry, double ms);
/* SIGKILL to the descendants of this process that are in the session or have the variable. */
void procs_kill_command(pid_t session, const char *entry, double ms);

/* ---- folder.c ---------------------------------------------------------------------------------- */

/* Creates the folder of this process's desks, with a lock file that zygote and supervisors inherit: its fd,
 * or -1. */
int folder_begin(char path[DESK_PATH], struct err *e);
/* Copies the contents of folder `from` into folder `to`: links as links, no devices, sockets and pipes. */
int folder_copy(const char *from, const char *to, struct err *e);
bool folder_remove(const char *path); /* recursively; true: it is gone */
void folder_sweep_desk(
    const char *path);               /* kills the processes of a desk without supervisor and removes it */
void folder_sweep(const char *root); /* the same for all desks in it; removes it */

/* ---- auth.c ------------------------------------------------------------------------------------ */

int auth_begin(const char *root, struct err *e); /* sets XAUTHORITY of this process */
void auth_end(void);
int auth_add(int number, const unsigned char cookie[COOKIE], struct err *e);
void auth_drop(int number);
/* Writes a file with this one cookie of a display number, for a server and its programs. */
int auth_write(const char *path, int number, const unsigned char cookie[COOKIE], struct err *e);

/* ---- server.c ---------------------------------------------------------------------------------- */

/* The first free display number from `first` on, locked in the name of this process; -1: none. */
int server_claim(int first);
void server_release(int number);
/* Removes sockets and locks of the displays that `supervisor` claimed; their servers have ended. */
void server_sweep(pid_t supervisor);

/* ---- stream.c: output of programs into files of limited size ----------------------------------- */

struct log {
    int fd;
    size_t size;
    char path[DESK_PATH + 32];
};
struct stream {
    int fd;          /* -1: all writers have closed it */
    struct log *log; /* NULL: the ring only */
    char *ring;      /* NULL: none */
    size_t ring_size, ring_total;
};
int log_open(struct log *l, const char *dir, const char *name);
int stream_open(struct stream *s, struct log *log, size_t ring_size); /* the fd to write to, or -1 */
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
    char mark[DESK_PATH + 32]; /* "HOLORUN_DESK=..." */
    const struct msg *env;     /* the desk's variables, from env_at on */
    size_t env_at;
    struct rlimit files; /* limit before desks_begin() raised it */
};
struct child_options {
    const char *shell;       /* command; NULL: argv */
    const char *const *argv; /* program */
    int out, keep;           /* stdout and stderr; a descriptor to inherit, or -1 */
    int oom;                 /* oom_score_adj */
    const struct msg *env;   /* more variables, from env_at on; or NULL */
    size_t env_at;
    const char *mark; /* one more variable; or NULL */
};
pid_t child_start(const struct child_context *p, const struct child_options *h);
bool child_installed(const char *program);

/* ---- supervisor.c, zygote.c ------------------------------------------------------------------------ */

struct zygote_args { /* also for supervisors */
    const char *root;
    struct rlimit files; /* limit before desks_begin() raised it */
    int owner;           /* pidfd, -1: not supported by the kernel */
};
_Noreturn void zygote_main(const struct zygote_args *g);
_Noreturn void supervisor_main(const struct zygote_args *g, int n);
void desk_dir(char out[DESK_PATH], const char *root, int n);

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

/* ---- desk.c ------------------------------------------------------------------------------------ */

struct desk {
    struct desk *next;
    pthread_mutex_t lock;
    int socket, n, number, seq; /* number: of the display, -1: not started by us */
    int supervisor;             /* pidfd, or -1 */
    pid_t pids[3];
    char dir[DESK_PATH], home[DESK_HOME], auth[DESK_PATH + 16], display[64];
    bool own;
    struct msg out, in; /* one request at a time */
};
/* Waits for the next answer to the last request: 1; 0: not within ms; -1: the supervisor is gone. */
int desk_answer(struct desk *d, double ms);
int desk_lost(const struct desk *d, struct err *e);

#endif
