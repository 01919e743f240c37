/* desk.h - a private desktop, for a test, a run, or kept by `holorun desk`: X server, window manager, home
 * folder, environment, programs.
 *
 * Each desk is an Xvfb on a free display number, with its own cookie and without TCP, a window manager, a
 * fresh HOME and the programs started on it.  All of it belongs to a supervisor: a small process per desk
 * that is the subreaper of its programs and, when the desk is closed or this process dies, kills all of
 * them and removes socket, lock, cookies and files.
 *
 *     desks_begin(&e)                        before there are threads
 *     d = desk_open(&options, &e)            from any thread
 *     desk_start(d, "xterm", &e)             the program under test
 *     desk_wait_window(d, "xterm", 10, ...)
 *     screen_open({.display = desk_display(d)})
 *     desk_run(d, "test -f out.txt", ...)    setup, teardown, checks: to their end
 *     desk_close(d)
 *     desks_end()
 */
#ifndef HOLORUN_DESK_DESK_H
#define HOLORUN_DESK_DESK_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct desk;

/* Starts the zygote that forks supervisors, sets XAUTHORITY to a file with the cookies of all desks (and
 * the user's), and removes what processes killed together with their supervisors have left.  Before any
 * thread, and before screen_guard(), which needs that XAUTHORITY.  Raises the limit of open files.
 * desks_end() closes all desks. */
int desks_begin(struct err *e);
void desks_end(void);
/* Removes what processes of this user left that were killed together with their supervisors. */
void desks_sweep(void);

struct desk_options {
    /* "xvfb:1280x720" (x24); "xvfb:1280x720,noglx": without OpenGL, a third of the memory and started twice
     * as fast; ":0": an existing desktop with the user's HOME, both left as they are; NULL: a supervisor
     * only. */
    const char *display;
    const char *wm; /* shell command; NULL: openbox when it is installed; "": none */
    const char
        *home; /* folder that is copied into the fresh HOME (at most 1 GiB, 50000 files); NULL: empty */
    const char
        *home_kept; /* absolute path of this user's folder that is HOME itself and stays; NULL: a fresh one */
    const char *dir;        /* working directory of commands; NULL: that of this process */
    const char *const *env; /* additional variables "NAME=value", NULL-terminated; NULL: none */
    double seconds;         /* timeout for the start of server and window manager; 0: 20 */
};

/* NULL with ERR_ENV and the reason (no Xvfb, no free display, no memory, disk full, the server's message,
 * another desk has home_kept), or ERR_USAGE for an invalid display; then nothing is left. */
struct desk *desk_open(const struct desk_options *o, struct err *e);
void desk_close(struct desk *d); /* NULL is fine; returns when all its processes and files are gone */

const char *desk_display(const struct desk *d); /* ":103" */
const char *desk_home(const struct desk *d);
const char *desk_auth(const struct desk *d); /* file with the cookie of a private one */

/* The functions below may be called from any thread; calls for one desk are serialized. */

/* Starts a shell command that keeps running; its output goes to a log in the desk's folder.  -1 when it
 * cannot be started; that it ended at once (no such command) is reported by desk_state(). */
int desk_start(struct desk *d, const char *command, struct err *e);
/* Waits until a window's title matches the PCRE2 pattern (NULL: any window with a title or a class).  -1:
 * ERR_ENV, not within `seconds`, or a process has ended (desk_state(); the message has exit code and last
 * log line), ERR_STOPPED: *cancel is set, ERR_USAGE: invalid pattern. */
int desk_wait_window(struct desk *d, const char *pattern, double seconds, const volatile int *cancel,
                     struct err *e);

/* Runs a shell command to its end: *exit_code (128 + signal), its output (stdout and stderr, the last
 * `output->max` bytes; NULL: dropped).  env: more variables, NULL-terminated.  Processes that it leaves
 * keep running.  -1: it could not be run, *cancel was set (ERR_STOPPED), or it took longer than `seconds`
 * (ERR_TIME); then it and its children are killed, and `output` has what it wrote so far. */
int desk_run(struct desk *d, const char *command, const char *const *env, double seconds,
             const volatile int *cancel, int *exit_code, struct buf *output, struct err *e);

/* Runs a NULL-terminated list of commands (NULL: none) until one fails: -1, ERR_ENV with the last line of
 * its output; `said` gets all of it (the last said->max bytes; NULL: dropped).  when: what the commands
 * are, for the message.  cancel NULL: cannot be stopped, for teardowns. */
int desk_run_all(struct desk *d, const char *const *commands, const char *when, double seconds,
                 const volatile int *cancel, struct buf *said, struct err *e);

/* Which process has ended: DESK_OK (none), or the first that applies; `what` gets a line about it.  A
 * program with exit code 0 counts as done when no other program runs (else it was a launcher). */
enum desk_state {
    DESK_OK,
    DESK_NO_SERVER,
    DESK_NO_WM,
    DESK_NO_PROGRAM,
    DESK_NO_SUPERVISOR,
    DESK_PROGRAM_DONE,
};
enum desk_state desk_state(struct desk *d, char *what, size_t size);

/* Number of processes on the desk, without server and window manager, whose command lines match the PCRE2
 * pattern; -1 with ERR_USAGE. */
int desk_processes(struct desk *d, const char *pattern, struct err *e);

/* The end of the programs' log, for messages and reports. */
void desk_log(struct desk *d, struct buf *out, size_t most);

#endif
