/* desk.h - private desktops for a test, a run, or kept by `holorun desk`: X server, window manager, home
 * directory, environment, programs.
 *
 * Each desk is an Xvfb on a free display number, with its own cookie and without TCP, a session bus with an
 * accessibility bus, a window manager, a fresh HOME and the programs started on it.  All of it belongs to a
 * supervisor, one small process per desk and the subreaper of its programs.  When the desk is closed or this
 * process dies, the supervisor kills the programs and removes socket, lock, cookies and files.
 *
 *     desks_begin(&e)                          before there are threads
 *     d = desk_open(&options, &e)              from any thread
 *     desk_start(d, "xterm", &e)               the program under test
 *     desk_wait_window(d, "xterm", 10, ...)
 *     screen_open({.display = desk_display(d)})
 *     desk_run(d, "test -f out.txt", ...)      setup, teardown, checks: waits for their end
 *     desk_close(d)
 *     desks_end() */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct desk;

/* Starts the zygote that forks supervisors, sets XAUTHORITY to a file with the cookies of all desks and of
 * the user, and removes the remains of processes that were killed together with their supervisors.  Raises
 * the limit of open files.  Call before any thread, and before screen_guard(), which needs that XAUTHORITY.
 * Returns -1 with e.  desks_end() closes all desks. */
int desks_begin(struct err *e);
void desks_end(void);
/* Removes the remains of this user's processes that were killed together with their supervisors. */
void desks_sweep(void);

struct desk_options {
    /* "xvfb:1280x720" (24 bits per pixel); "xvfb:1280x720,noglx": without OpenGL, which takes a third of the
     * memory and starts twice as fast; ":0": an existing desktop with the user's HOME, both left unchanged;
     * NULL: a supervisor only */
    const char *display;
    const char *wm; /* shell command; NULL: openbox if installed; "": none */
    /* directory that is copied into the fresh HOME (at most 1 GiB, 50000 files); NULL: empty */
    const char *home;
    /* absolute path of this user's directory that is HOME itself and is kept; NULL: a fresh one */
    const char *home_kept;
    const char *dir;        /* working directory of commands; NULL: that of this process */
    const char *const *env; /* additional variables "NAME=value", NULL-terminated; NULL: none */
    /* starts no session bus, so that programs do not describe their elements (AT-SPI) */
    bool no_elements;
    double seconds; /* timeout for the start of server and window manager in seconds; 0: 20 */
};

/* Returns whether dbus-daemon is installed, without which private desktops have no session bus. */
bool desk_bus_installed(void);

/* Opens a desk.  Returns NULL with ERR_ENV and the reason (no Xvfb, no free display, no memory, disk full,
 * the server's message, home_kept in use by another desk), or with ERR_USAGE for an invalid display; then
 * nothing is left behind. */
struct desk *desk_open(const struct desk_options *o, struct err *e);
void desk_close(struct desk *d); /* returns when all processes and files of d are gone; NULL is allowed */

const char *desk_display(const struct desk *d); /* such as ":103" */
const char *desk_home(const struct desk *d);
const char *desk_auth(const struct desk *d); /* file with the cookie of a private display */

/* The functions below may be called from any thread; calls for one desk are serialized. */

/* Starts a shell command that keeps running; its output goes to a log in the desk's directory.  Returns -1
 * with e if it cannot be started; desk_state() reports a command that ends at once, such as one that does not
 * exist. */
int desk_start(struct desk *d, const char *command, struct err *e);
/* Waits until a window's title matches the PCRE2 pattern (NULL: any window with a title or a class).  Returns
 * -1 with ERR_ENV (no window within `seconds`, or a process has ended; the message has its exit code and last
 * log line), ERR_STOPPED (*cancel is set) or ERR_USAGE (invalid pattern). */
int desk_wait_window(struct desk *d, const char *pattern, double seconds, const volatile int *cancel,
                     struct err *e);

/* Gives these variables to later commands, in addition to those of desk_open(), which they override.  env:
 * NULL-terminated, borrowed until the next call or desk_close(). */
void desk_set_env(struct desk *d, const char *const *env);

/* Runs a shell command to its end.  *exit_code: 128 + signal for a killed command.  output: stdout and
 * stderr, the last output->max bytes; NULL: discarded.  env: additional variables, NULL-terminated.
 * Processes that the command leaves keep running.  Returns -1 if it could not be run, *cancel was set
 * (ERR_STOPPED), or it took longer than `seconds` (ERR_TIME); then it and its children are killed, and
 * `output` has its output so far. */
int desk_run(struct desk *d, const char *command, const char *const *env, double seconds,
             const volatile int *cancel, int *exit_code, struct buf *output, struct err *e);

/* Runs a NULL-terminated list of commands (NULL: none) until one fails.  Returns -1 with ERR_ENV and the last
 * line of the failed command's output; `said` gets all its output (the last said->max bytes; NULL:
 * discarded).  when: description of the commands for the message.  cancel NULL: cannot be stopped, for
 * teardowns. */
int desk_run_all(struct desk *d, const char *const *commands, const char *when, double seconds,
                 const volatile int *cancel, struct buf *said, struct err *e);

/* Reports which process has ended: DESK_OK (none), or the first state that applies; `what` gets a line about
 * it.  A program with exit code 0 counts as done only if no other program runs; otherwise it was a
 * launcher. */
enum desk_state {
    DESK_OK,
    DESK_NO_SERVER,
    DESK_NO_WM,
    DESK_NO_PROGRAM,
    DESK_NO_SUPERVISOR,
    DESK_PROGRAM_DONE,
};
enum desk_state desk_state(struct desk *d, char *what, size_t size);

/* Returns the number of processes on the desk, without server and window manager, whose command lines match
 * the PCRE2 pattern; -1 with ERR_USAGE if the pattern is invalid. */
int desk_processes(struct desk *d, const char *pattern, struct err *e);

/* Appends the last `most` bytes of the programs' log, for messages and reports. */
void desk_log(struct desk *d, struct buf *out, size_t most);
/* Removes the text that the programs have written so far from that log. */
void desk_clear_log(struct desk *d);
