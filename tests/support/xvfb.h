/* xvfb.h - a private X server for a test, and programs on it.
 *
 *     struct xvfb x;
 *     if (xvfb_start(&x, "1280x720x24", NULL)) skip();     // Xvfb is not installed
 *     ...
 *     xvfb_stop(&x);
 *
 * The server takes a free display number, listens on no network and lets in only who has the cookie
 * in a private folder.  DISPLAY, XAUTHORITY, XDG_RUNTIME_DIR and HOME of this process point there until
 * xvfb_stop(), WAYLAND_DISPLAY is unset.  Everything started through xvfb_spawn() is ended with it.
 */
#ifndef HOLORUN_TESTS_XVFB_H
#define HOLORUN_TESTS_XVFB_H

#include "place.h"

#include <stdbool.h>
#include <sys/types.h>

struct xvfb {
    pid_t server, children[8];
    int n_children;
    char display[16];     /* ":7" */
    char dir[PLACE_PATH]; /* private folder, removed at the end */
};

/* screen: "WxHxDEPTH"; extra: NULL or NULL-terminated server options. 0, or -1: no Xvfb here (the
 * reason is printed). */
int xvfb_start(struct xvfb *x, const char *screen, const char *const *extra);
/* One more, which lets in who has the cookie of the first; the environment stays as it is. */
int xvfb_start_beside(struct xvfb *x, const char *screen, const struct xvfb *first);
/* Only the private folder, for programs that need no display; the environment stays as it is. */
void xvfb_folder(struct xvfb *x);
void xvfb_stop(struct xvfb *x);
void xvfb_kill_server(struct xvfb *x); /* at once, as a crash would */

bool program_exists(const char *name); /* in PATH */

/* Starts a program with stdout and stderr in dir/LOG; -1 when it cannot be started. */
pid_t xvfb_spawn(struct xvfb *x, const char *log, const char *const *argv);
int xvfb_run(struct xvfb *x, const char *const *argv); /* to its end; the exit code */
int xvfb_window_manager(struct xvfb *x);               /* openbox; -1 when there is none */
void process_end(pid_t pid);                           /* TERM, then KILL; reaps */
/* First window whose title matches the PCRE2 pattern; title may be NULL.  1 found, 0 not, -1 error. */
struct screen;
struct err;
int xvfb_find_window(struct screen *s, const char *pattern, char *title, size_t title_size, struct err *e);
bool xvfb_wait_window(struct xvfb *x, const char *pattern); /* until a title matches */

/* Folder with the helper programs (xclient) beside the test program's own; static. */
const char *helper_path(const char *name);

#endif
