/* private.h - what the files of this folder share.
 *
 *   desk.c     this process: begin, open, close         zygote.c   the process that forks keepers
 *   desk_ops.c      this process: start, run, wait, ask      supervisor.c   the process that has one desk
 *   message.c  what they tell each other                desk_start.c  ... its beginning (supervisor.h)
 *   server.c   display numbers, locks
 *   auth.c     cookies                                  child.c    how a program is started on a desk
 *   folder.c   copies, removes, sweeps after the dead   stream.c   what programs write
 *   procs.c    who is there, and the end of all
 *
 *     this process --- zygote --- keeper 1 --- Xvfb, window manager, programs, commands
 *           |             `------ keeper 2 --- ...
 *           `--- a socket to each keeper
 *
 * Zygote and keepers are forks without exec: they allocate next to nothing, never call die() or exit(), and tell of
 * errors in messages.
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
    MSG_TEXT = 96 * 1024,
    COOKIE = 16,
    FD_SOCKET = 3, /* in zygote and keepers */
    FD_LOCK = 4,
    FD_OWNER = 5,
};

/* ---- message.c: packets of a SOCK_SEQPACKET pair between processes of one program ---------------- */

enum msg_kind {
    MSG_SUPERVISOR = 1, /* to the zygote, with a socket: a keeper for desk `number` */
    MSG_OPEN,           /* to a keeper: flags, cookie, size[2], seconds; display, wm, home, dir, variables */
    MSG_START,          /* command */
    MSG_RUN,            /* seconds, number: bytes of output; command, variables */
    MSG_CANCEL,         /* the command that runs */
    MSG_STATE,
    MSG_CLOSE,
    MSG_READY,  /* from a keeper: pids; of MSG_OPEN: number: display; of MSG_START: number: index */
    MSG_DONE,   /* number: exit code; detail: bytes of output in MSG_OUTPUT that follow */
    MSG_OUTPUT, /* a piece of it */
    MSG_TOLD,   /* number: enum desk_state; text: a line */
    MSG_FAILED, /* number: enum err_kind; text: a line */
};
enum { OPEN_OWN = 1, OPEN_WM = 2, OPEN_HOME = 4, OPEN_DIR = 8, OPEN_NO_GLX = 16 };

struct msg {
    int kind, seq, number, detail, flags, size[2];
    pid_t pids[3]; /* keeper, server, window manager */
    double seconds;
    unsigned char cookie[COOKIE];
    size_t len;          /* of text: strings that end in NUL, one after the other */
    char text[MSG_TEXT]; /* only `len` bytes of it travel */
};

void msg_clear(struct msg *m, enum msg_kind kind, int seq);
int msg_put(struct msg *m, const char *s); /* -1: no room */
const char *msg_next(const struct msg *m, size_t *at);
int msg_send(int fd, const struct msg *m, int pass); /* pass: a descriptor to hand over, -1: none */
/* 1: there is one; 0: the other end is gone; -1: none yet.  *got: a descriptor or -1; NULL: none is wanted. */
int msg_receive(int fd, struct msg *m, int *got);

/* ---- procs.c ----------------------------------------------------------------------------------- */

struct proc {
    pid_t pid, parent, group, session;
    bool zombie;
};
/* All processes of the machine, or those that come from `root`; the number, *list is the caller's. */
int procs_all(struct proc **list);
int procs_below(pid_t root, struct proc **list);
int procs_children(pid_t **list); /* of this process */
/* Whether an environment has exactly this "NAME=value". */
bool procs_has(pid_t pid, const char *entry);
/* KILL to all children of this process but those spared, and to what their death makes children of it, until none is
 * left or `ms` are over.  True: none is left. */
bool procs_end_children(const pid_t *spare, int n, double ms);
/* KILL to all processes with this entry, wherever they are. */
void procs_end_marked(const char *entry, double ms);
/* KILL to those below this process that are of the session or have the entry. */
void procs_end_command(pid_t session, const char *entry, double ms);

/* ---- folder.c ---------------------------------------------------------------------------------- */

/* A fresh folder for the desks of this process, with a lock that zygote and keepers share: the open file, or -1. */
int folder_begin(char path[DESK_PATH], struct err *e);
/* Contents of folder `from` into folder `to`: links as links, no devices, sockets and pipes. */
int folder_copy(const char *from, const char *to, struct err *e);
bool folder_remove(const char *path); /* with all that is in it; true: it is not there any more */
void folder_sweep_desk(
    const char *path);               /* ends what is still running of a desk without keeper, and removes it */
void folder_sweep(const char *root); /* all desks in it, and it */

/* ---- auth.c ------------------------------------------------------------------------------------ */

int auth_begin(const char *root, struct err *e); /* sets XAUTHORITY of this process */
void auth_end(void);
int auth_add(int number, const unsigned char cookie[COOKIE], struct err *e);
void auth_drop(int number);
/* A file with this one cookie, for a server and its programs. */
int auth_write(const char *path, const unsigned char cookie[COOKIE], struct err *e);

/* ---- server.c ---------------------------------------------------------------------------------- */

/* A display number that is free from `first` on, locked in the name of this process; -1: none. */
int server_claim(int first);
void server_release(int number);
/* Socket and lock of the displays that `keeper` has claimed; their servers have ended. */
void server_sweep(pid_t supervisor);

/* ---- stream.c: what programs write, without end, into files of limited size -------------------- */

struct log {
    int fd;
    size_t size;
    char path[DESK_PATH + 32];
};
struct stream {
    int fd;          /* -1: nobody writes there any more */
    struct log *log; /* NULL: the ring only */
    char *ring;      /* NULL: none */
    size_t ring_size, ring_total;
};
int log_open(struct log *l, const char *dir, const char *name);
int stream_open(struct stream *s, struct log *log, size_t ring_size); /* the end to write to, or -1 */
void stream_drain(struct stream *s);
size_t stream_ring(const struct stream *s, char *out, size_t from, size_t most); /* what the ring has */
void stream_drop_ring(struct stream *s);
void log_tail(const char *dir, const char *name, struct buf *out, size_t most);
void log_last_line(const char *dir, const char *name, char *out, size_t size);

/* ---- child.c ----------------------------------------------------------------------------------- */

struct place { /* where programs of a desk run */
    bool own;  /* server, home */
    const char *dir, *work_dir;
    char display[32], home[DESK_PATH + 16], mark[DESK_PATH + 32]; /* "HOLORUN_DESK=..." */
    const struct msg *env;                                        /* variables of its own ... */
    size_t env_at;                                                /* ... from here on */
    struct rlimit files;                                          /* as they were */
};
struct how {
    const char *shell;       /* command, or */
    const char *const *argv; /* program */
    int out, keep;           /* its stdout and stderr; a descriptor it gets as it is, or -1 */
    int oom;                 /* how much rather it than others is ended when memory is gone */
    const struct msg *env;   /* more variables, from env_at on; or NULL */
    size_t env_at;
    const char *mark; /* one more; or NULL */
};
pid_t child_start(const struct place *p, const struct how *h);
bool child_installed(const char *program);

/* ---- supervisor.c, zygote.c ------------------------------------------------------------------------ */

struct ground { /* what zygote and keepers inherit */
    const char *root;
    struct rlimit files; /* as they were */
    int owner;           /* a pidfd, -1: the kernel has none */
};
_Noreturn void zygote_main(const struct ground *g);
_Noreturn void supervisor_main(const struct ground *g, int n);
void desk_dir(char out[DESK_PATH], const char *root, int n);

/* ---- desk.c ------------------------------------------------------------------------------------ */

struct desk {
    struct desk *next;
    pthread_mutex_t lock;
    int socket, n, number, seq; /* number: of the display, -1: not ours */
    int supervisor;             /* pidfd, or -1 */
    pid_t pids[3];
    char dir[DESK_PATH], home[DESK_PATH + 16], display[64];
    bool own;
    struct msg out, in; /* one request at a time */
};
/* The next answer to the request that was sent; 1, or 0 after ms; -1: the keeper is gone. */
int desk_answer(struct desk *d, double ms);
int desk_lost(const struct desk *d, struct err *e);

#endif
