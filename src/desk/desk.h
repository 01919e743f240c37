/* desk.h - a desktop of a test's own: X server, window manager, home folder, environment, and what runs on it.
 *
 * Each desk is an Xvfb on a free display number that lets in who has its cookie and listens on no network, a window
 * manager, a fresh HOME, and the programs that are started on it.  All of it belongs to a keeper: a small process of the
 * desk's own, which adopts whatever its programs leave behind (a subreaper) and, when the desk is closed or this process
 * dies in whatever way, ends all of it and removes socket, lock, cookies and files.
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

/* Starts the process that makes keepers, and this process's own XAUTHORITY with the cookies of all desks (and what the
 * user's has); clears up after processes that were killed together with all their keepers.  Before any thread, and before
 * screen_guard(), which is to see that XAUTHORITY.  Raises the limit of open files.  desks_end() closes what is open. */
int desks_begin(struct err *e);
void desks_end(void);

struct desk_options {
    /* "xvfb:1280x720" (x24); "xvfb:1280x720,noglx": without OpenGL, a third of the memory and twice as soon there;
     * ":0": a desktop that is there, nothing of which is ours, nor is HOME; NULL: none at all, nothing but a keeper. */
    const char *display;
    const char *wm;   /* shell command; NULL: openbox when it is installed; "": none */
    const char *home; /* folder whose content the fresh HOME begins with (1 GiB, 50000 files); NULL: empty */
    const char *dir;  /* folder in which commands run; NULL: that of this process */
    const char *const *env; /* "NAME=value", ended by NULL, over those of this process; NULL: none */
    double seconds;         /* for server and window manager to be there; 0: 20 */
};

/* NULL with ERR_ENV and the reason: no Xvfb, no free display, no memory, disk full ... with what the server says, or
 * ERR_USAGE for a display that is none.  Nothing is left then. */
struct desk *desk_open(const struct desk_options *o, struct err *e);
void desk_close(struct desk *d); /* NULL is fine; returns when nothing of it is left */

const char *desk_display(const struct desk *d); /* ":103" */
const char *desk_home(const struct desk *d);
const char *desk_folder(const struct desk *d); /* all of it, HOME too; HOLORUN_DESK of its programs */

/* The functions from here on may be called from any thread; those of one desk wait for each other. */

/* A program that stays: shell command, output to a log in the desk's folder.  -1 when it cannot be started; one that ends
 * at once (no such command) is seen by what follows. */
int desk_start(struct desk *d, const char *command, struct err *e);
/* Until a window's title matches the PCRE2 pattern (NULL: any window with a title or a class).  -1: ERR_ENV, not within
 * `seconds`, or something has ended (desk_state(), with exit code and the end of its log in the message), ERR_STOPPED:
 * *cancel is set, ERR_USAGE: no such pattern. */
int desk_wait_window(struct desk *d, const char *pattern, double seconds, const volatile int *cancel,
                     struct err *e);

/* A shell command to its end: *exit_code (128 + signal), its output (stdout and stderr, the last `output->max` bytes; NULL:
 * not kept).  env: more variables, ended by NULL.  What it leaves running goes on.  -1: it could not be run, *cancel was
 * set (ERR_STOPPED), or it took longer than `seconds` (ERR_TIME); then it and its children have been ended, and `output`
 * has what it said. */
int desk_run(struct desk *d, const char *command, const char *const *env, double seconds,
             const volatile int *cancel, int *exit_code, struct buf *output, struct err *e);

/* Commands of a list that NULL ends (NULL: none), each to its end; the first that fails ends it: -1, ERR_ENV with the last
 * line of what it said, all of which is in `said` (its end, when that is more than said->max; NULL: not kept).  when: what they
 * are, for the message; cancel NULL: they are run whatever happens, as a teardown is. */
int desk_run_all(struct desk *d, const char *const *commands, const char *when, double seconds,
                 const volatile int *cancel, struct buf *said, struct err *e);

/* What has ended that should not have: DESK_WELL, or the first of the others; `what` gets a line about it.  A program
 * that has ended with exit code 0 is done when nothing else of the programs goes on (else it was a launcher). */
enum desk_state {
    DESK_WELL,
    DESK_NO_SERVER,
    DESK_NO_WM,
    DESK_NO_PROGRAM,
    DESK_NO_SUPERVISOR,
    DESK_PROGRAM_DONE,
};
enum desk_state desk_state(struct desk *d, char *what, size_t size);

/* Processes that are on the desk now (server and window manager are not counted) whose command lines match the PCRE2
 * pattern.  The number, -1 with ERR_USAGE. */
int desk_processes(struct desk *d, const char *pattern, struct err *e);

/* The end of the programs' log, for messages and reports. */
void desk_log(struct desk *d, struct buf *out, size_t most);

#endif
